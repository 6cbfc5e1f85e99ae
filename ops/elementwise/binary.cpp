// ops/elementwise/binary.cpp - the binary elementwise ops: op definitions, rule, integer loops, arithmetic operators.
#include "ops/elementwise/binary.h"

#include "core/convert.h"
#include "core/text.h"
#include "ops/elementwise/chain.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/observe.h"
#include "ops/engine/operand.h"

namespace kassette::ops {
namespace {

template <class Op, class T, int kMask>
void integer_loop(const void* const* in, void* out, std::int64_t n, const Attrs&) {
  auto* a = static_cast<const T*>(in[0]);
  auto* b = static_cast<const T*>(in[1]);
  auto* o = static_cast<T*>(out);
  if constexpr (requires(T t) { Op::refuses(t); })
    for (std::int64_t i = 0; i < (kMask & 2 ? 1 : n); ++i)
      if (Op::refuses(b[i])) refuse_for(Op::refusal);
  for (std::int64_t i = 0; i < n; ++i)
    o[i] = static_cast<T>(Op::value(static_cast<T>(a[kMask & 1 ? 0 : i]), static_cast<T>(b[kMask & 2 ? 0 : i])));
}

template <class Op>
const ElementwiseFns* find(DType dtype) {
  constexpr int i = IndexOf<Op, BinaryOps>::value;
  if (dtype == float32) return &KASSETTE_PICK(binary_table).f32[i];
  if (dtype == float64) return &KASSETTE_PICK(binary_table).f64[i];
  if (dtype.is_float()) return nullptr;
  if constexpr (Op::takes != Domain::floats) {
#define KASSETTE_LOOPS(constant, code, T, name) \
  {{integer_loop<Op, T, 0>, integer_loop<Op, T, 1>, integer_loop<Op, T, 2>}},
    static constexpr ElementwiseFns sets[] = {KASSETTE_INTEGER_DTYPES(KASSETTE_LOOPS)};
#undef KASSETTE_LOOPS
    return &sets[dtype.code() - kFirstInteger];
  }
  return nullptr;
}

template <class Op>
constexpr ElementwiseLoops loops_of{find<Op>, 2, is_cheap<Op>() ? kShortGrain : kLongGrain, false};

template <class Op>
void rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &a = call.spec(0), &b = call.spec(1);
  check_same_dtype(call);
  check_domain(call, Op::takes);
  if (a.same_shape(b)) {
    out->set(a);
    return;
  }
  out->dtype = a.dtype;
  broadcast_spec(Op::name, a, b, out);
}

template <class... Ops>
constexpr auto make_op_defs(OpList<Ops...>) {
  return std::array<OpDef, sizeof...(Ops)>{elementwise_op<Ops>(rule<Ops>, &loops_of<Ops>)...};
}

}  // namespace

constinit const std::array<OpDef, BinaryOps::size> binary_op_defs = make_op_defs(BinaryOps{});

ChainOpcode binary_opcode(const ChainTable& table, int is_double, const OpDef& op, bool reversed) {
  return is_element(binary_op_defs, op)
             ? (reversed ? table.reversed : table.binary)[is_double][&op - binary_op_defs.data()]
             : ChainOpcode{};
}
const OpDef& add_op() { return binary_op<Add>(); }
const OpDef& subtract_op() { return binary_op<Subtract>(); }

void run_binary(const OpDef& op, const InputView* in, TensorDesc& out) {
  TensorDesc* outs[] = {&out};
  const Attrs none;
  run_kernel(out.device == cpu ? op.cpu : op.cuda, OpCall{op, none, in, 2, outs, 1, out.device});
}

namespace {

/// KASSETTE_ROUTE in a function of its own: inlined into the most common operators it would cost them a stack frame.
template <class Op>
__attribute__((noinline, cold)) Tensor perhaps_elsewhere(const Operand& a, const Operand& b,
                                                         Tensor (*again)(const Operand&, const Operand&)) {
  KASSETTE_ROUTE(Op::name, again(a, b), a, b);
  return binary<Op>(a, b);
}

/// True if `a` is the number 1, such as the cotangent of a sum, and nothing is recorded: then a * b is b itself, and b
/// is neither read nor copied.
bool is_plain_one(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return false;
  const TensorDesc &x = Access::desc(a), &y = Access::desc(b);
  if (x.rank != 0 || !x.storage || !y.storage || x.device != cpu || y.device != cpu || x.dtype != y.dtype ||
      context().recording)
    return false;
  return x.dtype == float32 ? *reinterpret_cast<const float*>(x.data()) == 1
                            : x.dtype == float64 && *reinterpret_cast<const double*>(x.data()) == 1;
}

}  // namespace

Tensor pow(const Operand& a, const Operand& b) { return binary<Pow>(a, b); }
Tensor maximum(const Operand& a, const Operand& b) { return binary<Maximum>(a, b); }
Tensor minimum(const Operand& a, const Operand& b) { return binary<Minimum>(a, b); }
Tensor mul_no_nan(const Operand& a, const Operand& b) {
  if (is_tensor_operand(a) && is_tensor_operand(b) && is_plain_one(tensor_of(a), tensor_of(b)))
    return tensor_of(b).detach();
  return binary<MulNoNan>(a, b);
}
Tensor div_no_nan(const Operand& a, const Operand& b) { return binary<DivNoNan>(a, b); }
Tensor where_positive(const Operand& a, const Operand& b) { return binary<WherePositive>(a, b); }
Tensor atan2(const Operand& a, const Operand& b) { return binary<Atan2>(a, b); }
Tensor hypot(const Operand& a, const Operand& b) { return binary<Hypot>(a, b); }
Tensor copysign(const Operand& a, const Operand& b) { return binary<Copysign>(a, b); }
Tensor fmod(const Operand& a, const Operand& b) { return binary<Fmod>(a, b); }
Tensor logaddexp(const Operand& a, const Operand& b) { return binary<LogAddExp>(a, b); }
Tensor logaddexp2(const Operand& a, const Operand& b) { return binary<LogAddExp2>(a, b); }
Tensor gammainc(const Operand& a, const Operand& x) { return binary<GammaInc>(a, x); }
Tensor gammaincc(const Operand& a, const Operand& x) { return binary<GammaIncC>(a, x); }
Tensor ldexp(const Operand& a, const Operand& b) { return binary<Ldexp>(a, b); }
Tensor nextafter(const Operand& a, const Operand& b) { return binary<NextAfter>(a, b); }
Tensor heaviside(const Operand& a, const Operand& b) { return binary<Heaviside>(a, b); }
Tensor fmax(const Operand& a, const Operand& b) { return binary<Fmax>(a, b); }
Tensor fmin(const Operand& a, const Operand& b) { return binary<Fmin>(a, b); }
Tensor bitwise_and(const Operand& a, const Operand& b) { return binary<BitwiseAnd>(a, b); }
Tensor bitwise_or(const Operand& a, const Operand& b) { return binary<BitwiseOr>(a, b); }
Tensor bitwise_xor(const Operand& a, const Operand& b) { return binary<BitwiseXor>(a, b); }
Tensor left_shift(const Operand& a, const Operand& b) { return binary<LeftShift>(a, b); }
Tensor right_shift(const Operand& a, const Operand& b) { return binary<RightShift>(a, b); }
Tensor gcd(const Operand& a, const Operand& b) { return binary<Gcd>(a, b); }
Tensor lcm(const Operand& a, const Operand& b) { return binary<Lcm>(a, b); }

}  // namespace kassette::ops

namespace kassette {
using namespace ops;

Tensor operator+(const Operand& a, const Operand& b) {
  return built_in_active() ? binary<Add>(a, b) : perhaps_elsewhere<Add>(a, b, operator+);
}
Tensor operator-(const Operand& a, const Operand& b) {
  return built_in_active() ? binary<Subtract>(a, b) : perhaps_elsewhere<Subtract>(a, b, operator-);
}
Tensor operator*(const Operand& a, const Operand& b) {
  return built_in_active() ? binary<Multiply>(a, b) : perhaps_elsewhere<Multiply>(a, b, operator*);
}
Tensor operator/(const Operand& a, const Operand& b) {
  KASSETTE_ROUTE(Divide::name, a / b, a, b);
  DType dtype = dtype_for_numbers(a, b);
  if (!dtype.is_integer()) return binary<Divide>(a, b);
  Arg x(a, dtype, {Divide::name, "x"}), y(b, dtype, {Divide::name, "y"});
  if (y.tensor().defined() && y.tensor().dtype() != x.tensor().dtype()) return binary<Divide>(x.tensor(), y.tensor());
  DType real = dtype.size() < 4 ? float32 : float64;
  return binary<Divide>(cast(x, real), cast(y, real));
}
Tensor operator%(const Operand& a, const Operand& b) {
  KASSETTE_ROUTE(Remainder::name, a % b, a, b);
  return binary<Remainder>(a, b);
}
Tensor floor_divide(const Operand& a, const Operand& b) {
  KASSETTE_ROUTE(FloorDivide::name, floor_divide(a, b), a, b);
  return binary<FloorDivide>(a, b);
}

}  // namespace kassette
