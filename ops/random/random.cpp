// ops/random/random.cpp - random numbers: sources, keys, and the ops and kernels of draws.
#include "ops/random/generator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <mutex>
#include <random>

#include "core/convert.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/cast.h"
#include "ops/engine/coalesce.h"
#include "ops/engine/dims.h"
#include "ops/random/integer_range.h"
#include "ops/random/random_attrs.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // a multiple of a group of words, so that each thread's part begins with one
constexpr std::int64_t kBlock = 512;      // likewise
static_assert(kGrain % kGroupWords == 0 && kBlock % kGroupWords == 0);

// --- the global generator --------------------------------------------------------------------------------------------

// Counts the calls of set_random_seed, from 1: by it a source knows that its seed is an old one. Changes under the
// lock.
constinit std::atomic<std::uint32_t> seeding{1};
constexpr std::uint32_t kGivenSeed = 0, kNoSeeding = UINT32_MAX;  // in place of such a count

struct Global {
  std::mutex mutex;
  bool seeded = false;
  RandomKey key{};
  const void* last_taker = nullptr;  // identifies the thread that took the last taken_in_turn seeds
  std::uint64_t taken_in_turn = 0;
};
constinit Global global;

/// One Philox block of a counter, as two 64-bit words.
RandomKey mix(std::uint64_t key, std::uint64_t low, std::uint64_t high) {
  PhiloxWords r = random_block({key, high}, low);
  return {std::uint64_t(r.w[1]) << 32 | r.w[0], std::uint64_t(r.w[3]) << 32 | r.w[2]};
}

thread_local std::uint64_t seeds_taken = 0;  // by this thread

/// The next seed of the global generator, whose lock the caller holds.
std::uint64_t next_seed() {
  if (!global.seeded) {
    std::random_device entropy;
    global.key = {std::uint64_t(entropy()) << 32 | entropy(), 0};
    global.seeded = true;
  }
  if (global.last_taker != &seeds_taken) global.taken_in_turn = 0;
  global.last_taker = &seeds_taken;
  ++global.taken_in_turn;
  ++seeds_taken;
  return mix(global.key.seed, global.key.draw++, 0).seed;
}

void take_seed(Cell& source) {
  source.seed.store(next_seed(), std::memory_order_relaxed);
  source.draws.store(0, std::memory_order_relaxed);
  source.seeding.store(seeding.load(std::memory_order_relaxed), std::memory_order_release);
}

void seed_source(Cell& source, const Scalar& seed, const char* what) {
  switch (Access::kind(seed)) {
    case Scalar::kNone: {
      std::lock_guard<std::mutex> lock(global.mutex);
      return take_seed(source);
    }
    case Scalar::kInt:
    case Scalar::kUint: return source.seed.store(static_cast<std::uint64_t>(Access::int_value(seed)));
    default: fail<TypeError>({what, "seed"}, "is ", scalar_text(seed), kExpected, "it must be an integer or None");
  }
}

// --- rules -----------------------------------------------------------------------------------------------------------

void key_rule(const OpCall&, TensorSpec* out) {
  out->dtype = int64;
  out->rank = 1;
  out->dims[0] = kKeyBytes / 8;
}

struct KeyAttrs {
  static constexpr const char* attrs_name = "random_key";
  bool seeded;                // the user gave a seed
  std::uint64_t steps, step;  // of the eager loops around the source, as Context has them
};

void key_kernel(const OpCall& call) {
  Cell& source = *call.in[0].desc->node->cell;
  follow_seeding(source);
  const KeyAttrs& attrs = call.attrs.as<KeyAttrs>();
  const bool loop = call.n_in > 1;
  const std::uint64_t n = loop ? static_cast<std::uint64_t>(call.in[1].dim(0)) : 1;
  const std::uint64_t before = source.draws.fetch_add(n, std::memory_order_relaxed);
  const NodeKey key{source.seed.load(std::memory_order_relaxed), before * attrs.steps + attrs.step * n + 1, loop};
  std::memcpy(call.out[0]->data(), &key, sizeof key);
}

void draw_rule(const OpCall& call, TensorSpec* out) {
  out->dtype = call.op.placement(call.attrs).dtype;
  dims_from(call, 1, out);
}
void float_draw_rule(const OpCall& call, TensorSpec* out) {
  DType dtype = call.op.placement(call.attrs).dtype;
  if (!dtype.is_float()) fail<TypeError>({call.op.name, "dtype"}, "is ", dtype, kExpected, "it must be a float dtype");
  draw_rule(call, out);
}

void integer_draw_rule(const OpCall& call, TensorSpec* out) {
  draw_rule(call, out);
  for (int i = 2; i < call.n_in; ++i)
    if (call.spec(i).rank > 0)
      fail<TypeError>({call.op.name, i == 2 ? "minval" : "maxval"}, "has shape ", call.spec(i), kExpected,
                      "integer bounds must be scalars");
}

/// Sets `mask` to the shape argument, with x's sizes in place of -1 and kUnknown for unknown ones. Returns false if the
/// call has no shape argument: the mask then has the shape of x.
bool mask_spec(const OpCall& call, TensorSpec& mask) {
  if (call.n_in < 3) return false;
  const TensorSpec& x = call.spec(0);
  DimValues given = read_dims(call, 2, "noise_shape");
  mask.rank = static_cast<std::int8_t>(given.rank);
  if (given.rank < 0 || x.rank < 0) return true;
  int shift = x.rank - given.rank;
  for (int i = 0; i < given.rank; ++i) {
    std::int64_t n = i + shift < 0 ? 1 : x.dims[i + shift];
    bool none = !given.is_unknown(i) && given.at[i] == -1;
    mask.dims[i] = given.is_unknown(i) ? kUnknown : none ? n : given.at[i];
    if (mask.dims[i] != 1 && differ(mask.dims[i], n))
      fail<ValueError>({"dropout", "noise_shape"}, given, " does not broadcast to x of shape ", x);
    if (!given.is_unknown(i) && given.at[i] < -1)
      fail<ValueError>({"dropout", "noise_shape"}, given, kExpected,
                       "sizes must not be negative, except -1 for that of x");
  }
  if (shift < 0) fail<ValueError>({"dropout", "noise_shape"}, given, " does not broadcast to x of shape ", x);
  return true;
}
void dropout_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  if (!x.dtype.is_float()) fail<ValueError>({"dropout", "x"}, "is ", x.dtype, kExpected, "it must be a float dtype");
  TensorSpec mask;
  mask_spec(call, mask);
  out->set(x);
}

// --- kernels ---------------------------------------------------------------------------------------------------------

RandomKey key_of(const OpCall& call, int i) {
  RandomKey key;
  std::memcpy(&key, call.in[i].data, sizeof key);
  return key;
}

/// The largest value of a float dtype below `high`.
double largest_below(double high, DType dtype) {
  auto as = [&](double x) { return rounded_to(x, dtype); };
  double v = as(high);
  if (v < high || std::isnan(v)) return v;
  if (dtype == float64) return std::nextafter(v, -INFINITY);
  if (dtype == float32) return std::nextafter(static_cast<float>(v), -INFINITY);
  // Steps down until the result rounds to a lower value. Half types need a step of at least 2^-12 of the value.
  for (double step = std::max(std::fabs(v), 1e-300) * 0x1p-13;; step *= 2)
    if (double down = as(v - step); down < high) return down;
}

/// Fills the output by a float loop; half types are computed in float32.
void fill(const OpCall& call, RandomLoops::Fill f32, RandomLoops::Fill f64, const RandomForm& form) {
  const TensorDesc& out = *call.out[0];
  RandomKey key = key_of(call, 0);
  std::byte* to = out.data();
  DType dtype = out.dtype;
  devices::parallel_for(out.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (dtype == float32) return f32(key, begin, end - begin, form, to + begin * 4);
    if (dtype == float64) return f64(key, begin, end - begin, form, to + begin * 8);
    alignas(64) float buffer[kBlock];
    for (std::int64_t at = begin; at < end; at += kBlock) {
      std::int64_t n = std::min(kBlock, end - at);
      f32(key, at, n, form, buffer);
      cast_elements(to + at * 2, dtype, buffer, float32, n);
    }
  });
}

const RandomLoops& loops() { return KASSETTE_PICK(random_loops); }

void uniform_kernel(const OpCall& call) {
  const UniformAttrs& u = call.attrs.as<UniformAttrs>();
  fill(call, loops().uniform_f32, loops().uniform_f64, {u.high - u.low, u.low, u.top, 0});
}
void normal_kernel(const OpCall& call) {
  const NormalAttrs& n = call.attrs.as<NormalAttrs>();
  fill(call, loops().normal_f32, loops().normal_f64, {n.stddev, n.mean, INFINITY, 0});
}
void truncated_kernel(const OpCall& call) {
  const NormalAttrs& n = call.attrs.as<NormalAttrs>();
  fill(call, loops().truncated_f32, loops().truncated_f64, {n.stddev, n.mean, INFINITY, 0});
}

/// Calls f(first, words, n) for blocks of elements, with a random word for each, on several threads.
template <class F>
void for_words(const RandomKey& key, std::int64_t n, F f) {
  devices::parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) std::uint32_t words[kBlock];
    for (std::int64_t at = begin; at < end; at += kBlock) {
      std::int64_t m = std::min(kBlock, end - at);
      loops().words(key, at, m, RandomForm{}, words);
      f(at, words, m);
    }
  });
}

/// The same with 64 bits per element: see Note [Order of random words].
template <class F>
void for_words64(const RandomKey& key, std::int64_t n, F f) {
  devices::parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) std::uint32_t words[kBlock];
    std::uint64_t wide[kBlock / 2];
    for (std::int64_t at = begin; at < end; at += kBlock / 2) {
      std::int64_t m = std::min(kBlock / 2, end - at);
      loops().words(key, 2 * at, (2 * m + kGroupWords - 1) / kGroupWords * kGroupWords, RandomForm{}, words);
      for (std::int64_t i = 0; i < m; ++i) {
        std::int64_t high = i / 16 * 32 + i % 16;
        wide[i] = std::uint64_t(words[high]) << 32 | words[high + 16];
      }
      f(at, wide, m);
    }
  });
}

/// The bound that a random word of 32 bits is below with probability p.
std::uint64_t words_below(double p) {
  if (!(p > 0)) return 0;
  return p >= 1 ? std::uint64_t(1) << 32 : static_cast<std::uint64_t>(std::ceil(p * 0x1p32));
}

void bernoulli_kernel(const OpCall& call) {
  const TensorDesc& out = *call.out[0];
  RandomKey key = key_of(call, 0);
  RandomForm form{0, 0, 0, words_below(call.attrs.as<BernoulliAttrs>().p)};
  if (out.dtype == float32) return fill(call, loops().bernoulli_f32, nullptr, form);
  dispatch(out.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    T* to = call.out_as<T>();
    const T one = convert_one<T>(1.0f), zero = convert_one<T>(0.0f);
    for_words(key, out.numel(), [&](std::int64_t at, const std::uint32_t* words, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) to[at + i] = words[i] < form.below ? one : zero;
    });
  });
}

void integers_kernel(const OpCall& call) {
  const TensorDesc& out = *call.out[0];
  RandomKey key = key_of(call, 0);
  const IntegerRange range = integer_range(call);
  dispatch(out.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    T* to = call.out_as<T>();
    if constexpr (std::is_integral_v<T>)
      for_words64(key, out.numel(), [&](std::int64_t at, const std::uint64_t* words, std::int64_t n) {
        // The upper half of the product is below range.size. Probabilities differ by at most range.size / 2^64,
        // relatively.
        for (std::int64_t i = 0; i < n; ++i) {
          auto offset = static_cast<std::uint64_t>(static_cast<unsigned __int128>(words[i]) * range.size >> 64);
          to[at + i] = static_cast<T>(range.low + offset);
        }
      });
  });
}

template <class T>
T scaled(T x, double scale) {
  if constexpr (std::is_same_v<T, double>) return x * scale;
  else return convert_one<T>(convert_one<float>(x) * static_cast<float>(scale));
}

/// Dropout with a mask of the shape of x.
template <class T>
void drop_each(const RandomKey& key, std::int64_t n, const RandomForm& form, const T* x, T* out) {
  for_words(key, n, [&](std::int64_t at, const std::uint32_t* words, std::int64_t m) {
    for (std::int64_t i = 0; i < m; ++i) out[at + i] = words[i] < form.below ? scaled(x[at + i], form.scale) : T{};
  });
}
/// Dropout with a mask that broadcasts: computes the mask first, then applies it row by row.
template <class T>
void drop_broadcast(const RandomKey& key, const TensorSpec& spec, const TensorSpec& mask, const RandomForm& form,
                    const T* x, T* out) {
  auto kept = Storage::allocate(mask.numel(), cpu);
  auto* keep = static_cast<std::uint8_t*>(kept->data);
  for_words(key, mask.numel(), [&](std::int64_t at, const std::uint32_t* words, std::int64_t m) {
    for (std::int64_t i = 0; i < m; ++i) keep[at + i] = words[i] < form.below;
  });
  std::int64_t stride[kMaxRank];
  broadcast_strides(mask, spec, stride);
  int last = spec.rank - 1;
  std::int64_t inner = spec.dims[last], rows = spec.numel() / inner;
  devices::parallel_for(rows, std::max<std::int64_t>(1, kGrain / inner), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::int64_t rest = row, at = 0;
      for (int i = last - 1; i >= 0; --i) {
        at += rest % spec.dims[i] * stride[i];
        rest /= spec.dims[i];
      }
      const T* from = x + row * inner;
      T* to = out + row * inner;
      for (std::int64_t i = 0; i < inner; ++i) to[i] = keep[at + i * stride[last]] ? scaled(from[i], form.scale) : T{};
    }
  });
}

void dropout_kernel(const OpCall& call) {
  const TensorDesc& out = *call.out[0];
  std::int64_t n = out.numel();
  if (n == 0) return;
  RandomKey key = key_of(call, 1);
  double level = call.attrs.as<DropoutAttrs>().level;
  RandomForm form{1 / (1 - level), 0, 0, 0};
  form.below = (std::uint64_t(1) << 32) - words_below(level);
  TensorSpec mask;
  bool broadcast = mask_spec(call, mask) && mask.numel() != n;
  if (out.dtype == float32 && !broadcast) {
    auto* x = call.in[0].as<float>();
    float* to = call.out_as<float>();
    devices::parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
      loops().dropout_f32(key, begin, end - begin, form, x + begin, to + begin);
    });
    return;
  }
  dispatch(out.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (std::is_floating_point_v<T> || kIsHalf<T>) {
      if (broadcast) drop_broadcast(key, out, mask, form, call.in[0].as<T>(), call.out_as<T>());
      else drop_each(key, n, form, call.in[0].as<T>(), call.out_as<T>());
    }
  });
}
void dropout_gradient(const VjpContext& ctx) {
  ctx.din(0) = dropout(ctx.dy(), ctx.in(1), ctx.n_in() > 2 ? ctx.in(2) : Tensor(), ctx.attrs.as<DropoutAttrs>().level);
}

Placement placement_of(const Draw& draw) { return {draw.dtype, draw.device}; }

}  // namespace

constexpr std::uint32_t kAllHost = 3;

constinit const OpDef random_key_op{
    .name = "random_key", .rule = key_rule, .cpu = key_kernel, .shape_only = 3, .host = 3, .traits = kMakesKey};
constinit const OpDef random_uniform_op{.name = "random_uniform",
                                        .rule = float_draw_rule,
                                        .cpu = uniform_kernel,
                                        .host = kAllHost,
                                        .traits = kDraws,
                                        .placement = placement_in<UniformAttrs>};
constinit const OpDef random_normal_op{.name = "random_normal",
                                       .rule = float_draw_rule,
                                       .cpu = normal_kernel,
                                       .host = kAllHost,
                                       .traits = kDraws,
                                       .placement = placement_in<NormalAttrs>};
constinit const OpDef truncated_normal_op{.name = "truncated_normal",
                                          .rule = float_draw_rule,
                                          .cpu = truncated_kernel,
                                          .host = kAllHost,
                                          .traits = kDraws,
                                          .placement = placement_in<NormalAttrs>};
constinit const OpDef random_integers_op{.name = "random_integers",
                                         .rule = integer_draw_rule,
                                         .cpu = integers_kernel,
                                         .host = 15,
                                         .traits = kDraws,
                                         .placement = placement_in<IntegersAttrs>};
constinit const OpDef bernoulli_op{.name = "bernoulli",
                                   .rule = draw_rule,
                                   .cpu = bernoulli_kernel,
                                   .host = kAllHost,
                                   .traits = kDraws,
                                   .placement = placement_in<BernoulliAttrs>};
// The gradient recomputes the mask from the key, so that it is never stored.
constinit const OpDef dropout_op{.name = "dropout",
                                 .rule = dropout_rule,
                                 .cpu = dropout_kernel,
                                 .vjp = dropout_gradient,
                                 .saves_in = 6,
                                 .host = 6,
                                 .traits = kDraws};

SeedScope::SeedScope() : taken_(seeds_taken), exceptions_(std::uncaught_exceptions()) {}
SeedScope::~SeedScope() {
  const std::uint64_t since = seeds_taken - taken_;
  if (kept_ || since == 0 || std::uncaught_exceptions() == exceptions_) return;
  std::lock_guard<std::mutex> lock(global.mutex);
  if (global.last_taker != &seeds_taken || global.taken_in_turn < since)
    return;  // another thread has taken seeds in the meantime
  global.key.draw -= since;
  global.taken_in_turn -= since;
  seeds_taken -= since;
}

void set_random_seed(std::uint64_t seed) {
  std::lock_guard<std::mutex> lock(global.mutex);
  global.key = {seed, 0};
  global.seeded = true;
  global.taken_in_turn = 0;
  std::uint32_t next = seeding.load(std::memory_order_relaxed) + 1;
  if (next == kNoSeeding) next = 1;
  seeding.store(next, std::memory_order_release);
}

bool follow_seeding(Cell& source) {
  const std::uint32_t from = source.seeding.load(std::memory_order_acquire);
  if (from == kGivenSeed || from == seeding.load(std::memory_order_acquire)) return false;
  std::lock_guard<std::mutex> lock(global.mutex);
  if (source.seeding.load(std::memory_order_relaxed) == seeding.load(std::memory_order_relaxed)) return false;
  take_seed(source);
  return true;
}

SourceState before_call(Cell& source) {
  const bool seeded = follow_seeding(source);
  return {source.draws.load(std::memory_order_relaxed), seeded};
}

void undo_call(Cell& source, const SourceState& before, std::uint64_t n, SeedScope& seeds) {
  std::uint64_t drawn = before.draws + n;
  const bool ours = source.draws.compare_exchange_strong(drawn, before.draws, std::memory_order_relaxed);
  if (!before.seeded) return;
  if (ours || drawn == before.draws) source.seeding.store(kNoSeeding, std::memory_order_release);
  else seeds.keep();
}

KeySource key_source(const Node& key) {
  const KeyAttrs& attrs = key.attrs.as<KeyAttrs>();
  return {attrs.seeded, key.in()[0].node->cell->seed.load(std::memory_order_relaxed), attrs.steps, attrs.step};
}

void derive_key(const void* key, std::uint64_t step, std::uint64_t steps, std::uint64_t index, const KeySource& source,
                void* out) {
  RandomKey words;
  std::memcpy(&words, key, sizeof words);
  const auto of = std::bit_cast<NodeKey>(words);
  const std::uint64_t at = of.number - 1, n = (of.counts_steps ? at : at * steps) + step;
  RandomKey k{source.seed, n * source.steps + source.step + 1};
  if (!source.seeded) {
    RandomKey mixed = mix(of.seed, ~std::uint64_t(0), words.draw);  // no draw has so many blocks
    k.seed = mix(mixed.seed ^ index, step, mixed.draw).seed;
  }
  std::memcpy(out, &k, sizeof k);
}

namespace {

Tensor key_of_source(const Scalar& seed, const char* what, const Tensor& x) {
  const Context& c = context();
  Tensor leaf = make_leaf(Leaf::random_source, TensorSpec(int64, {kKeyBytes / 8}), cpu, {}, None);
  TensorDesc& b = Access::desc(leaf);
  b.flags |= kDraw;
  b.depth = c.depth;
  Cell& source = *b.node->cell;
  seed_source(source, seed, what);
  const Attrs attrs = KeyAttrs{!seed.is_none(), c.loop_steps, c.loop_step};
  Tensor key = x.defined() ? apply1(random_key_op, attrs, {leaf, x}) : apply1(random_key_op, attrs, {leaf});
  source.has_value = !key.symbolic();
  return key;
}

}  // namespace

Tensor generator_source(const GeneratorState& state) {
  Tensor leaf = make_leaf(Leaf::random_source, TensorSpec(int64, {kKeyBytes / 8}), cpu, {}, None);
  Access::desc(leaf).flags |= kDraw;
  set_generator_state(leaf, state);
  return leaf;
}
GeneratorState generator_state(const Tensor& source) {
  const Cell& cell = *Access::desc(source).node->cell;
  return {cell.seed.load(), cell.draws.load()};
}
void set_generator_state(const Tensor& source, const GeneratorState& state) {
  Cell& cell = *Access::desc(source).node->cell;
  cell.seed.store(state.seed);
  cell.draws.store(state.draws);
}
Tensor generator_key(const Tensor& source, const char* what) {
  Cell& cell = *Access::desc(source).node->cell;
  if (context().depth > Access::desc(source).depth) {
    const std::uint64_t number = cell.draws.fetch_add(1, std::memory_order_relaxed);
    return next_key(static_cast<std::int64_t>(mix(cell.seed.load(), number, ~std::uint64_t(0)).seed), what);
  }
  Tensor key = apply1(random_key_op, KeyAttrs{true, 1, 0}, {source});
  cell.has_value = !key.symbolic();
  return key;
}

Tensor next_key(const Scalar& seed, const char* what) { return key_of_source(seed, what, Tensor()); }
Tensor next_loop_key(const Tensor& x, const char* what) { return key_of_source(None, what, x); }

void check_bounds(double low, double high, DType dtype) {
  DType computed = dtype == float64 ? float64 : float32;
  bool finite = std::isfinite(rounded_to(low, dtype)) && std::isfinite(rounded_to(high, dtype)) &&
                std::isfinite(rounded_to(high - low, computed));
  if (!finite)
    fail<ValueError>({"random_uniform"}, "from ", low, " to ", high, kExpected,
                     "bounds and their distance must be finite in ", dtype);
}
Tensor random_uniform(const Draw& draw, double low, double high) {
  double top = high > low && draw.dtype.is_float() ? largest_below(high, draw.dtype) : INFINITY;
  return apply1(random_uniform_op, UniformAttrs{low, high, top, placement_of(draw)}, {draw.key, draw.dims});
}
Tensor random_normal(const Draw& draw, double mean, double stddev) {
  return apply1(random_normal_op, NormalAttrs{mean, stddev, placement_of(draw)}, {draw.key, draw.dims});
}
Tensor truncated_normal(const Draw& draw, double mean, double stddev) {
  return apply1(truncated_normal_op, NormalAttrs{mean, stddev, placement_of(draw)}, {draw.key, draw.dims});
}
Tensor random_integers(const Draw& draw, std::int64_t low, std::int64_t high) {
  return apply1(random_integers_op, IntegersAttrs{low, high, placement_of(draw)}, {draw.key, draw.dims});
}
Tensor random_integers(const Draw& draw, const Tensor& low, const Tensor& high) {
  return apply1(random_integers_op, IntegersAttrs{0, 0, placement_of(draw)}, {draw.key, draw.dims, low, high});
}
Tensor bernoulli(const Draw& draw, double p) {
  return apply1(bernoulli_op, BernoulliAttrs{p, placement_of(draw)}, {draw.key, draw.dims});
}
Tensor dropout(const Tensor& x, const Tensor& key, const Tensor& dims, double level) {
  const DropoutAttrs attrs{level};
  return dims.defined() ? apply1(dropout_op, attrs, {x, key, dims}) : apply1(dropout_op, attrs, {x, key});
}

}  // namespace kassette::ops
