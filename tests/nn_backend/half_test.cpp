// tests/nn_backend/half_test.cpp - float16 and bfloat16 are computed in float32 and rounded once: against the float32
// results, rounded one by one.
#include <kassette/backend.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "core/convert.h"
#include "core/impl.h"
#include "ops/elementwise/cast.h"
#include "tests/ops/levels.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

/// One by one, as core/convert.h has it.
Tensor converted(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype || !x.dtype().is_float()) return x;
  TensorSpec spec = Access::desc(x);
  spec.dtype = dtype;
  Tensor y = empty_tensor(spec);
  convert(Access::desc(y).data(), dtype, Access::desc(x).data(), x.dtype(), x.size());
  return y;
}
bool same(const Tensor& a, const Tensor& b) {
  const TensorDesc &x = Access::desc(a), &y = Access::desc(b);
  return x.dtype == y.dtype && x.bytes() == y.bytes() &&
         std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.bytes())) == 0;
}

/// Numbers between -1 and 1 of many sizes, subnormal float16 among them.
Tensor numbers(const Shape& shape, DType dtype, unsigned seed) {
  std::vector<float> v(static_cast<std::size_t>(shape.numel()));
  for (float& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = std::ldexp(static_cast<float>(static_cast<int>(seed >> 8) - (1 << 23)), seed >> 30 ? -23 : -44);
  }
  return converted(K::reshape(K::constant(v, float32), shape), dtype);
}

struct Row {
  const char* name;
  std::function<Tensors(const Tensors&)> f;
};

/// x and dy have several times as many elements as one thread converts at once, and a remainder.
const Row kRows[] = {
    {"normalize_batch_in_training, channels last",
     [](const Tensors& in) {
       Tensor x = K::variable(in[0], in[0].dtype()), gamma = K::variable(in[2], in[0].dtype());
       Tensor y = K::normalize_batch_in_training(x, gamma, K::None, {0, 1, 2}).normalized;
       Tensors g = K::gradients(K::sum(y * in[1]), {x, gamma});
       return Tensors{K::eval(y), K::eval(g[0]), K::eval(g[1])};
     }},
    {"normalize_batch_in_training, a middle axis",
     [](const Tensors& in) {
       Tensor x = K::variable(in[0], in[0].dtype());
       Tensor y = K::normalize_batch_in_training(x, K::None, K::None, {0, 2, 3}).normalized;
       return Tensors{K::eval(y), K::eval(K::gradients(K::sum(y * in[1]), {x})[0])};
     }},
    {"sum",
     [](const Tensors& in) {
       return Tensors{K::sum(in[0], 1), K::sum(in[0])};
     }},
    {"max", [](const Tensors& in) { return Tensors{K::max(in[0], -1)}; }},
    {"var",
     [](const Tensors& in) {
       return Tensors{K::var(in[0], {1, 2})};
     }},
    {"argmax", [](const Tensors& in) { return Tensors{K::argmax(in[0], -1)}; }},
    {"any", [](const Tensors& in) { return Tensors{K::any(in[0], -1)}; }},
    {"cumsum",
     [](const Tensors& in) {
       return Tensors{K::cumsum(in[0], -1), K::cumsum(in[0], 1)};
     }},
    {"cumprod", [](const Tensors& in) { return Tensors{K::cumprod(in[0], 1)}; }},
    {"softmax", [](const Tensors& in) { return Tensors{K::softmax(in[0])}; }},
    {"logsumexp", [](const Tensors& in) { return Tensors{K::logsumexp(in[0], -1)}; }},
    {"categorical_crossentropy",
     [](const Tensors& in) { return Tensors{K::categorical_crossentropy(in[0], in[1], /*from_logits=*/true)}; }},
    {"dot",
     [](const Tensors& in) {
       return Tensors{K::dot(K::reshape(in[0], {-1, 41}), K::reshape(in[1], {41, -1}))};
     }},
};

}  // namespace

TEST_CASE(
    "what is computed of float16 and bfloat16 is the float32 result rounded once, on every level and number of threads",
    "[cast][normalization][reduce][softmax]") {
  for (DType dtype : {float16, bfloat16}) {
    const Tensors in{numbers({9, 13, 41, 23}, dtype, 1), numbers({9, 13, 41, 23}, dtype, 2), numbers({23}, dtype, 3)};
    const Tensors wide{converted(in[0], float32), converted(in[1], float32), converted(in[2], float32)};
    at_every_level([&](devices::Level) {
      for (int threads : {1, 2, 3}) {
        set_num_threads(threads);
        for (const Row& row : kRows) {
          const Tensors made = row.f(in), wanted = row.f(wide);
          for (std::int64_t i = 0; i < made.size(); ++i) {
            INFO(row.name << ", result " << i << ", of " << dtype.name() << " on " << threads << " threads");
            CHECK(same(made[i], converted(wanted[i], dtype)));
          }
        }
      }
    });
  }
}

TEST_CASE("elements cast to their own dtype keep their bits, those of signalling NaN too", "[cast]") {
  std::vector<std::uint16_t> bits(70001), copy(bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  cast_elements(copy.data(), float16, bits.data(), float16, static_cast<std::int64_t>(bits.size()));
  CHECK(copy == bits);
  cast_elements(copy.data(), bfloat16, bits.data(), bfloat16, static_cast<std::int64_t>(bits.size()));
  CHECK(copy == bits);
}
