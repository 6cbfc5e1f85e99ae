// ops/binary.cpp - the binary elementwise ops: rows, rule, integer loops, the arithmetic operators.
#include "ops/binary.h"

#include "ops/operand.h"

namespace kassette {
namespace {

template <class Op, class T, int kMask>
void integer_loop(const void* const* in, void* out, std::int64_t n, const Attrs&) {
  auto* a = static_cast<const T*>(in[0]);
  auto* b = static_cast<const T*>(in[1]);
  auto* o = static_cast<T*>(out);
  // Unsigned arithmetic of at least int's width: integers wrap, and that is defined.
  using U = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int, T>>;
  for (std::int64_t i = 0; i < n; ++i)
    o[i] = static_cast<T>(Op::value(static_cast<U>(a[kMask & 1 ? 0 : i]), static_cast<U>(b[kMask & 2 ? 0 : i])));
}

template <class Op>
const LoopSet* find(DType dtype) {
  constexpr int i = IndexOf<Op, BinaryOps>::value;
  if (dtype == float32) return &KASSETTE_PICK(binary_table).f32[i];
  if (dtype == float64) return &KASSETTE_PICK(binary_table).f64[i];
  if constexpr (Op::takes != Takes::floats) {
#define KASSETTE_SET(T) {{integer_loop<Op, T, 0>, integer_loop<Op, T, 1>, integer_loop<Op, T, 2>}}
    static constexpr LoopSet sets[] = {KASSETTE_SET(std::uint8_t), KASSETTE_SET(std::uint16_t), KASSETTE_SET(std::int8_t),
                                       KASSETTE_SET(std::int16_t), KASSETTE_SET(std::int32_t),  KASSETTE_SET(std::int64_t)};
#undef KASSETTE_SET
    return &sets[dtype.code() - DType::kUint8];
  }
  return nullptr;
}

template <class Op>
constexpr ElementwiseLoops loops_of{find<Op>, 2, 1 << 14, false};

template <class Op>
void rule(const Call& call, Spec* out) {
  const Spec &a = call.spec(0), &b = call.spec(1);
  check_same_dtype(call);
  check_domain(call, Op::takes == Takes::floats ? Domain::floats : Domain::numbers);
  out->dtype = a.dtype;
  if (a.same_shape(b)) out->set(a);
  else broadcast_spec(Op::name, a, b, out);
}

template <class Op>
constexpr OpDef make_row() {
  return {.name = Op::name,
          .rule = rule<Op>,
          .cpu = elementwise_kernel,
          .vjp = Op::gradient,
          .saves_in = Op::reads == Reads::input || Op::reads == Reads::both ? 3u : 0u,
          .saves_out = Op::reads == Reads::output || Op::reads == Reads::both,
          .traits = kElementwise,
          .loops = &loops_of<Op>};
}

/// Both operands with the dtype of the one that is a tensor.
template <class Op>
Tensor operate(const Operand& x, const Operand& y) {
  DType dtype = dtype_beside(x, y);
  Arg a(x, dtype, Op::name), b(y, dtype, Op::name);
  return binary<Op>(a, b);
}

template <class... Ops>
constexpr auto make_rows(OpList<Ops...>) {
  return std::array<OpDef, sizeof...(Ops)>{make_row<Ops>()...};
}

}  // namespace

constinit const std::array<OpDef, BinaryOps::size> binary_rows = make_rows(BinaryOps{});


Tensor operator+(const Operand& a, const Operand& b) { return operate<Add>(a, b); }
Tensor operator-(const Operand& a, const Operand& b) { return operate<Subtract>(a, b); }
Tensor operator*(const Operand& a, const Operand& b) { return operate<Multiply>(a, b); }
Tensor mul_no_nan(const Tensor& a, const Tensor& b) { return binary<MulNoNan>(a, b); }

}  // namespace kassette
