// tests/devices/sparse_cuda_test.cpp - sparse tensors whose values are on a CUDA device. The sweeps cover small shapes.
#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/runtime.h>

#include <cmath>
#include <vector>

#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
using Vec = std::vector<double>;

namespace {

const Device kCuda("cuda:0");

/// Entries of a (40, 50) matrix in no order, some listed twice; each line has more than a warp has threads.
struct Entries {
  std::vector<std::int64_t> places;
  Vec values;
  Entries() {
    std::uint64_t seed = 11;
    auto draw = [&](std::int64_t n) {
      return static_cast<std::int64_t>((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33) % n;
    };
    for (int k = 0; k < 3000; ++k) {
      places.push_back(draw(40));
      places.push_back(draw(50));
      values.push_back(static_cast<double>(draw(2001)) / 1000 - 1);
    }
  }
};

/// Products on both sides, first and second gradients, and the dense matrix.
Tensors products(Device device, DType dtype, int width) {
  DeviceScope scope(device);
  const Entries e;
  Vec numbers;
  for (int i = 0; i < 50 * width; ++i) numbers.push_back(std::sin(i));
  Tensor v = K::variable(K::constant(e.values, dtype), dtype),
         x = K::variable(K::constant(numbers, dtype, {50, width}), dtype);
  Tensor a = K::sparse_coo(e.places, v, {40, 50}), y = K::dot(a, x), z = K::dot(K::transpose(y), a);
  Tensors first = K::gradients(K::sum(y * y) + K::sum(z), {v, x});
  Tensors second = K::gradients(K::sum(K::square(first[0])) + K::sum(K::square(first[1])), {v, x});
  return {y, z, first[0], first[1], second[0], second[1], K::to_dense(a)};
}

}  // namespace

TEST_CASE(
    "products of a large sparse matrix, and their gradients, are on a CUDA device what they are on the CPU, with the same bits each time",
    "[device][sparse]") {
  if (!has_device("cuda:0")) return;
  for (DType dtype : {float64, float32})
    for (int width : {1, 3, 40}) {
      Tensors here = products(cpu, dtype, width), there = products(kCuda, dtype, width),
              again = products(kCuda, dtype, width);
      for (std::int64_t i = 0; i < here.size(); ++i) {
        INFO(dtype << ", " << width << " columns, result " << i);
        CHECK(there[i].device() == kCuda);
        CHECK(same_bits(K::eval(there[i]).to("cpu"), K::eval(again[i]).to("cpu")));
        const Vec got = values(there[i]), wanted = values(here[i]);
        double most = 0;
        for (double w : wanted) most = std::fmax(most, std::fabs(w));
        check_close(got, wanted, 0, most * (dtype == float64 ? 1e-13 : 1e-5));
      }
    }
}

TEST_CASE("a sparse tensor moves between devices by its values, and says where it is", "[device][sparse]") {
  if (!has_device("cuda:0")) return;
  Tensor v = K::variable({1, 2, 3}), here = K::sparse_coo({{0, 1}, {1, 0}, {0, 1}}, v, {2, 2}), there = here.to(kCuda);
  CHECK(K::is_sparse(there));
  CHECK(there.device() == kCuda);
  CHECK(K::sparse_parts(there).values.device() == kCuda);
  CHECK(K::sparse_parts(there).indices.device() == cpu);
  CHECK(printed(there) == "(0, 1)  1.\n(1, 0)  2.\n(0, 1)  3.\n(2, 2) float32 cuda:0, sparse, 3 entries");
  CHECK(K::to_dense(there).device() == kCuda);
  CHECK(values(there) == Vec{0, 4, 2, 0});
  CHECK(values(there.to("cpu")) == Vec{0, 4, 2, 0});
  Tensor g = K::gradients(K::sum(K::square(K::to_dense(there))), {v})[0];  // by way of the copy
  CHECK(g.device() == cpu);
  CHECK(values(g) == Vec{8, 4, 8});
  CHECK(K::variable(there).device() == kCuda);
}

TEST_CASE("sparse tensors are made, joined and turned on a CUDA device", "[device][sparse]") {
  if (!has_device("cuda:0")) return;
  Tensor dense = K::constant({{0, 1, 0}, {2, 0, NAN}}).to(kCuda), a = K::to_sparse(dense);
  CHECK(a.device() == kCuda);
  CHECK(values(K::sparse_parts(a).indices) == Vec{0, 1, 1, 0, 1, 2});
  DeviceScope scope(kCuda);
  Tensor b = K::sparse_coo(K::constant({{0, 2}}, "int32"), {5}, {1, 3});  // indices of the device come to the CPU
  Tensor csr = K::sparse_csr(K::constant({0, 1, 1}, "int32"), {1}, {7}, {2, 3});
  CHECK(values(csr) == Vec{0, 7, 0, 0, 0, 0});
  Tensor joined = K::concatenate({b, csr}, 0), turned = K::transpose(joined);
  CHECK(joined.device() == kCuda);
  CHECK(values(joined) == Vec{0, 0, 5, 0, 7, 0, 0, 0, 0});
  CHECK(values(turned) == Vec{0, 0, 0, 0, 7, 0, 5, 0, 0});
  CHECK(values(K::concatenate({b, K::ones({1, 3})}, 0)) == Vec{0, 0, 5, 1, 1, 1});
  CHECK(values(K::dot(K::cast(turned, "int32"), K::constant({1, 2, 3}, "int32"))) == Vec{0, 14, 5});
  CHECK(error_of<ValueError>([] {
          K::sparse_coo({{1, 0}}, {5}, {1, 3});
        }) == "sparse_coo: indices of entry 0 are (1, 0), outside of (1, 3)");
  CHECK(error_of<DeviceError>([&] {
          K::dot(joined.to("cpu"), K::ones({3, 2}));
        }) == "dot: one operand is on cpu, another on cuda:0; move one with .to(\"cpu\")");
}

TEST_CASE("a sparse placeholder of a CUDA device takes sparse tensors from anywhere, of any number of entries",
          "[device][sparse]") {
  if (!has_device("cuda:0")) return;
  Tensor here = K::sparse_coo({{0, 2}, {1, 0}}, {10, 1}, {2, 3}),
         there = K::sparse_coo({{0, 0}}, {2}, {1, 3}).to(kCuda);
  Tensor empty = K::sparse_coo({}, {}, {4, 3});
  DeviceScope scope(kCuda);
  Tensor p = K::placeholder({K::None, 3}, None, None, /*sparse=*/true), x = K::variable({{1, 2}, {3, 4}, {5, 6}});
  Tensor y = K::dot(p, x), g = K::gradients(K::sum(K::square(y)), {x})[0];
  CHECK(p.device() == kCuda);
  auto f = K::function({p}, {y, g, K::to_dense(p), K::transpose(p)});
  for (int again = 0; again < 2; ++again) {
    Tensors out = f({here});
    for (const Tensor& t : out) CHECK(t.device() == kCuda);
    CHECK(values(out[0]) == Vec{50, 60, 1, 2});
    CHECK(values(out[1]) == Vec{2, 4, 0, 0, 1000, 1200});
    CHECK(values(out[2]) == Vec{0, 0, 10, 1, 0, 0});
    CHECK(values(out[3]) == Vec{0, 1, 0, 0, 10, 0});
    CHECK(values(f({there})[0]) == Vec{2, 4});
    CHECK(values(f({empty})[0]) == Vec(8));
  }
}
