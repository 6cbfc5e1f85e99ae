// autograd/program/update.cpp - updates of variables: immediate, or recorded and applied when a plan commits.
#include "autograd/program/update.h"

#include <mutex>

#include "core/check_interrupt.h"
#include "core/text.h"
#include "ops/elementwise/binary.h"
#include "ops/engine/detect_nan.h"
#include "ops/engine/error_attribution.h"

namespace kassette::autograd {
namespace {

void update_rule(const OpCall& call, TensorSpec* out) {
  const TensorDesc& x = *call.in[0].desc;
  const TensorSpec& v = call.spec(1);
  const char* what = update_name(call.attrs);
  if (x.dtype != v.dtype)
    fail<TypeError>({what}, variable_text(cell_of(x)), " is ", x.dtype, ", the value ", v.dtype, kRemedy,
                    "cast it (K::cast)");
  if (x.dtype == bool_ && call.attrs.as<UpdateAttrs>().mode != Effect::kSet)
    fail<TypeError>({what, "x"}, "is bool, not a number", kRemedy, "K::update sets it");
  if (!v.compatible(x)) fail_shapes({what}, cell_of(x), x, v);
  out->set(x);
}

void update_kernel(const OpCall& call) {
  TensorDesc& out = *call.out[0];
  const auto mode = call.attrs.as<UpdateAttrs>().mode;
  if (mode == Effect::kSet) return put(out, read_value(*call.in[1].desc));
  allocate_output(out, call.device);
  run_binary(op_of(mode), call.in, out);
}

}  // namespace

const OpDef& op_of(Effect::Mode mode) { return mode == Effect::kAdd ? add_op() : subtract_op(); }

constinit const OpDef update_op{
    .name = "update", .rule = update_rule, .cpu = update_kernel, .traits = kView | kEffect, .cuda = update_kernel};

const char* update_name(const Attrs& attrs) {
  const auto [mode, moving_average] = attrs.as<UpdateAttrs>();
  if (moving_average) return "moving_average_update";
  return mode == Effect::kSet ? "update" : mode == Effect::kAdd ? "update_add" : "update_sub";
}

void accumulate(Cell& cell, const TensorDesc& increment, bool subtract, Ref<Storage> room) {
  const OpDef& op = op_of(subtract ? Effect::kSubtract : Effect::kAdd);
  const std::lock_guard guard(cell);
  const TensorDesc old = make_desc(increment, increment.device, cell.value);
  TensorDesc out = old;
  // Three references, `old`, `out` and the cell's: nothing else sees these bytes change.
  bool alone = old.storage->count.load(std::memory_order_acquire) == 3 && old.storage->kind != Storage::kBorrowed &&
               !detecting_nan();
  if (!alone && room) {
    out.storage = std::move(room);
    out.offset = 0;
  } else if (!alone) {
    allocate_output(out, old.device);
  }
  const InputView in[] = {{&old, old.data()}, {&increment, increment.data()}};
  IgnoreInterruptsScope whole;
  run_binary(op, in, out);
  throw_found();
  Value made{std::move(out.storage), out.offset};
  if (alone) cell.changed();
  else cell.set(made);
}

namespace {

/// The name of the argument of K::update, K::update_add or K::update_sub that is the value.
const char* value_name(Effect::Mode mode) {
  return mode == Effect::kSet ? "new_x" : mode == Effect::kAdd ? "increment" : "decrement";
}

}  // namespace

Tensor update(const Tensor& x, const Tensor& value, Effect::Mode mode, bool moving_average) {
  const Attrs attrs = UpdateAttrs{mode, moving_average};
  const char* what = update_name(attrs);
  const TensorDesc& b = Access::desc(x);
  if (!(b.flags & kLeaf) || b.node->cell->kind != Leaf::variable)
    fail<TypeError>({what, "x"}, "is not a variable", kRemedy, "make it with K::variable");
  const TensorDesc& v = Access::desc(value);
  if (v.device != b.device)
    fail<DeviceError>({what}, variable_text(cell_of(b)), " is on ", b.device, ", the value on ", v.device);
  Context& c = context();
  if (c.symbolic || v.symbolic()) {
    if (c.depth > 0)
      fail<ValueError>({what}, "not allowed inside a body of control flow", kRemedy,
                       "return the new value from it and update outside");
    Scoped<bool> on(c.symbolic, true);
    Tensor op = apply1(update_op, attrs, {x, value});
    if (c.updates) c.updates->push_back(op);
    return op;
  }
  TensorSpec checked;
  InputView in[] = {{&b, nullptr}, {&v, nullptr}};
  update_rule(OpCall{update_op, attrs, in, 2, nullptr, 1, b.device}, &checked);
  Value now = read_value(v);
  if (!now.storage) fail_unset({what, value_name(mode)}, *v.node->cell);
  Cell& cell = *b.node->cell;
  if (mode == Effect::kSet) {
    cell.store(std::move(now));
    return x;
  }
  if (!cell.load().storage) fail_unset({what}, cell);
  const TensorDesc increment = make_desc(v, v.device, std::move(now.storage), now.offset);
  attribute_errors(what, [&] { accumulate(cell, increment, mode == Effect::kSubtract); });
  return x;
}

}  // namespace kassette::autograd
