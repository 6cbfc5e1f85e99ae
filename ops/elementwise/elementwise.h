// ops/elementwise/elementwise.h - what all elementwise families share: running loops over elements, with broadcasting,
// half types and threads.
#pragma once
#include <functional>
#include <type_traits>

#include "ops/math/math.h"
#include "ops/engine/op.h"

namespace kassette::ops {

/// A kernel loop: an op over n contiguous elements of one dtype. in[i] points to n elements, or to a single one if the
/// function is ElementwiseFns::by[mask] with bit i set in the mask. `out` may equal an input.
using ElementwiseFn = void (*)(const void* const* in, void* out, std::int64_t n, const Attrs& attrs);

/// The functions of one op for one dtype, indexed by the mask of operands that are a single element, repeated. Null if
/// there is no such function.
struct ElementwiseFns {
  ElementwiseFn by[8];
};

/// Elements that are worth a thread (Note [Worth a thread]), for ops of a few instructions and for others.
inline constexpr int kShortGrain = 3 << 14, kLongGrain = 1 << 15;

/// The loops of an op. find() returns those for the dtype of the last operand, at the CPU level in use. It returns null
/// for float16 and bfloat16: the float32 loops then run on blocks that are converted to float32, and the results are
/// converted back.
struct ElementwiseLoops {
  const ElementwiseFns* (*find)(DType dtype);
  int arity;
  int grain;      // elements that are worth a thread
  bool bool_out;  // comparisons
};

/// The kernel of every elementwise op; runs the loops in call.op.loops. All operands have one dtype, except for the
/// condition of `where` (ternary.cpp), and the output has the broadcast shape.
void elementwise_kernel(const OpCall& call);

/// True for an op struct that says `cheap`: its value takes few machine instructions. It gets an opcode of its own in
/// chains, and more elements are worth a thread; for the others chains call the kernel loops.
template <class Op>
constexpr bool is_cheap() {
  if constexpr (requires { Op::cheap; }) return Op::cheap;
  else return false;
}
template <class Op>
constexpr Pattern pattern_of() {
  if constexpr (requires { Op::pattern; }) return Op::pattern;
  else return Pattern::none;
}
template <class Op>
constexpr const char* inputs_of() {
  if constexpr (requires { Op::inputs; }) return Op::inputs;
  else return "x y";
}

/// True if `op` is an element of the array `table`.
template <class Table>
bool is_element(const Table& table, const OpDef& op) {
  const std::less<const OpDef*> before;
  return !before(&op, table.data()) && before(&op, table.data() + table.size());
}

/// Makes the OpDef of an op struct (unary_ops.h, binary_ops.h), with the struct's name and gradient.
template <class Op>
constexpr OpDef elementwise_op(Rule rule, const ElementwiseLoops* loops) {
  return {.name = Op::name,
          .rule = rule,
          .cpu = elementwise_kernel,
          .vjp = Op::gradient,
          .saves_in = Op::reads.in,
          .saves_out = Op::reads.out,
          .traits = kElementwise,
          .loops = loops,
          .pattern = pattern_of<Op>(),
          .inputs = inputs_of<Op>()};
}

/// Applies a binary op to operands. A number or list gets the dtype of the other operand if that is a tensor, else
/// floatx.
Tensor apply_binary(const OpDef& op, const Operand& x, const Operand& y);

// --- rules -----------------------------------------------------------------------------------------------------------
/// Sets the shape of `out` to the one that a and b, which may have unknown dims, broadcast to. Throws ValueError in the
/// name of `op`.
void broadcast_spec(const char* op, const TensorSpec& a, const TensorSpec& b, TensorSpec* out);
/// The rule of ops whose output has the shape and dtype of the first input.
void same_rule(const OpCall& call, TensorSpec* out);
[[noreturn]] __attribute__((noinline, cold)) void fail_dtypes(const OpDef& op, DType a, DType b);
[[noreturn]] __attribute__((noinline, cold)) void fail_domain(const OpCall& call, DType dtype, Domain domain);
/// Throws TypeError unless the dtypes of inputs 0 and 1 agree.
inline void check_same_dtype(const OpCall& call) {
  DType a = call.spec(0).dtype, b = call.spec(1).dtype;
  if (a != b) fail_dtypes(call.op, a, b);
}
/// Throws TypeError if the dtype of the last input is outside of the domain.
inline void check_domain(const OpCall& call, Domain domain) {
  DType d = call.spec(call.n_in - 1).dtype;
  bool ok = domain == Domain::anything || (domain == Domain::floats && d.is_float()) ||
            (domain == Domain::numbers && !d.is_bool()) || (domain == Domain::bools && d.is_bool()) ||
            (domain == Domain::integers && d.is_integer());
  if (!ok) fail_domain(call, d, domain);
}

}  // namespace kassette::ops
