// ops/elementwise/compare.cpp - comparisons and logical ops: definitions, rule, loops of integers and bool.
#include "ops/elementwise/compare.h"

#include "ops/engine/dispatch.h"
#include "ops/engine/operand.h"

namespace kassette::ops {
namespace {

template <class Op>
const ElementwiseFns* find(DType dtype) {
  constexpr int i = IndexOf<Op, CompareOps>::value;
  if (dtype == float32) return &KASSETTE_PICK(compare_table).f32[i];
  if (dtype == float64) return &KASSETTE_PICK(compare_table).f64[i];
  if (dtype.is_float()) return nullptr;
#define KASSETTE_LOOPS(constant, code, T, name) \
  {{compare_loop<Op, T, 0>, compare_loop<Op, T, 1>, compare_loop<Op, T, 2>}},
  if constexpr (Op::takes == Domain::bools) {
    static constexpr ElementwiseFns sets[] = {KASSETTE_LOOPS(bool_, kBool, bool, "bool")};
    return sets;
  } else {
    static constexpr ElementwiseFns sets[] = {KASSETTE_LOOPS(bool_, kBool, bool, "bool")
                                                  KASSETTE_INTEGER_DTYPES(KASSETTE_LOOPS)};
    return &sets[dtype.code() - DType::kBool];
  }
#undef KASSETTE_LOOPS
}

template <class Op>
constexpr ElementwiseLoops loops_of{find<Op>, 2, kShortGrain, true};

template <class Op>
void rule(const OpCall& call, TensorSpec* out) {
  check_same_dtype(call);
  check_domain(call, Op::takes);
  const TensorSpec &a = call.spec(0), &b = call.spec(1);
  if (a.same_shape(b)) out->set(a);
  else broadcast_spec(Op::name, a, b, out);
  out->dtype = bool_;
}

template <class... Ops>
constexpr auto make_op_defs(OpList<Ops...>) {
  return std::array<OpDef, sizeof...(Ops)>{
      OpDef{.name = Ops::name, .rule = rule<Ops>, .cpu = elementwise_kernel, .loops = &loops_of<Ops>}...};
}

template <class Op>
Tensor compare(const Operand& a, const Operand& b) {
  return apply_binary(compare_op_defs[IndexOf<Op, CompareOps>::value], a, b);
}

void not_loop(const void* const* in, void* out, std::int64_t n, const Attrs&) {
  auto* a = static_cast<const bool*>(in[0]);
  auto* o = static_cast<bool*>(out);
  for (std::int64_t i = 0; i < n; ++i) o[i] = !a[i];
}
constexpr ElementwiseFns not_set{{not_loop}};
constexpr ElementwiseLoops not_loops{[](DType) { return &not_set; }, 1, 4 * kShortGrain, true};

void not_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::bools);
  out->set(call.spec(0));
}

}  // namespace

constinit const std::array<OpDef, CompareOps::size> compare_op_defs = make_op_defs(CompareOps{});
constinit const OpDef logical_not_op{
    .name = "logical_not", .rule = not_rule, .cpu = elementwise_kernel, .loops = &not_loops};

Tensor equal(const Operand& a, const Operand& b) { return compare<Equal>(a, b); }
Tensor not_equal(const Operand& a, const Operand& b) { return compare<NotEqual>(a, b); }
Tensor less(const Operand& a, const Operand& b) { return compare<Less>(a, b); }
Tensor less_equal(const Operand& a, const Operand& b) { return compare<LessEqual>(a, b); }
Tensor greater(const Operand& a, const Operand& b) { return compare<Greater>(a, b); }
Tensor greater_equal(const Operand& a, const Operand& b) { return compare<GreaterEqual>(a, b); }
Tensor logical_and(const Operand& a, const Operand& b) { return compare<LogicalAnd>(a, b); }
Tensor logical_or(const Operand& a, const Operand& b) { return compare<LogicalOr>(a, b); }
Tensor logical_not(const Tensor& a) { return apply1(logical_not_op, {a}); }

}  // namespace kassette::ops

namespace kassette {
using namespace ops;

Tensor operator<(const Operand& a, const Operand& b) {
  KASSETTE_ROUTE(Less::name, a < b, a, b);
  return less(a, b);
}
Tensor operator<=(const Operand& a, const Operand& b) {
  KASSETTE_ROUTE(LessEqual::name, a <= b, a, b);
  return less_equal(a, b);
}
Tensor operator>(const Operand& a, const Operand& b) {
  KASSETTE_ROUTE(Greater::name, a > b, a, b);
  return greater(a, b);
}
Tensor operator>=(const Operand& a, const Operand& b) {
  KASSETTE_ROUTE(GreaterEqual::name, a >= b, a, b);
  return greater_equal(a, b);
}
Tensor operator&(const Operand& a, const Operand& b) {
  KASSETTE_ROUTE(LogicalAnd::name, a & b, a, b);
  return logical_and(a, b);
}
Tensor operator|(const Operand& a, const Operand& b) {
  KASSETTE_ROUTE(LogicalOr::name, a | b, a, b);
  return logical_or(a, b);
}
Tensor operator~(const Tensor& a) {
  KASSETTE_ROUTE(logical_not_op.name, ~a, a);
  return logical_not(a);
}
Tensor operator~(const Operand& a) { return ~Arg(a, bool_, {logical_not_op.name, "x"}).tensor(); }

}  // namespace kassette
