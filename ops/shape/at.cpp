// ops/shape/at.cpp - x.at(i, j, ...): tensors with other values at some indices.
#include <memory>

#include "ops/elementwise/arithmetic.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"
#include "ops/shape/checked.h"
#include "ops/shape/expression.h"
#include "ops/shape/like.h"
#include "ops/shape/put.h"
#include "ops/shape/shaping.h"

namespace kassette {
using namespace ops;
namespace {

void check_fits(const TensorSpec& v, const TensorSpec& selected) {
  if (!broadcasts_to(v, selected))
    fail<ValueError>({"at", "v"}, "of shape ", v, " does not broadcast to ", selected,
                     ", the shape of the indexed elements");
}
/// v broadcast to the indexed elements of x.
Tensor fitting(const Tensor& x, const Tensor& v, const Placed& at) {
  TensorSpec selected;
  const GatherAttrs how{at.axis, Wrap::refuse, static_cast<std::uint8_t>(at.joined)};
  selected_spec(Access::desc(x), Access::desc(at.positions), how, &selected);
  const TensorDesc& b = Access::desc(v);
  if (b.rank == 0 || (selected.known() && b.same_shape(selected))) return v;
  if (!selected.known() || !b.known())
    return attribute_errors("at", [&] {
      const Tensor old = gather(x, at.positions, at.axis, Wrap::refuse, at.joined);
      return broadcast_like(checked(v, old, check_fits), old);
    });
  check_fits(b, selected);
  return broadcast_to(v, Shape(selected.dims, selected.rank));
}

Tensor put(const OpDef& op, const Tensor& x, const Expression& e, const Tensor& v) {
  if (Access::desc(x).rank == 0) {
    // A scalar is an axis of size 1, of which the first element is taken.
    Expression first = e;
    first.list = Ref<IndexList>::adopt(new IndexList);
    for (int k = 0; k < e.list->n; ++k) first.list->push(e.list->parts[k]);
    first.add(0);
    return squeeze(put(op, expand_dims(x, 0), first, v), 0);
  }
  const Placed at = place(x, e);
  const GatherAttrs how{at.axis, Wrap::refuse, static_cast<std::uint8_t>(at.joined)};
  return apply1(op, how, {x, at.positions, number_on(fitting(x, v, at), x.device())});
}
/// Row `row` of x, which is in range: most programs index by one integer, and need no expression for it.
Tensor put(const OpDef& op, const Tensor& x, std::int64_t row, const Tensor& v) {
  const Tensor position = empty_tensor({int64, {}}, "at");
  *reinterpret_cast<std::int64_t*>(Access::desc(position).data()) = row;
  const Placed at{number_on(position, x.device()), 0, 0};
  return apply1(op, GatherAttrs{0, Wrap::refuse}, {x, at.positions, number_on(fitting(x, v, at), x.device())});
}
Tensor put(const OpDef& op, const Tensor& x, const void* expression, std::int64_t row, const Operand& values) {
  const Arg v(values, x.dtype(), {"at", "v"});
  if (!v.tensor().defined()) fail_empty({"at", "v"});
  if (!expression) return put(op, x, row, v.tensor());
  return put(op, x, *static_cast<const Expression*>(expression), v.tensor());
}

}  // namespace

Indexed::Indexed(const Tensor& x, void* expression, std::int64_t row) noexcept
    : x_(x), expression_(expression), row_(row) {}
Indexed::~Indexed() { delete static_cast<Expression*>(expression_); }

Tensor Indexed::get() const {
  return expression_ ? evaluate(x_, *static_cast<const Expression*>(expression_)) : x_[row_];
}
Tensor Indexed::set(const Operand& v) const { return put(index_set_op, x_, expression_, row_, v); }
Tensor Indexed::add(const Operand& v) const { return put(index_add_op, x_, expression_, row_, v); }
Tensor Indexed::multiply(const Operand& v) const { return put(index_multiply_op, x_, expression_, row_, v); }
Tensor Indexed::divide(const Operand& v) const {
  if (!x_.dtype().is_float())
    fail<TypeError>({"at"}, "x is ", x_.dtype(), ", whose elements cannot be divided", kRemedy, "cast it (K::cast)");
  return x_ / put(index_multiply_op, zeros_of(x_) + 1.0, expression_, row_, v);
}
Tensor Indexed::min(const Operand& v) const { return put(index_min_op, x_, expression_, row_, v); }
Tensor Indexed::max(const Operand& v) const { return put(index_max_op, x_, expression_, row_, v); }

Indexed Tensor::at(const Index& i0, const Index& i1, const Index& i2, const Index& i3, const Index& i4, const Index& i5,
                   const Index& i6, const Index& i7) const {
  if (!defined()) fail_empty({"at", "x"});
  const TensorDesc& b = Access::desc(*this);
  bool alone = Access::kind(i0) == Index::kInt;
  for (const Index* i : {&i1, &i2, &i3, &i4, &i5, &i6, &i7}) alone = alone && Access::kind(*i) == Index::kAbsent;
  if (alone && b.rank > 0 && b.dims[0] >= 0)
    return Indexed(*this, nullptr, place_index("index", Access::start(i0), 0, b));
  auto e = std::make_unique<Expression>();
  for (const Index* i : {&i0, &i1, &i2, &i3, &i4, &i5, &i6, &i7}) e->add(*i);
  return Indexed(*this, e.release(), 0);
}

}  // namespace kassette
