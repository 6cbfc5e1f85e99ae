// tests/ops/shape/shaping_dtypes_test.cpp - the shape ops on every dtype, on empty tensors, with any number of threads.
#include <kassette/backend.h>

#include <functional>
#include <vector>

#include "core/convert.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/ops/levels.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

using Doubles = std::vector<double>;

/// Ops that move elements: their results are the same for every dtype.
const std::vector<std::function<Tensor(const Tensor&)>>& moves() {
  static const std::vector<std::function<Tensor(const Tensor&)>> list = {
      [](const Tensor& x) {
        return K::reshape(x, {-1, 2});
      },
      [](const Tensor& x) { return K::transpose(x); },
      [](const Tensor& x) {
        return K::permute_dimensions(x, {1, 2, 0});
      },
      [](const Tensor& x) {
        return K::concatenate({x, x}, 1);
      },
      [](const Tensor& x) {
        return K::stack({x, x}, -1);
      },
      [](const Tensor& x) { return unstack(x, 3, 1)[2]; },
      [](const Tensor& x) { return K::repeat_elements(x, 2, 1); },
      [](const Tensor& x) {
        return K::tile(x, {2, 1, 2});
      },
      [](const Tensor& x) {
        return broadcast_to(x, {2, 2, 3, 4});
      },
      [](const Tensor& x) {
        return K::reverse(x, {0, 2});
      },
      [](const Tensor& x) {
        return K::slice(x, {0, 1, 1}, {2, 2, 3});
      },
      [](const Tensor& x) { return x(ellipsis, slice(None, None, -2)); },
      [](const Tensor& x) {
        return K::gather(x, {1, 0, 1});
      },
      [](const Tensor& x) {
        Pads p;
        p.rank = 3;
        p.before[1] = p.after[2] = 1;
        return pad(x, p);
      },
  };
  return list;
}

}  // namespace

TEST_CASE("the shape ops move the elements of every dtype", "[shaping]") {
  Doubles bits;
  for (int i = 0; i < 24; ++i) bits.push_back(i * 7 % 5 % 2);
  Tensor reference = K::constant(bits, "float64", {2, 3, 4});
  for (DType dtype : kAllDTypes) {
    Tensor x = K::constant(bits, dtype, {2, 3, 4});
    for (std::size_t i = 0; i < moves().size(); ++i) {
      INFO(dtype.name() << " " << i);
      Tensor y = moves()[i](x);
      CHECK(y.dtype() == dtype);
      CHECK(values(y) == values(moves()[i](reference)));
    }
  }
}

TEST_CASE("the adjoints that sum do so in every number dtype", "[shaping]") {
  for (DType dtype : kAllDTypes) {
    if (dtype == bool_) continue;
    INFO(dtype.name());
    Tensor x = K::constant({{1, 2}, {3, 4}}, dtype);
    Tensor g = apply1(gather_grad_like_op, GatherAttrs{0, Wrap::refuse},
                      {x, K::constant({2, 2}, "int32"), K::constant(0, dtype, {3, 2})});
    CHECK(values(g) == Doubles{0, 0, 0, 0, 4, 6});
    Tensor t = apply1(tile_grad_like_op, {x, K::constant({2, 2}, "int64"), K::constant(0, dtype, {1, 1})});
    CHECK(values(t) == Doubles{10});
    const RepeatAttrs twice{.times = 2, .axis = 1};
    CHECK(values(apply1(repeat_grad_like_op, twice, {x, K::constant(0, dtype, {2, 1})})) == Doubles{3, 7});
  }
}

TEST_CASE("sums of half floats are rounded once", "[shaping]") {
  // 2048 + 1 + 1 is 2050 in float16 only if the sum is kept wider.
  Tensor dy = K::constant({2048, 1, 1}, "float16");
  CHECK(values(apply1(gather_grad_like_op, {dy, K::constant({0, 0, 0}, "int32"), K::constant({0}, "float16")})) ==
        Doubles{2050});
  CHECK(values(apply1(tile_grad_like_op, {dy, K::constant({3}, "int64"), K::constant({0}, "float16")})) ==
        Doubles{2050});
}

TEST_CASE("the shape ops take empty tensors", "[shaping]") {
  Tensor x = K::constant(0, None, {2, 0, 3});
  CHECK(K::transpose(x).shape() == Shape{3, 0, 2});
  CHECK(K::concatenate({x, x}, 1).shape() == Shape{2, 0, 3});
  CHECK(K::concatenate({x, K::constant(1, None, {2, 1, 3})}, 1).shape() == Shape{2, 1, 3});
  CHECK(K::stack({x, x}).shape() == Shape{2, 2, 0, 3});
  CHECK(unstack(x, 3, 2)[0].shape() == Shape{2, 0});
  CHECK(K::repeat_elements(x, 2, 0).shape() == Shape{4, 0, 3});
  CHECK(K::tile(x, {2, 2, 2}).shape() == Shape{4, 0, 6});
  CHECK(K::reverse(x, 1).shape() == Shape{2, 0, 3});
  CHECK(K::slice(x, {1, 0, 0}, {1, -1, 2}).shape() == Shape{1, 0, 2});
  CHECK(x[1].shape() == Shape{0, 3});
  CHECK(K::gather(x, {1}).shape() == Shape{1, 0, 3});
  CHECK_THROWS_AS(K::gather(K::constant(0, None, {0, 3}), {0}), ValueError);
  CHECK(K::one_hot(K::constant({}, "int32"), 3).shape() == Shape{0, 3});
  CHECK(K::flatten(x).shape() == Shape{0});
  Tensor v = K::variable(x);
  CHECK(K::gradients(K::sum(K::gather(v, {1})), {v})[0].shape() == Shape{2, 0, 3});
  CHECK(K::gradients(K::sum(K::tile(v, {2, 2, 2})), {v})[0].shape() == Shape{2, 0, 3});
  Tensor none = K::variable({1, 2});
  CHECK(values(K::gradients(K::sum(K::tile(none, 0)), {none})[0]) == Doubles{0, 0});
}

TEST_CASE("the bits do not depend on the number of threads", "[shaping]") {
  Doubles numbers;
  std::vector<int> at;
  for (int i = 0; i < 6000 * 32; ++i) numbers.push_back(1.0 / (1 + i * 7919 % 10007));
  for (int i = 0; i < 6000; ++i) at.push_back(i * 7919 % 1500);
  Tensor dy = K::constant(numbers, "float32", {6000, 32}), like = K::constant(0, None, {1500, 32});
  Tensor indices = K::constant(at, "int32"), wide = K::constant(numbers, None, {300, 640});
  auto all_of = [&] {
    return Tensors{apply1(gather_grad_like_op, {dy, indices, like}), K::transpose(wide),
                   K::concatenate({wide, wide}, 1), K::reverse(wide, 1),
                   apply1(tile_grad_like_op, {wide, K::constant({10, 1}, "int64"), K::constant(0, None, {30, 640})})};
  };
  SettingsScope restore;
  set_num_threads(1);
  Tensors one = all_of();
  set_num_threads(3);
  Tensors three = all_of();
  for (int i = 0; i < one.size(); ++i)
    CHECK(one[i].to_vector<float>().operator std::vector<float>() ==
          three[i].to_vector<float>().operator std::vector<float>());
}

TEST_CASE("views keep the storage, copies do not", "[shaping]") {
  Tensor x = K::constant(1, None, {4, 3});
  const float* p = x.data<float>();
  CHECK(place<float>(K::expand_dims(x, 1)) == p);
  CHECK(place<float>(x[slice(1, 3)]) == p + 3);
  CHECK(place<float>(unstack(x, 4, 0)[2]) == p + 6);
  CHECK(place<float>(K::transpose(K::reshape(x, {12, 1}))) == p);
  CHECK(place<float>(K::transpose(x)) != p);
}

TEST_CASE("sizes that do not fit are refused", "[shaping]") {
  Tensor x = K::constant(1, None, {1, 1});
  CHECK_THROWS_WITH(
      broadcast_to(x, {1L << 40, 1L << 40}),
      "broadcast_to: a result of shape (1099511627776, 1099511627776) and dtype float32 is too large to address");
  CHECK_THROWS_WITH(K::tile(x, {1L << 40, 1L << 40}),
                    "tile: a result of shape (1099511627776, 1099511627776) and dtype float32 is too large to address");
  CHECK_THROWS_WITH(broadcast_to(K::constant({1, 2, 3}), {2, 4}), "broadcast_to: (3,) does not broadcast to (2, 4)");
  CHECK_THROWS_WITH(K::reshape(x, K::constant(std::vector<int>(9, 1), "int32")),
                    "reshape: rank 9; a tensor has 0 to 8 axes");
}

TEST_CASE("what does not broadcast is refused by the rule: in the same words by calls, by functions and on a device",
          "[shaping]") {
  const char *widened = "broadcast_like: (3,) does not broadcast to (2, 4)",
             *summed = "sum_to_like: (3,) does not broadcast to (2, 4)";
  for (const char* device : {"cpu", "cuda:0"}) {
    if (!has_device(device)) continue;
    Tensor small = K::ones({3}).to(device), large = K::ones({2, 4}).to(device);
    CHECK_THROWS_WITH(broadcast_like(small, large), widened);
    CHECK_THROWS_WITH(sum_to_like(large, small), summed);
    Tensor x = K::placeholder({None}), y = K::placeholder({None, None});
    CHECK_THROWS_WITH(K::function({x, y}, {broadcast_like(x, y)})({small, large}), widened);
    CHECK_THROWS_WITH(K::function({x, y}, {sum_to_like(y, x)})({small, large}), summed);
  }
  Tensor x = K::placeholder({3}), y = K::placeholder({2, 4});
  CHECK_THROWS_WITH(broadcast_like(x, y), widened);
  CHECK_THROWS_WITH(sum_to_like(y, x), summed);
}

TEST_CASE("a transposed tensor that is larger than the caches has every element where it belongs", "[shaping]") {
  // Lines of the result whole and broken, by every size of an element; rows of the result in pages of their own, and
  // divided among threads.
  SettingsScope restore;
  set_num_threads(3);
  for (DType dtype : {uint8, int16, int32, int64})
    for (auto [rows, columns] :
         {std::pair{1024, 1088}, {1020, 1028}, {1021, 1091}, {272, 4160}, {5003, 130}, {131, 5000}, {20001, 9}}) {
      const std::int64_t n = rows * columns, b = 2;
      INFO(dtype << " " << rows << " x " << columns);
      Tensor x = K::cast(K::reshape(K::arange(0, static_cast<double>(b * n), 1, "int32"), {2, rows, columns}), dtype);
      Tensor y = K::permute_dimensions(x, {0, 2, 1});
      const auto from = x.to_vector<std::int64_t>(), to = y.to_vector<std::int64_t>();
      bool right = y.shape() == Shape{b, columns, rows};
      for (std::int64_t i = 0; right && i < b * n; ++i)
        right = to[static_cast<std::size_t>(i / n * n + i % columns * rows + i % n / columns)] ==
                from[static_cast<std::size_t>(i)];
      CHECK(right);
    }
}
