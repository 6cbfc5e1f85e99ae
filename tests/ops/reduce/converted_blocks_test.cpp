// tests/ops/reduce/converted_blocks_test.cpp - reductions and softmax of half types, and means of integers, convert
// block by block: they take no memory for a copy of the tensor, and have the bits of the float32 computation, rounded
// once.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "ops/reduce/variance.h"
#include "tests/ops/levels.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

bool same(const Tensor& a, const Tensor& b) {
  const TensorDesc &x = Access::desc(a), &y = Access::desc(b);
  return x.dtype == y.dtype && x.same_shape(y) &&
         std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.bytes())) == 0;
}

constexpr std::int64_t kRoom = 3 << 20;  // for the blocks of two threads, and what the small results take

struct Row {
  std::string name;
  std::function<Tensor(const Tensor&)> f;
  bool returns_bool = false;
};
std::vector<Row> reductions() {
  std::vector<Row> rows;
  for (const Axes& axis : {Axes(None), Axes(0), Axes(1)}) {
    const std::string of = axis.size_ < 0 ? "all" : rows.size() < 10 ? "axis 0" : "axis 1";
    rows.push_back({"sum " + of, [axis](const Tensor& x) { return K::sum(x, axis); }});
    rows.push_back({"mean " + of, [axis](const Tensor& x) { return K::mean(x, axis); }});
    rows.push_back({"prod " + of, [axis](const Tensor& x) { return K::prod(x, axis); }});
    rows.push_back({"max " + of, [axis](const Tensor& x) { return K::max(x, axis); }});
    rows.push_back({"min " + of, [axis](const Tensor& x) { return K::min(x, axis); }});
    rows.push_back({"logsumexp " + of, [axis](const Tensor& x) { return K::logsumexp(x, axis); }});
    rows.push_back({"any " + of, [axis](const Tensor& x) { return K::any(x, axis); }, true});
  }
  return rows;
}
/// Numbers from -1 to 1.
Tensor numbers(const Shape& shape, DType dtype) {
  std::vector<float> v(static_cast<std::size_t>(shape.numel()));
  unsigned seed = 1;
  for (float& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int>(seed >> 8) - (1 << 23)) * 0x1p-23f;
  }
  return K::cast(K::reshape(K::constant(v, float32), shape), dtype);
}
/// The bytes that a call takes beside its result at most.
template <class F>
std::int64_t taken(F f) {
  reset_peak_memory();
  const std::int64_t before = memory_stats().live;
  const Tensor y = f();
  return memory_stats().peak - before - y.size() * y.dtype().size();
}

}  // namespace

TEST_CASE("reductions of half types have the bits of float32's, rounded", "[half]") {
  at_every_level([](devices::Level) {
    for (DType dtype : {float16, bfloat16})
      for (const Shape& shape : {Shape{3, 5}, Shape{70, 300}, Shape{9000, 7}, Shape{3, 10000}, Shape{600, 1100}}) {
        const Tensor x = numbers(shape, dtype), wide = K::cast(x, float32);
        for (const Row& row : reductions()) {
          INFO(row.name << " of " << dtype << " " << shape);
          CHECK(same(row.f(x), row.returns_bool ? row.f(wide) : K::cast(row.f(wide), dtype)));
        }
      }
  });
}

TEST_CASE("means of bool and integers have the bits of the mean of floats", "[half]") {
  SettingsScope restore;
  for (DType floatx : {float32, float64, float16}) {
    K::set_floatx(floatx);
    for (DType dtype : {bool_, uint8, uint64, int16, int64})
      for (const Shape& shape : {Shape{3, 5}, Shape{600, 1100}, Shape{0, 3}}) {
        const Tensor x = K::cast(K::cast(numbers(shape, float32) * 100.0, int32), dtype),
                     wide = K::cast(x, floatx == float16 ? float32 : floatx);
        for (const Axes& axis : {Axes(None), Axes(0), Axes(-1)}) {
          INFO(dtype << " " << shape);
          CHECK(same(K::mean(x, axis), K::cast(K::mean(wide, axis), floatx)));
          CHECK(same(K::mean(x, axis, true), K::cast(K::mean(wide, axis, true), floatx)));
        }
      }
  }
  Tensor in = K::placeholder({None, 3}, None, uint8);
  CHECK(K::function({in}, {K::mean(in)})({K::cast(K::ones({2, 3}) * 7.0, uint8)})[0].item<float>() == 7);
}

TEST_CASE("softmax and its losses of half types have the bits of float32's, rounded", "[half][softmax]") {
  for (DType dtype : {float16, bfloat16})
    for (const Shape& shape : {Shape{3, 5}, Shape{1200, 1000}, Shape{2, 700, 1000}, Shape{1, 600, 1000}}) {
      const Tensor x = numbers(shape, dtype), y = K::abs(numbers(shape, dtype));
      const Tensor wide = K::cast(x, float32), t = K::cast(y, float32);
      for (int axis : {0, -1}) {
        INFO(dtype << " " << shape << " " << axis);
        CHECK(same(K::softmax(x, axis), K::cast(K::softmax(wide, axis), dtype)));
        CHECK(same(K::categorical_crossentropy(y, x, true, axis),
                   K::cast(K::categorical_crossentropy(t, wide, true, axis), dtype)));
      }
      CHECK(same(K::binary_crossentropy(y, x, true), K::cast(K::binary_crossentropy(t, wide, true), dtype)));
    }
}

TEST_CASE("running sums and products of half types have the bits of float32's, rounded", "[half][scan]") {
  for (DType dtype : {float16, bfloat16})
    for (const Shape& shape : {Shape{3, 5}, Shape{1200, 1000}, Shape{2, 700, 1000}, Shape{1, 600, 1000}}) {
      const Tensor x = numbers(shape, dtype), wide = K::cast(x, float32);
      for (int axis : {0, 1, -1}) {
        INFO(dtype << " " << shape << " " << axis);
        CHECK(same(K::cumsum(x, axis), K::cast(K::cumsum(wide, axis), dtype)));
        CHECK(same(K::cumprod(x, axis), K::cast(K::cumprod(wide, axis), dtype)));
      }
    }
}

TEST_CASE("gradients of softmax and its losses of half types are those of a few rows or columns", "[half][softmax]") {
  for (DType dtype : {float16, bfloat16})
    for (const Shape& shape : {Shape{1200, 1000}, Shape{3, 400, 4, 170}, Shape{600, 2, 500}}) {
      const Tensor x = numbers(shape, dtype), t = K::abs(numbers(shape, dtype));
      for (int axis : {0, 1, -1}) {
        INFO(dtype << " " << shape << " " << axis);
        const bool last = axis == -1 || axis == shape.rank() - 1;
        const auto part = [&](const Tensor& of) { return last ? of(slice(1, 3)) : of(ellipsis, slice(70, 111)); };
        const auto check = [&](auto loss) {
          const auto slope = [&](const Tensor& at, const Tensor& target) {
            const Tensor v = K::variable(at, dtype);
            return K::gradients(K::sum(loss(v, target)), {v})[0];
          };
          CHECK(same(part(slope(x, t)), slope(part(x), part(t))));
        };
        check([&](const Tensor& of, const Tensor& target) { return K::softmax(of, axis) * target; });
        check([&](const Tensor& of, const Tensor& target) {
          return K::categorical_crossentropy(target, of, true, axis);
        });
        check([&](const Tensor& of, const Tensor&) { return K::logsumexp(of, axis); });
      }
    }
}

TEST_CASE("var, deviations, argmax and argmin of half types have the bits of float32's, rounded", "[half]") {
  at_every_level([](devices::Level) {
    for (DType dtype : {float16, bfloat16})
      for (const Shape& shape : {Shape{3, 5}, Shape{70, 300}, Shape{9000, 7}, Shape{3, 10000}, Shape{2, 600, 550}}) {
        const Tensor x = numbers(shape, dtype), wide = K::cast(x, float32);
        for (const Axes& axis : {Axes(None), Axes(0), Axes(1), Axes({0, -1})}) {
          INFO(dtype << " " << shape);
          CHECK(same(K::var(x, axis), K::cast(K::var(wide, axis), dtype)));
          CHECK(same(K::std(x, axis), K::cast(K::std(wide, axis), dtype)));
          const auto centered = [&](const Tensor& of) {
            return ops::center(of, ops::axis_set("var", of, axis, /*keepdims=*/false));
          };
          CHECK(same(centered(x), K::cast(centered(wide), dtype)));
          if (axis.size_ > 1) continue;
          CHECK(same(K::argmax(x, axis), K::argmax(wide, axis)));
          CHECK(same(K::argmin(x, axis), K::argmin(wide, axis)));
        }
      }
  });
}

TEST_CASE("reductions and softmax of half types, and means of integers, do not copy the tensor", "[half][memory]") {
  const std::int64_t rows = 4096, columns = 1024;  // 8 MB of half types
  SettingsScope restore;
  set_num_threads(2);
  for (DType dtype : {float16, bfloat16}) {
    const Tensor x = numbers({rows, columns}, dtype), y = K::abs(x);
    for (const Row& row : reductions()) {
      INFO(row.name << " of " << dtype);
      CHECK(taken([&] { return row.f(x); }) < kRoom);
    }
    for (const Axes& axis : {Axes(None), Axes(0), Axes(1)}) {
      CHECK(taken([&] { return K::var(x, axis); }) < kRoom);
      CHECK(taken([&] { return K::std(x, axis); }) < kRoom);
      CHECK(taken([&] { return K::argmax(x, axis); }) < kRoom);
      CHECK(taken([&] { return K::argmin(x, axis); }) < kRoom);
    }
    CHECK(taken([&] { return K::in_top_k(x, K::zeros({rows}, int64), 3); }) < kRoom);
    CHECK(taken([&] { return K::cumsum(x, 1); }) < kRoom);
    CHECK(taken([&] { return K::cumprod(x, 0); }) < kRoom + (2 << 20));
    // A slice of 2^18 elements as float32, of the operand and of the result; along columns copied before.
    CHECK(taken([&] { return K::softmax(x); }) < kRoom);
    CHECK(taken([&] { return K::softmax(x, 0); }) < kRoom + (2 << 20));
  }
  for (DType dtype : {bool_, uint8, int32}) {
    const Tensor x = K::cast(numbers({rows, columns}, float32) * 100.0, dtype);
    INFO(dtype);
    CHECK(taken([&] { return K::mean(x); }) < kRoom);
    CHECK(taken([&] { return K::mean(x, 0); }) < kRoom);
    CHECK(taken([&] { return K::mean(x, 1); }) < kRoom);
  }
}
