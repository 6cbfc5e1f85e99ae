// nn_backend/rnn.cpp - recurrence over time, and maps.
#include <kassette/backend/rnn.h>

#include <ostream>
#include <vector>

#include "autograd/loops/steps.h"
#include "core/convert.h"
#include "core/rank.h"
#include "core/sparse.h"
#include "core/text.h"
#include "ops/engine/dims.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;

/// Between backends a Step is a list of its output and its states, and an RnnResult a list of its three members.
template <>
struct ops::Unbox<backend::Step> {
  static backend::Step from(const external::Value& v) {
    if (v.size() != 2) fail_list(v, "the step's output and its states");
    return {v[0].as_tensor(), v[1].as_tensors()};
  }
};
template <>
struct ops::Unbox<backend::RnnResult> {
  static backend::RnnResult from(const external::Value& v) {
    if (v.size() != 3) fail_list(v, "last_output, outputs and new_states");
    return {v[0].as_tensor(), v[1].as_tensor(), v[2].as_tensors()};
  }
};

namespace backend {

external::Value box(const Step& s) { return external::Value::list({s.output, s.states}); }
external::Value box(const RnnResult& r) { return external::Value::list({r.last_output, r.outputs, r.new_states}); }
template <class R, class... A>
external::Value box(const ElementFn<R(A...)>& f) {
  return ops::detail::box_code<ElementFn<R(A...)>, Tensors, A...>(f);
}

namespace {

void check_list(const char* what, const Tensors& list, const char* name) {
  for (const Tensor& t : list) {
    if (!t.defined()) fail<ValueError>({what, name}, "holds ", kEmptyTensor);
    refuse_sparse({what, name}, t);
  }
}
void check_elements(const char* what, const Tensors& list, bool takes_list, const char* name) {
  if (list.empty()) fail<ValueError>({what, name}, "is an empty list", kExpected, "at least one tensor is needed");
  if (list.size() > 1 && !takes_list)
    fail<TypeError>({what, name}, "are ", list.size(), " tensors, and the function takes one", kRemedy,
                    "let it take `const Tensors&`");
  check_list(what, list, name);
}

/// The mask as bool of rank 2; empty if there is none.
Tensor mask_of(const Operand& given, const autograd::LoopForm& form) {
  if (given.is_none() || (is_tensor_operand(given) && !tensor_of(given).defined())) return Tensor();
  Tensor mask = as_tensor(given, DType(), {form.what, "mask"});
  refuse_sparse({form.what, "mask"}, mask);
  const TensorDesc& b = Access::desc(mask);
  if (b.rank < 0) fail_unknown_rank({form.what, "mask"});
  mask = cast(mask, bool_);
  if (b.rank != 3 || differ(b.dims[2], 1)) return mask;  // the loop refuses masks of another rank than 2
  return attribute_errors(form.what, [&] { return squeeze(mask, 2); });
}

/// The mask of input_length: a number is the number of steps; an integer tensor has the number of steps of each sample.
Tensor lengths_mask(const Operand& given, const Tensor& x, bool masked, autograd::LoopForm& form) {
  if (given.is_none() || (is_tensor_operand(given) && !tensor_of(given).defined())) return Tensor();
  Tensor lengths = as_tensor(given, int64, {form.what, "input_length"});
  refuse_sparse({form.what, "input_length"}, lengths);
  const TensorDesc& b = Access::desc(lengths);
  if (!b.dtype.is_integer())
    fail<TypeError>({form.what, "input_length"}, "is ", b.dtype, kExpected, "it must be integers");
  if (b.rank == 0 && !b.symbolic()) {
    form.length = lengths.item<std::int64_t>();
    if (form.length < 0)
      fail<ValueError>({form.what, "input_length"}, "is ", form.length, kExpected, "it must not be negative");
    return Tensor();
  }
  if (b.rank != 1)
    fail<ValueError>({form.what, "input_length"}, "has shape ", static_cast<const TensorSpec&>(b), kExpected,
                     "it must be a number of steps or (samples,)");
  if (masked) return Tensor();
  Tensor samples = expand_dims(cast(lengths, int64), form.axis);
  Tensor steps = arange(scalar_tensor(0, int64), shape_of(x, int64)[form.axis], scalar_tensor(1, int64), int64);
  return less(expand_dims(steps, 1 - form.axis), samples);
}

void check_inputs(const autograd::LoopForm& form, const Tensors& inputs) {
  for (const Tensor& x : inputs) {
    const TensorDesc& b = Access::desc(x);
    if (b.rank < 0) fail_unknown_rank({form.what, "inputs"});
    if (b.rank < 3)
      fail<ValueError>({form.what, "inputs"}, "have shape ", static_cast<const TensorSpec&>(b), kExpected,
                       "they must be ", form.axis == 1 ? "(samples, time, ...)" : "(time, samples, ...)",
                       " of rank 3 at least");
  }
}

}  // namespace

RnnResult rnn(StepFn step_function, const Tensors& inputs, const Tensors& initial_states, bool go_backwards,
              const Operand& mask, const Tensors& constants, bool unroll, const Operand& input_length, bool time_major,
              bool zero_output_for_mask) {
  KASSETTE_DISPATCH(rnn, step_function, inputs, initial_states, go_backwards, mask, constants, unroll, input_length,
                    time_major, zero_output_for_mask);
  autograd::LoopRequest r;
  r.what = "rnn", r.elements = "inputs", r.initial = "initial_states";
  r.n_outputs = 1;
  r.axis = time_major ? 0 : 1;
  r.reverse = go_backwards;
  r.last = r.batched = true;
  r.zero_masked = zero_output_for_mask;
  check_elements(r.what, inputs, step_function.takes_list(), "inputs");
  check_inputs(r, inputs);
  r.xs = inputs;
  r.states = initial_states;
  r.mask = mask_of(mask, r);
  if (r.mask.defined() && initial_states.empty())
    fail<ValueError>({"rnn", "initial_states"}, "is empty", kExpected, "a mask needs states to keep");
  Tensor lengths = lengths_mask(input_length, inputs[0], r.mask.defined(), r);
  if (lengths.defined()) r.mask = lengths;
  check_list(r.what, initial_states, "initial_states");
  check_list(r.what, constants, "constants");
  auto step = [&](const Tensors& xs, const Tensors& states) {
    Step s = constants.empty() ? step_function(xs, states) : [&] {
      Tensors all = states;
      for (const Tensor& c : constants) all.push_back(c);
      return step_function(xs, all);
    }();
    Tensors out;
    out.reserve(1 + s.states.size());
    out.push_back(std::move(s.output));
    for (Tensor& t : s.states) out.push_back(std::move(t));
    return out;
  };
  if (unroll && autograd::loop_length(r, r.xs) < 1)
    fail<ValueError>({"rnn", "unroll"}, "is true for inputs of shape ",
                     static_cast<const TensorSpec&>(Access::desc(inputs[0])), kExpected,
                     "it needs a known time of at least one step");
  Tensors out = unroll ? autograd::unrolled(r, step) : autograd::run_loop(r, step);
  RnnResult result{out[1], out[0], {}};
  result.new_states.reserve(out.size() - 2);
  for (std::int64_t i = 2; i < out.size(); ++i) result.new_states.push_back(out[i]);
  return result;
}

RnnResult rnn(StepFn step_function, const Tensors& inputs, const Tensors& initial_states, const RnnOptions& o) {
  return rnn(step_function, inputs, initial_states, o.go_backwards, o.mask, o.constants, o.unroll, o.input_length,
             o.time_major, o.zero_output_for_mask);
}

namespace {

/// map_fn for as many results as there are dtypes, where None is that of elems.
Tensors mapped(const Tensors& elems, bool takes_list, const DTypes& dtypes, Callable<Tensors(const Tensors&)> fn) {
  autograd::LoopRequest r;
  r.what = "map_fn";
  r.n_outputs = static_cast<int>(dtypes.size());
  check_elements(r.what, elems, takes_list, "elems");
  r.xs = elems;
  const DType own = Access::desc(elems[0]).dtype;
  return autograd::run_loop(r, [&](const Tensors& xs, const Tensors&) {
    Tensors ys = fn(xs);
    if (ys.size() != dtypes.size())
      fail<ValueError>({"map_fn", "fn"}, "returned ", ys.size(), " tensors", kExpected, "it must return ",
                       dtypes.size(), ", as many as there are dtypes");
    const DType* wanted = dtypes.begin();
    for (const Tensor& y : ys) {
      const DType dtype = wanted->given() ? *wanted : own;
      if (y.defined() && Access::desc(y).dtype != dtype)
        fail<TypeError>({"map_fn", "fn"}, "returned ", Access::desc(y).dtype, kExpected, "it must be ", dtype,
                        wanted->given() ? ", the dtype asked for" : ", the dtype of elems", kRemedy,
                        wanted->given() ? "" : "name the other one as dtype");
      ++wanted;
    }
    return ys;
  });
}

}  // namespace

Tensor map_fn(ElementFn<Tensor()> fn, const Tensors& elems, Name name, DType dtype) {
  KASSETTE_DISPATCH(map_fn, fn, elems, name, dtype);
  return mapped(elems, fn.takes_list(), {dtype}, [&](const Tensors& xs) { return Tensors(fn(xs)); })[0];
}

external::Value box(const DTypes& dtypes) {
  std::vector<external::Value> names;
  for (DType dtype : dtypes) names.push_back(ops::box(dtype));
  return external::Value::list(names.data(), static_cast<int>(names.size()));
}

Tensors map_fn(ElementFn<Tensors()> fn, const Tensors& elems, const DTypes& dtypes) {
  KASSETTE_DISPATCH(map_fn, fn, elems, dtypes);
  if (dtypes.size() == 0)
    fail<ValueError>({"map_fn", "dtypes"}, "is an empty list", kExpected, "there must be one for each result");
  return mapped(elems, fn.takes_list(), dtypes, [&](const Tensors& xs) { return fn(xs); });
}

std::ostream& operator<<(std::ostream& os, const Step& step) {
  return os << text("Step(output=", step.output, ", states=", step.states, ")");
}
std::ostream& operator<<(std::ostream& os, const RnnResult& r) {
  return os << text("RnnResult(last_output=", r.last_output, ", outputs=", r.outputs, ", new_states=", r.new_states,
                    ")");
}

}  // namespace backend
}  // namespace kassette
