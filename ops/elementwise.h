// ops/elementwise.h - running a loop over elements: broadcasting, half types, threads. What all elementwise families share.
#pragma once
#include <functional>
#include <type_traits>

#include "ops/math.h"
#include "ops/op.h"

namespace kassette {

/// One op over n contiguous elements of one dtype. in[i] points to n elements, or to one where the loop was picked with
/// bit i of the mask. `out` may be one of the inputs.
using Loop = void (*)(const void* const* in, void* out, std::int64_t n, const Attrs& attrs);

/// The loops of one op for one dtype, by the mask of the operands that are one repeated element. Null where no such loop.
struct LoopSet {
  Loop by[8];
};

/// Where an op's loops are found: for the dtype of the last operand, at the CPU level in use. Null for float16 and bfloat16
/// means that the float32 loops run on blocks converted to float32 and back.
inline constexpr int kShortGrain = 3 << 14,
                     kLongGrain = 1 << 15;  // of ops of a few instructions, and of others: Note [Worth a thread]
struct ElementwiseLoops {
  const LoopSet* (*find)(DType dtype);
  int arity;
  int grain;      // elements that are worth a thread
  bool bool_out;  // comparisons
};

/// The kernel of every elementwise row: call.op.loops says which loops. All operands have one dtype (conditions of `where`
/// aside, see ternary.cpp), the output has the broadcast shape.
void elementwise_kernel(const OpCall& call);

struct Add;
struct Relu;
template <class Op>
constexpr Pattern pattern_of = std::is_same_v<Op, Add>    ? Pattern::add
                               : std::is_same_v<Op, Relu> ? Pattern::relu
                                                          : Pattern::none;

/// Whether that row is in a table of them.
template <class Table>
bool is_element(const Table& rows, const OpDef& op) {
  const std::less<const OpDef*> before;
  return !before(&op, rows.data()) && before(&op, rows.data() + rows.size());
}

/// The row of an op struct (unary_ops.h, binary_ops.h): name, gradient and what it reads are the struct's.
template <class Op>
constexpr OpDef elementwise_op(Rule rule, const ElementwiseLoops* loops) {
  return {.name = Op::name,
          .rule = rule,
          .cpu = elementwise_kernel,
          .vjp = Op::gradient,
          .saves_in = reads_in(Op::reads),
          .saves_out = reads_out(Op::reads),
          .traits = kElementwise,
          .loops = loops,
          .pattern = pattern_of<Op>};
}

/// Applies a binary row to operands: a number or list takes the dtype of the tensor beside it.
Tensor apply_beside(const OpDef& row, const Operand& x, const Operand& y);

// ---- rules -----------------------------------------------------------------------------------------------------------
/// The shape that shapes a and b broadcast to, unknown dims included; throws ValueError in the name of the op.
void broadcast_spec(const char* op, const TensorSpec& a, const TensorSpec& b, TensorSpec* out);
/// Shape and dtype of the first input.
void same_rule(const OpCall& call, TensorSpec* out);
[[noreturn]] __attribute__((noinline, cold)) void fail_dtypes(const OpDef& op, DType a, DType b);
[[noreturn]] __attribute__((noinline, cold)) void fail_domain(const OpDef& op, DType dtype, Domain domain);
/// Throws TypeError unless the dtypes of inputs 0 and 1 agree.
inline void check_same_dtype(const OpCall& call) {
  DType a = call.spec(0).dtype, b = call.spec(1).dtype;
  if (a != b) fail_dtypes(call.op, a, b);
}
/// Throws TypeError where the dtype of the last input is outside.
inline void check_domain(const OpCall& call, Domain domain) {
  DType d = call.spec(call.n_in - 1).dtype;
  bool ok = domain == Domain::anything || (domain == Domain::floats && d.is_float()) ||
            (domain == Domain::numbers && !d.is_bool()) || (domain == Domain::bools && d.is_bool()) ||
            (domain == Domain::integers && d.is_integer());
  if (!ok) fail_domain(call.op, d, domain);
}

}  // namespace kassette
