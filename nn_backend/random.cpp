// nn_backend/random.cpp - random tensors and dropout.
#include <kassette/backend/random.h>

#include <kassette/backend/creation.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/convert.h"
#include "core/sparse.h"
#include "core/text.h"
#include "core/whole.h"
#include "ops/engine/dims.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/random/random.h"
#include "ops/shape/shaping.h"
#include "ops/engine/stop.h"

namespace kassette {
using namespace ops;
namespace backend {
namespace {

bool is_number(const Operand& x) { return Access::kind(x) >= Scalar::kBool && Access::kind(x) <= Scalar::kFloat; }
double number(const Operand& x, const At& at) {
  double v;
  write_scalar(&v, float64, x, at);
  return v;
}

/// A key for an op on these tensors: if one of them is symbolic, so is the key.
Tensor key_for(std::initializer_list<const Tensor*> tensors, const Scalar& seed, const char* what) {
  bool symbolic = context().symbolic;
  for (const Tensor* t : tensors) symbolic |= t->symbolic();
  Scoped<bool> scope(context().symbolic, symbolic);
  return next_key(seed, what);
}

/// Common to the draws of a K function. Bad dtypes and shapes are found before a seed is taken.
struct Sample {
  const char* what;
  DType dtype;
  Tensor dims, key;
  const char *low = "minval", *high = "maxval";  // the names of the bounds

  Sample(const char* name, const Dims& shape, DType given)
      : what(name), dtype(given.given() ? given : default_float()), dims(dims_tensor(shape, name)) {}
  Draw draw(const Scalar& seed) {
    key = key_for({&dims}, seed, what);
    return {key, dims, dtype};
  }
  void check_float() const {
    if (!dtype.is_float()) fail<TypeError>({what, "dtype"}, "is ", dtype, kExpected, "it must be a float dtype");
  }
  /// A parameter as a tensor of the samples' dtype.
  Tensor parameter(const Operand& x, const char* name) const {
    Tensor t = as_tensor(x, dtype, {what, name});
    if (!t.defined()) fail_empty({what, name});
    refuse_sparse({what, name}, t);
    if (t.dtype() != dtype)
      fail<TypeError>({what, name}, "is ", t.dtype(), " and the samples are ", dtype, kRemedy,
                      "cast it (K::cast) or give dtype");
    return t;
  }
};

/// f(drawn) as a draw: the ops of f are recorded, so that they are computed again whenever the draw itself is repeated.
template <class F>
Tensor still_drawn(const Tensor& drawn, F f) {
  TensorDesc b = Access::desc(drawn);
  bool eager_draw = b.flags & kDraw;
  b.flags = static_cast<std::uint8_t>(b.flags & ~kDraw);
  Tensor result = f(Access::wrap(std::move(b)));
  if (eager_draw && !result.symbolic()) Access::desc(result).flags |= kDraw;
  return result;
}

bool has_history(const Tensor& x) { return x.defined() && Access::desc(x).node && !(Access::desc(x).flags & kDraw); }

/// Throws ValueError unless a parameter and the samples broadcast.
void check_broadcast(const At& at, const Tensor& parameter, const TensorSpec& z) {
  const TensorSpec& p = Access::desc(parameter);
  for (int i = 1; i <= p.rank && i <= z.rank; ++i)
    if (const std::int64_t n = p.dims[p.rank - i], m = z.dims[z.rank - i]; differ(n, m) && n != 1 && m != 1)
      fail<ValueError>(at, "of shape ", p, " does not broadcast with samples of shape ", z);
}

/// low + scale * drawn for parameters that are tensors.
Tensor placed(const Tensor& drawn, const Tensor& shift, const Tensor& scale) {
  if (has_history(shift) || has_history(scale)) return shift + scale * drawn;
  return still_drawn(drawn, [&](const Tensor& z) { return shift + scale * z; });
}

/// Throws ValueError if a standard deviation is negative. NaN gives NaN.
void check_spread(const At& at, double v) {
  if (v < 0) fail<ValueError>(at, "is ", v, kExpected, "it must be at least 0");
}

using NormalDraw = Tensor (*)(const Draw& draw, double mean, double stddev);
Tensor normal(const char* what, NormalDraw draw, const Dims& shape, const Operand& mean, const Operand& stddev,
              DType dtype, const Scalar& seed) {
  Sample s(what, shape, dtype);
  s.check_float();
  if (is_number(stddev)) check_spread({what, "stddev"}, number(stddev, {what, "stddev"}));
  if (is_number(mean) && is_number(stddev))
    return draw(s.draw(seed), number(mean, {what, "mean"}), number(stddev, {what, "stddev"}));
  Tensor shift = s.parameter(mean, "mean"), scale = s.parameter(stddev, "stddev");
  if (!Access::desc(s.dims).node) {  // else the shape may be another when a function runs; the ops check it then
    const TensorSpec samples = shape_from(s.dims, s.dtype, what);
    check_broadcast({what, "mean"}, shift, samples);
    check_broadcast({what, "stddev"}, scale, samples);
  }
  return attribute_errors(what, [&] { return placed(draw(s.draw(seed), 0, 1), shift, scale); });
}

[[noreturn]] void fail_fraction(const Sample& s, const Operand& x, const char* name) {
  fail<TypeError>({s.what, name}, "is ", scalar_text(x), " and the samples are ", s.dtype, kExpected,
                  "bounds must be integers, as in random_uniform(shape, 0, 10, \"", s.dtype, "\")");
}
/// The dtype of the bounds of integers.
DType bound_dtype(const Sample& s) { return s.dtype == uint64 ? uint64 : int64; }
/// An integer bound, which must be an integer number.
Whole integer_bound(const Sample& s, const Operand& x, const char* name) {
  bool integral = Access::kind(x) == Scalar::kInt || Access::kind(x) == Scalar::kUint;
  bool zero = Access::kind(x) == Scalar::kFloat && Access::float_value(x) == 0;  // the default of minval
  if (!integral && !zero) fail_fraction(s, x, name);
  const Whole v = integral ? whole_value(x) : 0;
  if (v > INT64_MAX && s.dtype != uint64)
    fail<ValueError>({s.what, name}, "is ", scalar_text(x), ", which does not fit int64");
  return v;
}
Whole checked_low(const Sample& s, const Operand& x) {
  const Whole low = integer_bound(s, x, s.low);
  scalar_tensor(x, s.dtype, {s.what, s.low});  // throws if it does not fit
  return low;
}
Whole checked_high(const Sample& s, const Operand& x) {
  if (Access::kind(x) == Scalar::kFloat) fail_fraction(s, x, s.high);
  const Whole high = integer_bound(s, x, s.high);
  dispatch(s.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if constexpr (std::is_integral_v<T>) {
      constexpr Whole lowest = std::numeric_limits<T>::min(), highest = std::numeric_limits<T>::max();
      if (high - 1 < lowest || high - 1 > highest)
        fail<ValueError>({s.what, s.high}, "is ", whole_text(high), kExpected, s.dtype, " holds ", whole_text(lowest),
                         " to ", whole_text(highest), ", and samples are below ", s.high);
    }
  });
  return high;
}
void check_order(const Sample& s, Whole low, Whole high) {
  if (low >= high)
    fail<ValueError>({s.what}, s.low, ' ', whole_text(low), " is not below ", s.high, ' ', whole_text(high));
}
Tensor bound_tensor(const Sample& s, Whole v) {
  return scalar_tensor(v < 0 ? Scalar(static_cast<std::int64_t>(v)) : Scalar(static_cast<std::uint64_t>(v)),
                       bound_dtype(s));
}
Whole bound_value(const Tensor& t) {
  return t.dtype() == uint64 ? Whole(t.item<std::uint64_t>()) : Whole(t.item<std::int64_t>());
}
Tensor uniform_integers(Sample& s, const Operand& minval, const Operand& maxval, const Scalar& seed) {
  if (is_tensor_operand(minval) || is_tensor_operand(maxval)) {
    Tensor low = is_tensor_operand(minval) ? s.parameter(minval, s.low) : bound_tensor(s, checked_low(s, minval));
    Tensor high = is_tensor_operand(maxval) ? s.parameter(maxval, s.high) : bound_tensor(s, checked_high(s, maxval));
    return attribute_errors(s.what, [&] {
      low = cast(low, bound_dtype(s)).to(cpu), high = cast(high, bound_dtype(s)).to(cpu);
      if (!low.symbolic() && !high.symbolic() && low.ndim() == 0 && high.ndim() == 0)  // before a seed is taken
        check_order(s, bound_value(low), bound_value(high));
      return random_integers(s.draw(seed), low, high);
    });
  }
  const Whole low = checked_low(s, minval), high = checked_high(s, maxval);
  check_order(s, low, high);
  return attribute_errors(s.what, [&] {
    return random_integers(s.draw(seed), static_cast<std::int64_t>(low), static_cast<std::int64_t>(high));
  });
}

/// Copies bounds from the CPU to the device of the samples.
Tensor on_device(const Tensor& bound, Device place) {
  return place != cpu && bound.device() == cpu ? bound.to(place) : bound;
}

/// A bound of floats.
double finite_bound(const Sample& s, const Operand& x, const char* name) {
  const double v = number(x, {s.what, name});
  if (!std::isfinite(v)) fail<ValueError>({s.what, name}, "is ", v, kExpected, "it must be finite");
  return v;
}
Tensor uniform(Sample& s, const Operand& minval, const Operand& maxval, const Scalar& seed) {
  if (s.dtype.is_integer()) return uniform_integers(s, minval, maxval, seed);
  s.check_float();
  if (is_number(minval) && is_number(maxval)) {
    double low = finite_bound(s, minval, s.low), high = finite_bound(s, maxval, s.high);
    check_bounds(low, high, s.dtype);
    return ops::random_uniform(s.draw(seed), low, high);
  }
  Tensor low = s.parameter(minval, s.low), high = s.parameter(maxval, s.high);
  return attribute_errors(s.what, [&] {
    const Draw draw = s.draw(seed);
    return random_between(draw, on_device(low, draw.device), on_device(high, draw.device));
  });
}

/// The shape of a variable as numbers.
Shape fixed_shape(const Dims& shape, const char* what) {
  Tensor dims = dims_tensor(shape, what);
  if (!dims.symbolic()) return shape_from(dims, default_float(), what).shape();
  Shape known = apply1(broadcast_to_op, {scalar_tensor(0, default_float()), dims}).shape();
  if (!known.known())
    fail<ValueError>({what, "shape"}, known, " depends on a placeholder", kExpected, "a variable has known sizes");
  return known;
}
/// A variable that holds one draw, which is drawn now, even if draws would only be recorded.
template <class F>
Tensor variable_of(F sample, DType dtype, Name name) {
  Scoped<bool> scope(context().symbolic, false);
  return variable(sample(), dtype, name);
}

}  // namespace

void set_random_seed(Scalar seed) {
  KASSETTE_DISPATCH(set_random_seed, seed);
  if (Access::kind(seed) != Scalar::kInt && Access::kind(seed) != Scalar::kUint)
    fail<TypeError>({"set_random_seed", "seed"}, "is ", scalar_text(seed), kExpected, "it must be an integer");
  ops::set_random_seed(static_cast<std::uint64_t>(Access::int_value(seed)));
}

Tensor random_normal(const Dims& shape, const Operand& mean, const Operand& stddev, DType dtype, Scalar seed) {
  KASSETTE_DISPATCH(random_normal, shape, mean, stddev, dtype, seed);
  SeedScope scope;
  return normal("random_normal", ops::random_normal, shape, mean, stddev, dtype, seed);
}
Tensor truncated_normal(const Dims& shape, const Operand& mean, const Operand& stddev, DType dtype, Scalar seed) {
  KASSETTE_DISPATCH(truncated_normal, shape, mean, stddev, dtype, seed);
  SeedScope scope;
  return normal("truncated_normal", ops::truncated_normal, shape, mean, stddev, dtype, seed);
}

Tensor random_uniform(const Dims& shape, const Operand& minval, const Operand& maxval, DType dtype, Scalar seed) {
  KASSETTE_DISPATCH(random_uniform, shape, minval, maxval, dtype, seed);
  SeedScope scope;
  Sample s("random_uniform", shape, dtype);
  return uniform(s, minval, maxval, seed);
}

Tensor random_binomial(const Dims& shape, const Operand& p, DType dtype, Scalar seed) {
  KASSETTE_DISPATCH(random_binomial, shape, p, dtype, seed);
  SeedScope scope;
  Sample s("random_binomial", shape, dtype);
  if (is_number(p)) {
    const double share = number(p, {s.what, "p"});
    if (!(share >= 0 && share <= 1))
      fail<ValueError>({s.what, "p"}, "is ", share, kExpected, "a probability must be in [0, 1]");
    return attribute_errors(s.what, [&] { return bernoulli(s.draw(seed), share); });
  }
  Tensor share = as_tensor(p, default_float(), {s.what, "p"});
  if (!share.defined()) fail_empty({s.what, "p"});
  refuse_sparse({s.what, "p"}, share);
  DType result = s.dtype;
  s.dtype = share.dtype();
  s.check_float();
  if (s.dtype.size() < 4) share = cast(share, s.dtype = float32);  // a rounded number is below p too rarely
  auto hits = [&](const Tensor& u) { return ops::cast(ops::less(u, share), result); };
  Tensor u = ops::random_uniform(s.draw(seed));
  return attribute_errors(s.what, [&] { return has_history(share) ? hits(u) : still_drawn(u, hits); });
}

Tensor dropout(const Operand& x, double level, const Dims& noise_shape, Scalar seed) {
  KASSETTE_DISPATCH(dropout, x, level, noise_shape, seed);
  SeedScope scope;
  Arg t(x, DType(), {"dropout", "x"});
  if (!(level >= 0 && level < 1))
    fail<ValueError>({"dropout", "level"}, "is ", level, kExpected, "it must be at least 0 and below 1");
  if (!t.tensor().defined()) fail_empty({"dropout", "x"});
  if (!t.desc().dtype.is_float())
    fail<ValueError>({"dropout", "x"}, "is ", t.desc().dtype, kExpected, "it must be a float dtype");
  Tensor dims =
      noise_shape.size_ < 0 && !noise_shape.whole_ ? Tensor() : dims_tensor(noise_shape, "dropout", "noise_shape");
  if (level == 0) return t.tensor();
  Tensor key = key_for({&t.tensor(), &dims}, seed, "dropout");
  return ops::dropout(t, key, dims, level);
}

Tensor random_uniform_variable(const Dims& shape, double low, double high, DType dtype, Name name, Scalar seed) {
  KASSETTE_DISPATCH(random_uniform_variable, shape, low, high, dtype, name, seed);
  SeedScope scope;
  const char* what = "random_uniform_variable";
  if (!dtype.given()) dtype = default_float();
  Shape fixed = fixed_shape(shape, what);
  // Bounds are passed as doubles; for an integer dtype they must be integers.
  auto bound = [&](double v) {
    if (!dtype.is_integer() || v != std::floor(v) || v < -0x1p63 || v >= 0x1p64) return Operand(v);
    return v < 0x1p63 ? Operand(static_cast<std::int64_t>(v)) : Operand(static_cast<std::uint64_t>(v));
  };
  return attribute_errors(what, [&] {
    return variable_of(
        [&] {
          Sample s(what, fixed, dtype);
          s.low = "low", s.high = "high";
          return uniform(s, bound(low), bound(high), seed);
        },
        dtype, name);
  });
}
Tensor random_normal_variable(const Dims& shape, double mean, double scale, DType dtype, Name name, Scalar seed) {
  KASSETTE_DISPATCH(random_normal_variable, shape, mean, scale, dtype, name, seed);
  SeedScope scope;
  const char* what = "random_normal_variable";
  if (!dtype.given()) dtype = default_float();
  check_spread({what, "scale"}, scale);
  Shape fixed = fixed_shape(shape, what);
  return attribute_errors(
      what, [&] { return variable_of([&] { return random_normal(fixed, mean, scale, dtype, seed); }, dtype, name); });
}

}  // namespace backend
}  // namespace kassette
