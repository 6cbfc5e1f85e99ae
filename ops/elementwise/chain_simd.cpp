// ops/elementwise/chain_simd.cpp - the opcodes of chains, see Note [Chains]; compiled once per CPU level.
#include "ops/elementwise/simd.h"  // first: ops find the functions on batches that it declares

#include "core/sanitizers.h"
#include "ops/elementwise/chain.h"

namespace kassette::ops {
inline namespace KASSETTE_LEVEL {
namespace {

template <class T>
using Register = typename Vec<T>::V::register_type;  // xsimd batches are classes, which may be passed in memory
template <class T, int>
struct At {
  using type = Register<T>;
};

constexpr std::int64_t kFetchAhead = 2048;  // bytes

// True if compilers turn the tail calls below into jumps. Without optimisation and under sanitizers they do not: then
// each chunk ends with a return, so that the stack holds the calls of one chunk and not of all.
#ifdef __OPTIMIZE__
constexpr bool kJumps = !kAddressSanitizer && !kThreadSanitizer;
#else
constexpr bool kJumps = false;
#endif

/// The jump to the next opcode.
#define KASSETTE_NEXT return reinterpret_cast<Handler>(c[1].opcode.handler)(c + 1, at, end, r...)
#define KASSETTE_HANDLER(name) \
  static void name(const ChainCode* c, std::int64_t at, std::int64_t end, typename At<T, K>::type... r)

/// Handlers of the opcodes on chunks of sizeof...(K) vectors, each in a register.
template <class T, int... K>
struct Handlers {
  using X = Vec<T>;
  using V = typename X::V;
  using Handler = void (*)(const ChainCode*, std::int64_t at, std::int64_t end, typename At<T, K>::type...);
  static constexpr std::int64_t kElements = sizeof...(K) * X::kWidth,
                                kBytes = kElements * static_cast<std::int64_t>(sizeof(T));

  static KASSETTE_FN T* operand(const ChainCode* c, std::int64_t at) {
    return reinterpret_cast<T*>(c->operand + (at & c->advance_mask));
  }

  template <class Op>
  KASSETTE_HANDLER(unary) {
    const UnaryFunction<Op> f(c->attrs);
    ((r = f(V(r))), ...);
    KASSETTE_NEXT;
  }
  template <class Op, bool kReversed>
  KASSETTE_HANDLER(binary) {
    const T* m = operand(c, at);
    auto value = [&](Register<T> own, int k) __attribute__((always_inline)) {
      const V other = X::load(m + k * X::kWidth);
      return kReversed ? Op::value(other, V(own)) : Op::value(V(own), other);
    };
    ((r = value(r, K)), ...);
    KASSETTE_NEXT;
  }
  KASSETTE_HANDLER(load) {
    const T* m = operand(c, at);
    ((r = X::load(m + K * X::kWidth)), ...);
    KASSETTE_NEXT;
  }
  KASSETTE_HANDLER(store) {
    T* m = operand(c, at);
    (X::store(m + K * X::kWidth, r), ...);
    KASSETTE_NEXT;
  }
  KASSETTE_HANDLER(stream) {
    T* m = operand(c, at);
    (X::stream(m + K * X::kWidth, r), ...);
    KASSETTE_NEXT;
  }
  /// Runs the loop of an op on the chunk at m. Not inlined: the list would be a local of the handler whose address is
  /// passed on, with which the handler calls the next opcode instead of jumping there, and the stack grows by a frame
  /// for each chunk.
  static __attribute__((noinline)) void call_loop(const ChainCode* c, T* m) {
    const void* in[2] = {m, m + kElements};  // a second operand is in the chunk after the first
    c->called.fn(in, m, kElements, *c->called.attrs);
  }
  KASSETTE_HANDLER(call) {
    T* m = operand(c, at);
    (X::store(m + K * X::kWidth, r), ...);
    call_loop(c, m);
    ((r = X::load(m + K * X::kWidth)), ...);
    KASSETTE_NEXT;
  }
  KASSETTE_HANDLER(prefetch) {
    const std::byte* m = c->operand + at + kFetchAhead;
    for (std::int64_t i = 0; i < kBytes; i += 64) __builtin_prefetch(m + i);
    KASSETTE_NEXT;
  }
  KASSETTE_HANDLER(end) {
    if (!kJumps) return;
    at += kBytes;
    if (at >= end) return;
    c = reinterpret_cast<const ChainCode*>(c->operand) - 1;
    KASSETTE_NEXT;
  }
  static void run(const ChainCode* code, std::int64_t begin, std::int64_t end) {
    const Register<T> zero = V(T(0));
    const std::int64_t chunk = kJumps ? end - begin : kBytes;
    for (std::int64_t at = begin; at < end; at += chunk)
      reinterpret_cast<Handler>(code->opcode.handler)(code, at, end, (static_cast<void>(K), zero)...);
  }
  static void pad(void* chunk, const void* from, std::int64_t n) {
    auto* to = static_cast<T*>(chunk);
    auto* f = static_cast<const T*>(from);
    for (std::int64_t i = 0; i < kElements; i += X::kWidth)
      X::store(to + i, n - i >= X::kWidth ? X::load(f + i) : n > i ? X::load_part(f + i, n - i) : V(T(1)));
  }
  static void repeat(void* chunk, const void* from) {
    for (std::int64_t i = 0; i < kElements; i += X::kWidth)
      X::store(static_cast<T*>(chunk) + i, V(*static_cast<const T*>(from)));
  }
};
template <class T>
using Short = Handlers<T, 0, 1, 2, 3>;
template <class T>
using Long = Handlers<T, 0, 1, 2, 3, 4, 5, 6, 7>;

template <class S, class Op>
constexpr typename S::Handler unary_code() {
  if constexpr (is_cheap<Op>()) return S::template unary<Op>;
  else return nullptr;
}
template <class S, class Op, bool kReversed>
constexpr typename S::Handler binary_code() {
  if constexpr (is_cheap<Op>()) return S::template binary<Op, kReversed>;
  else return nullptr;
}

// The tables are initialised statically (tests/checks/exports.sh would find an initialiser), but the casts are not
// allowed in constexpr.
#define KASSETTE_ERASED(...) \
  { reinterpret_cast<void (*)()>(__VA_ARGS__), 0, false }
#define KASSETTE_BOTH(handler) \
  { KASSETTE_ERASED(S<float>::handler), KASSETTE_ERASED(S<double>::handler) }

template <class S, class List>
const ChainOpcode unary_opcodes{};
template <class S, class... Ops>
const ChainOpcode unary_opcodes<S, OpList<Ops...>>[] = {KASSETTE_ERASED(unary_code<S, Ops>())...};
template <class S, bool kReversed, class List>
const ChainOpcode binary_opcodes{};
template <class S, bool kReversed, class... Ops>
const ChainOpcode binary_opcodes<S, kReversed, OpList<Ops...>>[] = {
    KASSETTE_ERASED(binary_code<S, Ops, kReversed>())...};

template <template <class> class S>
const ChainTable table = {
    .chunk_bytes = static_cast<int>(S<float>::kBytes),
    .unary = {unary_opcodes<S<float>, UnaryOps>, unary_opcodes<S<double>, UnaryOps>},
    .binary = {binary_opcodes<S<float>, false, BinaryOps>, binary_opcodes<S<double>, false, BinaryOps>},
    .reversed = {binary_opcodes<S<float>, true, BinaryOps>, binary_opcodes<S<double>, true, BinaryOps>},
    .call = KASSETTE_BOTH(call),
    .load = KASSETTE_BOTH(load),
    .store = KASSETTE_BOTH(store),
    .stream = KASSETTE_BOTH(stream),
    .prefetch = KASSETTE_BOTH(prefetch),
    .end = KASSETTE_BOTH(end),
    .run = {S<float>::run, S<double>::run},
    .pad = {S<float>::pad, S<double>::pad},
    .repeat = {S<float>::repeat, S<double>::repeat}};

}  // namespace
}  // namespace KASSETTE_LEVEL

const ChainTables KASSETTE_LEVEL_NAME(chain_tables) = {table<Short>, table<Long>};

}  // namespace kassette::ops
