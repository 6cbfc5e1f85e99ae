// nn_backend/numpy/draws.h - what distributions are made of: their parameters, and functions of uniform numbers.
#pragma once
#include <kassette/numpy/random.h>

#include "core/convert.h"
#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "ops/engine/dims.h"
#include "ops/random/generator.h"
#include "ops/shape/checked.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"

namespace kassette::numpy::random {

inline bool is_number(const Operand& x) {
  return Access::kind(x) >= Scalar::kBool && Access::kind(x) <= Scalar::kFloat;
}
inline double number(const Operand& x, const At& at) {
  double v;
  write_scalar(&v, float64, x, at);
  return v;
}
/// Throws ValueError if a number is below 0 or NaN.
inline void check_not_negative(const Operand& x, const At& at) {
  if (!is_number(x)) return;
  if (const double v = number(x, at); !(v >= 0)) fail<ValueError>(at, "is ", v, kExpected, "it must be at least 0");
}
inline void check_probability(const Operand& x, const At& at) {
  if (!is_number(x)) return;
  if (const double v = number(x, at); !(v >= 0 && v <= 1))
    fail<ValueError>(at, "is ", v, kExpected, "a probability must be in [0, 1]");
}
inline DType sample_dtype(const char* what, DType dtype, DType instead) {
  if (!dtype.given()) return instead;
  if (!dtype.is_float()) fail<TypeError>({what, "dtype"}, "is ", dtype, kExpected, "it must be a float dtype");
  return dtype;
}
inline bool has_history(const Tensor& x) { return Access::desc(x).node && !(Access::desc(x).flags & kDraw); }

/// f(draws) as a draw: its ops are recorded, so that they are computed again whenever the draws are repeated. If a
/// parameter has a history, the result has one as well, and no longer counts as a draw.
template <class F>
inline Tensor from_draws(Tensors draws, const Tensors& parameters, F f) {
  for (const Tensor& p : parameters)
    if (has_history(p)) return f(draws);
  bool eager_draw = false;
  for (Tensor& t : draws) {
    TensorDesc b = Access::desc(t);
    eager_draw |= (b.flags & kDraw) != 0;
    b.flags = static_cast<std::uint8_t>(b.flags & ~kDraw);
    t = Access::wrap(std::move(b));
  }
  Tensor result = f(draws);
  if (eager_draw && !result.symbolic()) Access::desc(result).flags |= kDraw;
  return result;
}

/// The parameters of a distribution and the shape of its samples.
struct Parameters {
  const char* what;
  Tensors at;
  DType dtype;
  Tensor dims;

  Parameters(const char* name, std::initializer_list<NamedOperand> given, const Dims& size, DType asked)
      : what(name), at(float_tensors(name, given)) {
    dtype = sample_dtype(name, asked, at[0].dtype());
    for (Tensor& t : at) t = ops::cast(t, dtype);
    if (size.size_ >= 0 || size.whole_) {
      dims = ops::dims_tensor(size, name, "size");
    } else {
      Tensor all = ops::zeros_of(at[0]);
      for (const Tensor& t : at) all = all + ops::zeros_of(t);
      dims = ops::shape_of(all, int64);
    }
  }
  /// What decides whether a draw is only recorded.
  Tensors inputs() const {
    Tensors all = at;
    all.push_back(dims);
    return all;
  }
  ops::Draw draw(const Tensor& key, DType of) const { return {key, dims, of, at[0].device()}; }
  /// Throws ValueError if samples of the size do not have room for the parameters.
  Tensor fitting(const Tensor& samples) const {
    auto check = [name = what](const TensorSpec& of_samples, const TensorSpec& size) {
      if (!size.compatible(of_samples))
        fail<ValueError>({name, "size"}, "is ", size, kExpected, "the parameters have samples of shape ", of_samples);
    };
    if (samples.symbolic() || dims.symbolic())
      return ops::checked(samples, ops::broadcast_to(ops::number_like(0, samples), dims), check);
    check(Access::desc(samples), ops::shape_from(dims, dtype, what, "size"));
    return samples;
  }
};
/// -log(1 - u) for a uniform u: finite, since u is below 1.
inline Tensor exponential_of(const Tensor& u) { return -ops::log1p(-u); }
/// The least of the uniform numbers of a Gumbel draw: less than half of the distance between two.
inline constexpr double kLeast = 0x1p-26;
inline Tensor gumbel_of(const Tensor& u) { return -ops::log(-ops::log(u)); }
inline DType wide(DType dtype) { return dtype.size() < 4 ? float32 : dtype; }

/// The shape argument `size` of samples without parameters.
inline Tensor plain_dims(const char* what, const Dims& size) {
  return size.size_ < 0 && !size.whole_ ? ops::dims_tensor(Dims({}), what, "size")
                                        : ops::dims_tensor(size, what, "size");
}

/// The generator of the functions that have none.
const Generator& shared();

}  // namespace kassette::numpy::random
