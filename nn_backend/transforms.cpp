// nn_backend/transforms.cpp - functions of functions, by the tape.
#include <kassette/transforms.h>

#include <memory>
#include <vector>

#include <kassette/backend/rnn.h>
#include <kassette/backend/creation.h>
#include <kassette/backend/graph.h>
#include <kassette/numpy/creation.h>

#include "autograd/loops/recompute.h"
#include "autograd/tape/deferred.h"
#include "nn_backend/batching.h"
#include "core/text.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/error_attribution.h"
#include "ops/custom/host_function.h"
#include "ops/engine/stop.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace {

/// A tensor with the value of x to which gradients can lead: itself on the tape of x, if x is on one.
Tensor traced(const Tensor& x, const char* what) {
  if (!x.defined()) fail_empty({what, "x"});
  if (!x.dtype().is_float())
    fail<TypeError>({what, "x"}, "is ", x.dtype(), kExpected, "it must be of floats", kRemedy,
                    "cast it first (K::cast)");
  if (Access::desc(x).node)  // a random draw that has a value is on the tape, what is computed from it is not
    if (Tensor same = ops::identity(x); Access::desc(same).node) return same;
  return backend::variable(x, x.dtype());
}
Tensors traced_all(const Tensors& x, const char* what) {
  Tensors all;
  for (const Tensor& t : x) all.push_back(traced(t, what));
  return all;
}
/// args with one of them traced.
Tensors with_traced(const Tensors& args, int argument, const char* what) {
  if (argument < 0 || argument >= args.size())
    fail<ValueError>({what, "argument"}, "is ", argument, kExpected, "the function is called with ", args.size());
  Tensors all = args;
  all[argument] = traced(args[argument], what);
  return all;
}
/// Zeros in place of a gradient that does not exist.
Tensor or_zeros(const Tensor& gradient, const Tensor& x) { return gradient.defined() ? gradient : ops::zeros_of(x); }
Tensor gradient_of(const Tensor& y, const Tensor& x) { return or_zeros(backend::gradients(y, {x})[0], x); }

Tensor zeros(const Dims& shape, const Tensor& like) { return ops::broadcast_to(ops::number_like(0, like), shape); }
/// The unit vectors of n elements like x, as rows.
Tensor units(std::int64_t n, const Tensor& x) { return numpy::eye(n, None, 0, x.dtype()).to(x.device()); }

// Note [Rows of a Jacobian]
// Each row of a Jacobian is a backward pass over the same segment of the tape, with another cotangent: the body of a
// map_fn. Many rows of values are computed by a function of the cotangent instead, which is compiled once, and get one
// deferred node, which stands for the map_fn if the Jacobian is itself differentiated or becomes part of a function.
constexpr std::int64_t kRowsForAFunction = 16;

Tensor row_of(const Tensor& y, const Tensor& x, const Tensor& cotangent) {
  return ops::flatten(gradient_of(ops::sum(y * cotangent), x), 0);
}
Tensor mapped_rows(const Tensor& y, const Tensor& x) {
  return backend::map_fn([&](const Tensor& dy) { return row_of(y, x, dy); }, units(y.size(), y));
}
struct DeferredRows final : autograd::Deferred {
  Tensor y, x;
  Tensors expand(const Node&) const override {
    const Scoped<bool> on(context().recording, true);
    return mapped_rows(y, x);
  }
  Tensors computed_from(const Node&) const override { return y; }
};
/// The Jacobian of y, which is flat.
Tensor rows_of(const Tensor& y, const Tensor& x) {
  if (!Access::desc(y).node) return zeros({y.size(), x.size()}, x);
  if (y.size() < kRowsForAFunction || Access::desc(y).symbolic() || context().symbolic) return mapped_rows(y, x);
  const Tensor cotangent = backend::placeholder({y.size()}, None, y.dtype());
  const auto row = backend::function(cotangent, row_of(y, x, cotangent));
  Tensors matrix;
  {
    const Scoped<bool> off(context().recording, false);
    const Tensor all = units(y.size(), y);
    Tensors rows;
    for (std::int64_t i = 0; i < y.size(); ++i) rows.push_back(row(all[i])[0]);
    matrix.push_back(ops::stack(rows, 0));
  }
  if (!context().recording) return matrix[0];
  auto* held = new DeferredRows;
  const Ref<Extra> kept = Ref<Extra>::adopt(held);
  held->y = y;
  held->x = x;
  autograd::defer(matrix, kept, y);
  return matrix[0];
}
/// The same by its columns: the gradient is linear in the cotangent u, and its derivative by u along dx is that of y.
Tensor columns_of(const Tensor& y, const Tensor& x) {
  const Tensor u = traced(ops::zeros_of(y), "jacobian");
  const Tensor g = backend::gradients(ops::sum(y * u), {x})[0];
  return g.defined() ? ops::permute(rows_of(ops::flatten(g, 0), u), {1, 0}) : zeros({y.size(), x.size()}, x);
}

Tensor one_number(Tensor y, const char* what) {
  if (!y.defined()) fail_empty({what, "the result of f"});
  const TensorDesc& b = Access::desc(y);
  if (b.known() && b.numel() != 1)
    fail<ValueError>({what, "f"}, "returns shape ", y.shape(), kExpected, "it must return one number", kRemedy,
                     "jacobian takes more");
  return y;
}

/// The user's functions as an op takes them.
class OwnedFunctions final : public ops::UserFunctions {
 public:
  explicit OwnedFunctions(detail::UserOp* op) : op_(op) {}
  Tensor value(const Tensors& x) const override { return op_->value(x); }
  Shape shape(const Shape* x) const override { return op_->shape(x); }
  Tensors vjp(const Tensors& list) const override { return op_->vjp(list); }
  bool has_gradient() const override { return op_->has_gradient(); }

 private:
  std::unique_ptr<detail::UserOp> op_;
};

}  // namespace

namespace detail {

UserOp::~UserOp() = default;
Tensor UserOp::value(const Tensors&) const { return Tensor(); }
Shape UserOp::shape(const Shape*) const { return Shape(); }

ValueAndGrad value_and_grad_of(OfList f, const Tensors& args, int argument, const char* what) {
  const Tensors in = with_traced(args, argument, what);
  const Tensor y = one_number(f(in), what);
  return {y, gradient_of(ops::sum(y), in[argument])};
}

Tensor jacobian_of(OfList f, const Tensors& args, int argument) {
  const Tensors in = with_traced(args, argument, "jacobian");
  const Tensor& x = in[argument];
  const Tensor y = f(in);
  if (!y.defined()) fail_empty({"jacobian", "the result of f"});
  if (!y.shape().known() || !x.shape().known())
    fail<ValueError>({"jacobian", "f"}, "returns shape ", y.shape(), " for ", x.shape(), kExpected,
                     "the sizes must be known");
  std::vector<std::int64_t> shape;
  for (const Shape& s : {y.shape(), x.shape()}) shape.insert(shape.end(), s.begin(), s.end());
  if (shape.size() > static_cast<std::size_t>(kMaxRank))
    fail<ValueError>({"jacobian", "f"}, "returns shape ", y.shape(), " for ", x.shape(), kExpected, "both may have ",
                     kMaxRank, " axes together");
  if (y.size() == 0 || x.size() == 0) return zeros(shape, x);
  const Tensor flat = ops::flatten(y, 0);
  return ops::reshape(x.size() < y.size() ? columns_of(flat, x) : rows_of(flat, x), shape);
}

Tensor hessian_of(OfList f, const Tensors& args, int argument) {
  auto slope = [&](const Tensors& in) { return value_and_grad_of(f, in, argument, "hessian").gradient; };
  return jacobian_of(OfList(slope), args, argument);
}

Tensor vmap_of(OfList f, const Tensors& args) {
  if (args.empty()) fail<ValueError>({"vmap", "x"}, "is an empty list", kExpected, "there must be an argument");
  DType dtype;
  if (Tensor y = batched(f, args, &dtype); y.defined()) return y;
  return backend::map_fn([&](const Tensors& row) { return f(row); }, args, {}, dtype);
}

Tensor custom_gradient_of(OfList f, const Tensors& args, UserOp* op) {
  auto owner = std::make_unique<OwnedFunctions>(op);
  if (args.empty())
    fail<ValueError>({"custom_gradient", "x"}, "is an empty list", kExpected, "there must be an argument");
  const Tensor y = f(args);
  if (!y.defined()) fail_empty({"custom_gradient", "the result of f"});
  return ops::custom_gradient(ops::stop_gradient(y), args, std::move(owner));
}
Tensor checkpoint_of(OfList f, const Tensors& args) { return autograd::recomputed("checkpoint", args, f); }
Tensor host_call_of(UserOp* op, DType dtype, const Tensors& args) {
  return ops::host_call(std::make_unique<OwnedFunctions>(op), dtype, args);
}

}  // namespace detail

ValueAndTangent jvp(Callable<Tensor(const Tensors&)> f, const Tensors& x, const Tensors& tangents) {
  if (x.size() != tangents.size())
    fail<ValueError>({"jvp", "tangents"}, "has ", tangents.size(), " tensors and x ", x.size(), kExpected,
                     "there must be one for each");
  const Tensors in = traced_all(x, "jvp");
  const Tensor y = f(in);
  if (!y.defined()) fail_empty({"jvp", "the result of f"});
  // The gradients are linear in the cotangent u: their derivative by u along the tangents is the derivative of f.
  const Tensor u = traced(ops::zeros_of(y), "jvp");
  const Tensors gradients = backend::gradients(ops::sum(y * u), in);
  Tensor along;
  for (std::int64_t i = 0; i < in.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Tensor part = ops::sum(gradients[i] * tangents[i]);
    along = along.defined() ? along + part : part;
  }
  return {y, along.defined() ? gradient_of(along, u) : ops::zeros_of(y)};
}

ValueAndGradients vjp(Callable<Tensor(const Tensors&)> f, const Tensors& x, const Tensor& cotangent) {
  const Tensors in = traced_all(x, "vjp");
  const Tensor y = f(in);
  if (!y.defined()) fail_empty({"vjp", "the result of f"});
  if (Access::desc(y).known() && Access::desc(cotangent).known() && y.shape() != cotangent.shape())
    fail<ValueError>({"vjp", "cotangent"}, "has shape ", cotangent.shape(), kExpected, "f returns shape ", y.shape());
  Tensors gradients = backend::gradients(ops::sum(y * cotangent), in);
  for (std::int64_t i = 0; i < in.size(); ++i) gradients[i] = or_zeros(gradients[i], in[i]);
  return {y, gradients};
}

Tensor hvp(Callable<Tensor(const Tensor&)> f, const Tensor& x, const Tensor& v) {
  const Tensor in = traced(x, "hvp");
  const Tensor slope = gradient_of(ops::sum(one_number(f(in), "hvp")), in);
  return gradient_of(ops::sum(slope * v), in);
}

}  // namespace kassette
