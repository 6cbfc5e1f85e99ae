// ops/chain_simd.cpp - the instructions of chains, see Note [Chains]; compiled once per CPU level.
#include "ops/simd.h"   // first: ops find the functions on batches that it declares

#include "ops/chain.h"

namespace kassette {
inline namespace KASSETTE_LEVEL {
namespace {

template <class T>
using Register = typename Vec<T>::V::register_type;   // batches are classes, which need not travel in registers
template <class T>
using Step = void (*)(const ChainCode*, std::int64_t at, std::int64_t end, Register<T>, Register<T>, Register<T>, Register<T>);

constexpr std::int64_t kFetchAhead = 2048;   // bytes

// Whether compilers make jumps of the calls below. Without optimisation and under sanitizers they do not: then a chunk ends
// with a return, so that the stack holds the instructions of one chunk and not of all.
#if defined(__has_feature)
#define KASSETTE_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KASSETTE_SANITIZED 1
#else
#define KASSETTE_SANITIZED 0
#endif
#if defined(__OPTIMIZE__) && !KASSETTE_SANITIZED
constexpr bool kJumps = true;
#else
constexpr bool kJumps = false;
#endif

/// The jump to the next instruction.
#define KASSETTE_NEXT return reinterpret_cast<Step<T>>(c[1].step)(c + 1, at, end, r0, r1, r2, r3)
#define KASSETTE_STEP(name) \
  void name(const ChainCode* c, std::int64_t at, std::int64_t end, Register<T> r0, Register<T> r1, Register<T> r2, Register<T> r3)

template <class T>
KASSETTE_FN T* operand(const ChainCode* c, std::int64_t at) {
  return reinterpret_cast<T*>(c->operand + (at & c->moves));
}

template <class T, class Op>
KASSETTE_STEP(unary_step) {
  using V = typename Vec<T>::V;
  const Params p = c->params;
  r0 = Op::value(V(r0), p), r1 = Op::value(V(r1), p), r2 = Op::value(V(r2), p), r3 = Op::value(V(r3), p);
  KASSETTE_NEXT;
}
template <class T, class Op, bool kTurned>
KASSETTE_STEP(binary_step) {
  using X = Vec<T>;
  using V = typename X::V;
  const T* m = operand<T>(c, at);
  auto value = [&](Register<T> r, int k) __attribute__((always_inline)) {
    const V other = X::load(m + k * X::kWidth);
    return kTurned ? Op::value(other, V(r)) : Op::value(V(r), other);
  };
  r0 = value(r0, 0), r1 = value(r1, 1), r2 = value(r2, 2), r3 = value(r3, 3);
  KASSETTE_NEXT;
}
template <class T>
KASSETTE_STEP(load_step) {
  using X = Vec<T>;
  const T* m = operand<T>(c, at);
  r0 = X::load(m), r1 = X::load(m + X::kWidth), r2 = X::load(m + 2 * X::kWidth), r3 = X::load(m + 3 * X::kWidth);
  KASSETTE_NEXT;
}
template <class T>
KASSETTE_FN void put(T* m, Register<T> r0, Register<T> r1, Register<T> r2, Register<T> r3) {
  using X = Vec<T>;
  X::store(m, r0), X::store(m + X::kWidth, r1), X::store(m + 2 * X::kWidth, r2), X::store(m + 3 * X::kWidth, r3);
}
template <class T>
KASSETTE_STEP(store_step) {
  put<T>(operand<T>(c, at), r0, r1, r2, r3);
  KASSETTE_NEXT;
}
template <class T>
KASSETTE_STEP(stream_step) {
  using X = Vec<T>;
  T* m = operand<T>(c, at);
  X::stream(m, r0), X::stream(m + X::kWidth, r1), X::stream(m + 2 * X::kWidth, r2), X::stream(m + 3 * X::kWidth, r3);
  KASSETTE_NEXT;
}
template <class T>
KASSETTE_STEP(call_step) {
  using X = Vec<T>;
  T* m = operand<T>(c, at);
  put<T>(m, r0, r1, r2, r3);
  // A second operand is beside the first: the chunk behind it.
  const void* in[2] = {m, m + kChunkVectors * X::kWidth};
  c->loop(in, m, kChunkVectors * X::kWidth, *c->attrs);
  r0 = X::load(m), r1 = X::load(m + X::kWidth), r2 = X::load(m + 2 * X::kWidth), r3 = X::load(m + 3 * X::kWidth);
  KASSETTE_NEXT;
}
template <class T>
KASSETTE_STEP(fetch_step) {
  constexpr std::int64_t kBytes = kChunkVectors * static_cast<std::int64_t>(sizeof(Register<T>));
  const std::byte* m = c->operand + at + kFetchAhead;
  for (std::int64_t i = 0; i < kBytes; i += 64) __builtin_prefetch(m + i);
  KASSETTE_NEXT;
}
template <class T>
KASSETTE_STEP(end_step) {
  if (!kJumps) return;
  at += kChunkVectors * static_cast<std::int64_t>(sizeof(Register<T>));
  if (at >= end) return;
  c = reinterpret_cast<const ChainCode*>(c->operand) - 1;
  KASSETTE_NEXT;
}
template <class T>
void run(const ChainCode* program, std::int64_t begin, std::int64_t end) {
  const Register<T> zero = typename Vec<T>::V(T(0));
  const std::int64_t chunk = kJumps ? end - begin : kChunkVectors * static_cast<std::int64_t>(sizeof(Register<T>));
  for (std::int64_t at = begin; at < end; at += chunk)
    reinterpret_cast<Step<T>>(program->step)(program, at, end, zero, zero, zero, zero);
}

template <class T>
void pad(void* chunk, const void* from, std::int64_t n) {
  using X = Vec<T>;
  auto* to = static_cast<T*>(chunk);
  auto* f = static_cast<const T*>(from);
  for (int k = 0; k < kChunkVectors; ++k) {
    std::int64_t i = k * X::kWidth;
    X::store(to + i, n - i >= X::kWidth ? X::load(f + i) : n > i ? X::load_part(f + i, n - i) : typename X::V(T(1)));
  }
}
template <class T>
void repeat(void* chunk, const void* from) {
  const typename Vec<T>::V one(*static_cast<const T*>(from));
  put<T>(static_cast<T*>(chunk), one, one, one, one);
}

/// Ops whose value is short; of the others the loops are called.
using ShortUnary = OpList<Negative, Abs, Sign, Square, Sqrt, Rsqrt, Tanh, Softsign, Round, Relu, LeakyRelu, BentRelu,
                          HardSigmoid, Clip>;
using ShortBinary = OpList<Add, Subtract, Multiply, Divide, MulNoNan, DivNoNan, WherePositive, Maximum, Minimum>;

template <class Op, class... Ops>
constexpr bool is_among(OpList<Ops...>) {
  return (std::is_same_v<Op, Ops> || ...);
}
template <class T, class Op>
constexpr Step<T> unary_code() {
  if constexpr (is_among<Op>(ShortUnary{})) return unary_step<T, Op>;
  else return nullptr;
}
template <class T, class Op, bool kTurned>
constexpr Step<T> binary_code() {
  if constexpr (is_among<Op>(ShortBinary{})) return binary_step<T, Op, kTurned>;
  else return nullptr;
}

// Constant in fact (tests/scripts/exports.sh would find an initialiser), but not by the letter: the casts.
#define KASSETTE_ERASED(...) reinterpret_cast<ChainStep>(__VA_ARGS__)
#define KASSETTE_BOTH(step) {KASSETTE_ERASED(step<float>), KASSETTE_ERASED(step<double>)}

template <class T, class List>
const ChainStep unary_steps = nullptr;
template <class T, class... Ops>
const ChainStep unary_steps<T, OpList<Ops...>>[] = {KASSETTE_ERASED(unary_code<T, Ops>())...};
template <class T, bool kTurned, class List>
const ChainStep binary_steps = nullptr;
template <class T, bool kTurned, class... Ops>
const ChainStep binary_steps<T, kTurned, OpList<Ops...>>[] = {KASSETTE_ERASED(binary_code<T, Ops, kTurned>())...};

}  // namespace
}  // namespace KASSETTE_LEVEL

const ChainTable KASSETTE_LEVEL_NAME(chain_table) = {
    .chunk_bytes = kChunkVectors * static_cast<int>(sizeof(Register<float>)),
    .unary = {unary_steps<float, UnaryOps>, unary_steps<double, UnaryOps>},
    .binary = {binary_steps<float, false, BinaryOps>, binary_steps<double, false, BinaryOps>},
    .turned = {binary_steps<float, true, BinaryOps>, binary_steps<double, true, BinaryOps>},
    .call = KASSETTE_BOTH(call_step),
    .load = KASSETTE_BOTH(load_step),
    .store = KASSETTE_BOTH(store_step),
    .stream = KASSETTE_BOTH(stream_step),
    .fetch = KASSETTE_BOTH(fetch_step),
    .end = KASSETTE_BOTH(end_step),
    .run = {run<float>, run<double>},
    .pad = {pad<float>, pad<double>},
    .repeat = {repeat<float>, repeat<double>}};

}  // namespace kassette
