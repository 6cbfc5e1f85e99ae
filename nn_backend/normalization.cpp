// nn_backend/normalization.cpp - normalisation.
#include <kassette/backend/normalization.h>

#include <cmath>
#include <ostream>

#include "core/rank.h"
#include "core/sparse.h"
#include "ops/engine/axes.h"
#include "ops/elementwise/binary.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;

/// Between backends a NormalizedBatch is a list of its three members.
template <>
struct ops::Unbox<backend::NormalizedBatch> {
  static backend::NormalizedBatch from(const external::Value& v) {
    if (v.size() != 3) fail_list(v, "three tensors");
    return {v[0].as_tensor(), v[1].as_tensor(), v[2].as_tensor()};
  }
};

namespace backend {

external::Value box(const NormalizedBatch& b) { return Tensors{b.normalized, b.mean, b.variance}; }

namespace {

void check_float(const Tensor& x, const char* what) {
  if (!x.defined()) fail_empty({what, "x"});
  const TensorDesc& b = Access::desc(x);
  if (is_sparse(b)) fail_sparse({what, "x"}, b);
  if (!b.dtype.is_float()) fail_not_float({what, "x"}, b.dtype);
}

/// gamma or beta; empty if it is None or an empty Tensor.
Tensor optional(const Operand& operand, DType dtype, const At& at) {
  if (operand.is_none()) return Tensor();
  Tensor t = as_tensor(operand, dtype, at);
  refuse_sparse(at, t);
  return t;
}

/// A parameter of batch_normalization, with the dtype of x, and along `axis` if its rank is 1. Half types are computed
/// in float32.
class Parameter {
 public:
  Parameter(const Operand& p, const char* name, const char* what, const Tensor& x, int axis)
      : given_(some(p, name, what), Access::desc(x).dtype, {what, name}), fitted_(fitted(given_, name, what, x, axis)) {
  }
  operator const Tensor&() const { return fitted_.defined() ? fitted_ : given_.tensor(); }
  operator In() const { return In(static_cast<const Tensor&>(*this)); }

 private:
  static const Operand& some(const Operand& p, const char* name, const char* what) {
    if (p.is_none()) fail<TypeError>({what, name}, "is None", kExpected, "it must be a number or a tensor");
    return p;
  }
  [[noreturn]] __attribute__((noinline, cold)) static void refuse(const char* what, const char* name,
                                                                  const TensorDesc& p, DType dtype) {
    if (is_sparse(p)) fail_sparse({what, name}, p);
    fail<TypeError>({what}, "x is ", dtype, ", ", name, " is ", p.dtype, kRemedy, "cast one of them (K::cast)");
  }
  /// The parameter, cast and reshaped as needed; empty if that is not necessary.
  static Tensor fitted(const Tensor& p, const char* name, const char* what, const Tensor& x, int axis) {
    DType dtype = Access::desc(x).dtype;
    if (!p.defined()) fail_empty({what, name});
    const TensorDesc& b = Access::desc(p);
    if (b.dtype != dtype || is_sparse(b)) refuse(what, name, b, dtype);
    Tensor t = dtype.size() < 4 ? cast(p, float32) : Tensor();
    int rank = Access::desc(x).rank, own = b.rank;
    if (axis == -1 || (rank >= 0 && axis == rank - 1) || own > 1 || own == 0) return t;
    if (rank < 0 || own < 0)
      fail<ValueError>({what}, "the rank of ", rank < 0 ? "x" : name, " is unknown, so ", name, " ",
                       static_cast<const TensorSpec&>(b), " cannot be put along axis ", axis, kRemedy,
                       "declare it in the placeholder");
    Dims shape(None);
    shape.size_ = rank - place_axis(what, axis, Access::desc(x));
    shape.dims_[0] = Dim(-1);
    for (int i = 1; i < shape.size_; ++i) shape.dims_[i] = Dim(1);
    return reshape(t.defined() ? t : p, shape);
  }

  Arg given_;
  Tensor fitted_;
};
bool given(const Operand& x) { return !x.is_none() && (!is_tensor_operand(x) || tensor_of(x).defined()); }

}  // namespace

NormalizedBatch normalize_batch_in_training(const Operand& operand, const Operand& gamma, const Operand& beta,
                                            const Axes& reduction_axes, double epsilon) {
  KASSETTE_DISPATCH(normalize_batch_in_training, operand, gamma, beta, reduction_axes, epsilon);
  const char* what = "normalize_batch_in_training";
  Arg x(operand, DType(), {what, "x"});
  check_float(x, what);
  DType dtype = x.desc().dtype;
  Normalized n = normalize_batch(x, optional(gamma, dtype, {what, "gamma"}), optional(beta, dtype, {what, "beta"}),
                                 axis_set(what, x, reduction_axes, /*keepdims=*/false, "reduction_axes"), epsilon);
  return {n.y, cast(n.mean, dtype), cast(n.variance, dtype)};
}

Tensor batch_normalization(const Operand& operand, const Operand& mean, const Operand& var, const Operand& beta,
                           const Operand& gamma, int axis, double epsilon) {
  KASSETTE_DISPATCH(batch_normalization, operand, mean, var, beta, gamma, axis, epsilon);
  const char* what = "batch_normalization";
  Arg x(operand, DType(), {what, "x"});
  check_float(x, what);
  if (axis != -1 && x.desc().rank >= 0) place_axis(what, axis, x.desc());
  else if (axis != -1) checked_axes(what, x, axis, /*keepdims=*/false);
  return attribute_errors(what, [&] {
    Parameter center(mean, "mean", what, x, axis);
    Tensor scale = rsqrt(Parameter(var, "var", what, x, axis), epsilon);
    if (given(gamma)) scale = apply1(binary_op<Multiply>(), {Parameter(gamma, "gamma", what, x, axis), scale});
    if (!given(beta)) return center_scale(x, center, scale, Tensor());
    return center_scale(x, center, scale, Parameter(beta, "beta", what, x, axis));
  });
}

Tensor l2_normalize(const Operand& operand, const Axes& axis) {
  KASSETTE_DISPATCH(l2_normalize, operand, axis);
  Arg arg(operand, DType(), {"l2_normalize", "x"});
  const Tensor& x = arg;
  check_float(x, "l2_normalize");
  const AxisSet axes = checked_axes("l2_normalize", x, axis, /*keepdims=*/true);
  DType dtype = x.dtype();
  // 1e-12 is 0 in float16.
  return attribute_errors("l2_normalize", [&] {
    Tensor wide = dtype.size() < 4 ? cast(x, float32) : x;
    return cast(wide / sqrt(clip(sum_by(square(wide), axes), 1e-12, HUGE_VAL)), dtype);
  });
}

std::ostream& operator<<(std::ostream& os, const NormalizedBatch& batch) {
  return os << text("NormalizedBatch(normalized=", batch.normalized, ", mean=", batch.mean,
                    ", variance=", batch.variance, ")");
}

}  // namespace backend
}  // namespace kassette
