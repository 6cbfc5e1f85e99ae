// ops/elementwise/unary.cpp - the unary elementwise ops: OpDefs, rule, integer loops.
#include "ops/elementwise/unary.h"

#include "core/convert.h"
#include "ops/elementwise/chain.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/operand.h"

namespace kassette::ops {
namespace {

template <class Op, class T>
void integer_loop(const void* const* in, void* out, std::int64_t n, const Attrs& attrs) {
  const UnaryFunction<Op> f(attrs);
  auto* a = static_cast<const T*>(in[0]);
  auto* o = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) o[i] = f(static_cast<T>(a[i]));
}

template <class Op>
const ElementwiseFns* find(DType dtype) {
  constexpr int i = IndexOf<Op, UnaryOps>::value;
  if (dtype == float32) return &KASSETTE_PICK(unary_table).f32[i];
  if (dtype == float64) return &KASSETTE_PICK(unary_table).f64[i];
  if (dtype.is_float()) return nullptr;
  if constexpr (Op::takes != Domain::floats) {
#define KASSETTE_LOOPS(constant, code, T, name) {{integer_loop<Op, T>}},
    static constexpr ElementwiseFns sets[] = {KASSETTE_INTEGER_DTYPES(KASSETTE_LOOPS)};
#undef KASSETTE_LOOPS
    return &sets[dtype.code() - kFirstInteger];
  }
  return nullptr;
}

template <class Op>
constexpr ElementwiseLoops loops_of{find<Op>, 1, is_cheap<Op>() ? kShortGrain : kLongGrain, false};

template <class Op>
void rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Op::takes);
  out->set(call.spec(0));
}

template <class... Ops>
constexpr auto make_op_defs(OpList<Ops...>) {
  return std::array<OpDef, sizeof...(Ops)>{elementwise_op<Ops>(rule<Ops>, &loops_of<Ops>)...};
}

}  // namespace

constinit const std::array<OpDef, UnaryOps::size> unary_op_defs = make_op_defs(UnaryOps{});

ChainOpcode unary_opcode(const ChainTable& table, int is_double, const OpDef& op) {
  return is_element(unary_op_defs, op) ? table.unary[is_double][&op - unary_op_defs.data()] : ChainOpcode{};
}

Tensor abs(const Tensor& x) { return unary<Abs>(x); }
Tensor sign(const Tensor& x) { return unary<Sign>(x); }
Tensor square(const Tensor& x) { return unary<Square>(x); }
Tensor sqrt(const Tensor& x) { return unary<Sqrt>(x); }
Tensor rsqrt(const Tensor& x, double epsilon) { return unary<Rsqrt>(x, {epsilon}); }
Tensor exp(const Tensor& x) { return unary<Exp>(x); }
Tensor expm1(const Tensor& x) { return unary<Expm1>(x); }
Tensor log(const Tensor& x) { return unary<Log>(x); }
Tensor logit(const Tensor& x) { return unary<Logit>(x); }
Tensor log1p(const Tensor& x) { return unary<Log1p>(x); }
Tensor sin(const Tensor& x) { return unary<Sin>(x); }
Tensor cos(const Tensor& x) { return unary<Cos>(x); }
Tensor tanh(const Tensor& x) { return unary<Tanh>(x); }
Tensor sigmoid(const Tensor& x) { return unary<Sigmoid>(x); }
Tensor softplus(const Tensor& x) { return unary<Softplus>(x); }
Tensor round(const Tensor& x) { return unary<Round>(x); }
Tensor relu(const Tensor& x) { return unary<Relu>(x); }
Tensor leaky_relu(const Tensor& x, double alpha) { return unary<LeakyRelu>(x, {alpha}); }
Tensor general_relu(const Tensor& x, double alpha, double max_value, double threshold) {
  return unary<GeneralRelu>(x, {alpha, max_value, threshold});
}
Tensor elu(const Tensor& x, double alpha) { return unary<Elu>(x, {alpha}); }
Tensor hard_sigmoid(const Tensor& x) { return unary<HardSigmoid>(x); }
Tensor clip(const Tensor& x, double low, double high) { return unary<Clip>(x, {low, high}); }

Tensor square_root(const Tensor& x) { return unary<SquareRoot>(x); }
Tensor floor(const Tensor& x) { return unary<Floor>(x); }
Tensor ceil(const Tensor& x) { return unary<Ceil>(x); }
Tensor trunc(const Tensor& x) { return unary<Trunc>(x); }
Tensor rint(const Tensor& x) { return unary<Rint>(x); }
Tensor tan(const Tensor& x) { return unary<Tan>(x); }
Tensor asin(const Tensor& x) { return unary<Asin>(x); }
Tensor acos(const Tensor& x) { return unary<Acos>(x); }
Tensor atan(const Tensor& x) { return unary<Atan>(x); }
Tensor sinh(const Tensor& x) { return unary<Sinh>(x); }
Tensor cosh(const Tensor& x) { return unary<Cosh>(x); }
Tensor asinh(const Tensor& x) { return unary<Asinh>(x); }
Tensor acosh(const Tensor& x) { return unary<Acosh>(x); }
Tensor atanh(const Tensor& x) { return unary<Atanh>(x); }
Tensor exp2(const Tensor& x) { return unary<Exp2>(x); }
Tensor log2(const Tensor& x) { return unary<Log2>(x); }
Tensor log10(const Tensor& x) { return unary<Log10>(x); }
Tensor cbrt(const Tensor& x) { return unary<Cbrt>(x); }
Tensor erf(const Tensor& x) { return unary<Erf>(x); }
Tensor erfc(const Tensor& x) { return unary<Erfc>(x); }
Tensor erfinv(const Tensor& x) { return unary<Erfinv>(x); }
Tensor lgamma(const Tensor& x) { return unary<Lgamma>(x); }
Tensor polygamma(const Tensor& x, int n) { return unary<Polygamma>(x, {static_cast<double>(n)}); }
Tensor i0(const Tensor& x) { return unary<BesselI0>(x); }
Tensor i1(const Tensor& x) { return unary<BesselI1>(x); }
Tensor sinc(const Tensor& x) { return unary<Sinc>(x); }
Tensor modf_fraction(const Tensor& x) { return unary<Fraction>(x); }
Tensor frexp_exponent(const Tensor& x) { return unary<FrexpExponent>(x); }
Tensor bitwise_invert(const Tensor& x) { return unary<Invert>(x); }
Tensor silu(const Tensor& x) { return unary<Silu>(x); }
Tensor gelu(const Tensor& x) { return unary<Gelu>(x); }
Tensor gelu_tanh(const Tensor& x) { return unary<GeluTanh>(x); }

}  // namespace kassette::ops

namespace kassette {
using namespace ops;

Tensor operator-(const Tensor& a) {
  KASSETTE_ROUTE(Negative::name, -a, a);
  return unary<Negative>(a);
}
Tensor operator+(const Tensor& a) { return a; }
Tensor operator-(const Operand& a) { return -Arg(a, DType(), {Negative::name, "x"}).tensor(); }
Tensor operator+(const Operand& a) { return Arg(a, DType(), {"positive", "x"}).tensor(); }

}  // namespace kassette
