// nn_backend/testing/matrices.cpp - random matrices with a property: orthogonal, definite, of a condition number.
#include <kassette/numpy/creation.h>
#include <kassette/testing.h>

#include <cmath>
#include <vector>

#include "core/context.h"
#include "core/text.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/linalg/linalg.h"
#include "ops/product/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace testing {
namespace {

/// Calls f with the Random of this thread that was made last, or with a new one.
template <class F>
Tensor with_random(F&& f) {
  if (auto* living = static_cast<Random*>(context().random_scopes)) return f(*living);
  Random random;
  return f(random);
}
void check_arguments(const char* what, std::int64_t n, double kappa, const MatrixOptions& o) {
  if (n < 0) fail<ValueError>({what, "n"}, "is ", n, kExpected, "it must be at least 0");
  if (!(kappa >= 1) || std::isinf(kappa))
    fail<ValueError>({what, "kappa"}, "is ", kappa, kExpected, "it must be at least 1, and finite");
  if (!o.dtype.is_float()) fail<TypeError>({what, "dtype"}, "is ", o.dtype, kExpected, "it must be a float dtype");
  bool known = o.batch.size_ >= 0 && o.batch.size_ <= kMaxRank - 2;
  for (int i = 0; i < o.batch.size_ && known; ++i)
    known = known && !o.batch.dims_[i].tensor_ && o.batch.dims_[i].value_ >= 0;
  if (!known) fail<ValueError>({what, "batch"}, "is no list of at most ", kMaxRank - 2, " numbers");
}
/// In float64. The columns of q get the signs of r's diagonal, which makes q as likely as any other (Mezzadri 2007).
Tensor orthogonal(Random& random, std::int64_t n, const Dims& batch) {
  std::vector<std::int64_t> shape;
  for (int i = 0; i < batch.size_; ++i) shape.push_back(batch.dims_[i].value_);
  shape.push_back(n);
  shape.push_back(n);
  const ops::Qr f = ops::qr(random.normal(shape));
  const Tensor diagonal = ops::sum(f.r * ops::identity_like(f.r), -2, /*keepdims=*/true);
  return ops::where(ops::less(diagonal, 0), -f.q, f.q);
}
/// From 1 down to 1 / kappa.
Tensor spectrum(std::int64_t n, double kappa) {
  return numpy::logspace(0, -std::log10(kappa), n, 10, {.dtype = float64});
}

}  // namespace

Tensor random_orthogonal(std::int64_t n, const MatrixOptions& options) {
  check_arguments("random_orthogonal", n, 1, options);
  return with_random([&](Random& random) { return ops::cast(orthogonal(random, n, options.batch), options.dtype); });
}
Tensor random_spd(std::int64_t n, double kappa, const MatrixOptions& options) {
  check_arguments("random_spd", n, kappa, options);
  return with_random([&](Random& random) {
    const Tensor q = orthogonal(random, n, options.batch);
    const Tensor x = ops::matmul(q * spectrum(n, kappa), q, false, true);
    return ops::cast((x + ops::transposed(x)) * 0.5, options.dtype);
  });
}
Tensor conditioned(std::int64_t n, double kappa, const MatrixOptions& options) {
  check_arguments("conditioned", n, kappa, options);
  return with_random([&](Random& random) {
    const Tensor left = orthogonal(random, n, options.batch), right = orthogonal(random, n, options.batch);
    return ops::cast(ops::matmul(left * spectrum(n, kappa), right), options.dtype);
  });
}

}  // namespace testing
}  // namespace kassette
