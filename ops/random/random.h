// ops/random/random.h - random numbers: sources yield keys, and each element of a draw is a pure function of the key
// and the element's index.
#pragma once
#include "devices/cpu/level.h"
#include "ops/engine/op.h"
#include "ops/random/philox.h"

namespace kassette::ops {

// --- sources and keys ------------------------------------------------------------------------------------------------
// Note [Series of draws]
// Each evaluation of a random op asks its source for a key; the n-th key of a source is (seed, n). A seeded source
// yields the same series inside of control flow as outside. There it is evaluated once per evaluation of the body, call
// after call and, in a loop, step after step: of a loop of 3 steps that is called twice, the first call evaluates its
// body with the keys 0, 1 and 2, the second with 3, 4 and 5. The node that holds a body has a key of its own, whose
// draw number is the number of the node's evaluation. A source in the body yields (seed, number of the body's
// evaluation), with its own seed or, without one, with a seed derived from the node's key. So keys are a function of
// the node's key and the step, and adjoints and rematerialized steps draw the masks of the forward pass.
//
// The number of steps may differ between calls. The key of an outermost loop therefore counts steps in place of
// evaluations (NodeKey::counts_steps). A loop inside of a body does not know how long its earlier evaluations were: if
// lengths differ, keys may repeat.
//
// An eager loop calls the user's step function once per step, and each call makes a new source: the one of step t of n
// begins with draw number t + 1 and counts on by n. t and n are context().loop_step and loop_steps, which start again
// in each traced body.
//
// A series without a seed of its own begins anew when the global generator is seeded: the source takes its next seed
// before the next draw. So what is drawn after set_random_seed depends on what is done from then on, not on what was
// done before.

/// Bytes of a key tensor: two int64 on the host, the words of a RandomKey.
inline constexpr int kKeyBytes = 16;
static_assert(sizeof(RandomKey) == kKeyBytes);
/// The key of a node with a body. Without counts_steps its words are those of a RandomKey of draw `number`.
struct NodeKey {
  std::uint64_t seed;
  std::uint64_t number : 63;       // of the node's evaluation or, with counts_steps, of the loop's first step
  std::uint64_t counts_steps : 1;  // the key of an outermost loop
};
static_assert(sizeof(NodeKey) == kKeyBytes);

/// Seeds the global generator, which seeds all sources that have no seed of their own: later ones as they are made,
/// earlier ones before their next draw.
void set_random_seed(std::uint64_t seed);
/// Before a draw: if the global generator was seeded since a source took its seed from it, the source takes the next
/// one and begins a new series. Returns whether it did.
bool follow_seeding(Cell& source);
/// Makes a source and returns the key of its first draw. The key is on the tape: each run of a plan asks the source for
/// the next one. With `seed` None the source takes the next seed of the global generator; an integer seed starts a
/// series of its own. Throws TypeError for other numbers.
Tensor next_key(const Scalar& seed, const char* what = "random");
/// The key of a loop over axis 0 of x. It counts steps if the loop is in no traced body.
Tensor next_loop_key(const Tensor& x, const char* what);
/// How the node of a source yields keys.
struct KeySource {
  bool seeded = false;
  std::uint64_t seed = 0;
  std::uint64_t steps = 1, step = 0;  // of the eager loops around it, as Context has them
};
KeySource key_source(const Node& key);
/// Writes to `out` the key of source number `index` of a body in step `step` of `steps`. `key` is the key of the node
/// that holds the body.
void derive_key(const void* key, std::uint64_t step, std::uint64_t steps, std::uint64_t index, const KeySource& source,
                void* out);
/// Restores the global generator if the scope is left by an exception: a call that throws must not shift the series.
/// Not if another thread has taken a seed in the meantime.
class SeedScope {
 public:
  SeedScope();
  ~SeedScope();
  SeedScope(const SeedScope&) = delete;
  SeedScope& operator=(const SeedScope&) = delete;
  /// What was taken stays taken, whatever happens.
  void keep() { kept_ = true; }

 private:
  bool kept_ = false;
  std::uint64_t taken_;
  int exceptions_;
};

/// A source as it is at the beginning of a call that draws from it.
struct SourceState {
  std::uint64_t draws;
  bool seeded;  // for this call
};
/// Has the source follow the seeding of the global generator.
SourceState before_call(Cell& source);
/// The call fails, which may have drawn `n` times: sets the counter back, unless another call has drawn meanwhile. A
/// seed that was taken for the call is returned; `seeds` surrounds the call.
void undo_call(Cell& source, const SourceState& before, std::uint64_t n, SeedScope& seeds);

// --- draws -----------------------------------------------------------------------------------------------------------
/// The arguments that all draws share: a key and a shape argument (ops/engine/dims.h), both on the host, and the
/// samples' dtype and device.
struct Draw {
  const Tensor& key;
  const Tensor& dims;
  DType dtype;
  Device device = context().default_device;
};
/// Uniform in [low, high), of a float dtype. A sample that would round to `high` is rounded down.
Tensor random_uniform(const Draw& draw, double low = 0, double high = 1);
/// Uniform between tensors of the samples' float dtype and device. The result has the shape that `dims` and both bounds
/// broadcast to.
Tensor random_between(const Draw& draw, const Tensor& low, const Tensor& high);
/// Throws ValueError unless both bounds are finite in the dtype, and their difference in float32 or, for float64, in
/// float64.
void check_bounds(double low, double high, DType dtype);
/// Uniform integers in [low, high), for low < high.
Tensor random_integers(const Draw& draw, std::int64_t low, std::int64_t high);
/// The bounds are int64 scalars on the host. The kernel throws ValueError unless low < high.
Tensor random_integers(const Draw& draw, const Tensor& low, const Tensor& high);
/// Samples of N(mean, stddev^2), of a float dtype.
Tensor random_normal(const Draw& draw, double mean = 0, double stddev = 1);
/// Samples of N(mean, stddev^2) less than two standard deviations from the mean.
Tensor truncated_normal(const Draw& draw, double mean = 0, double stddev = 1);
/// 1 with probability p, else 0.
Tensor bernoulli(const Draw& draw, double p);
/// Keeps each element with probability 1 - level, divided by 1 - level, and sets the others to 0. `dims` is the shape
/// of the mask, which broadcasts to x: -1 stands for x's size, an undefined Tensor for x's shape.
Tensor dropout(const Tensor& x, const Tensor& key, const Tensor& dims, double level);

extern const OpDef random_key_op, random_uniform_op, random_between_op, random_integers_op, random_normal_op,
    truncated_normal_op, bernoulli_op, dropout_op;

// --- loops -----------------------------------------------------------------------------------------------------------
/// How loops turn draws v into samples: min(v * scale + shift, top). For masks: an element is kept if its random word
/// is less than `below`.
struct RandomForm {
  double scale, shift, top;
  std::uint64_t below;  // at most 2^32
};
/// Inner loops at one CPU level. Each fills elements [first, first + n) of a draw; `first` is a multiple of 64.
struct RandomLoops {
  using Fill = void (*)(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, void* out);
  Fill words, uniform_f32, uniform_f64, normal_f32, normal_f64, truncated_f32, truncated_f64, bernoulli_f32;
  /// out[i] = word i < below ? x[i] * scale : 0
  void (*dropout_f32)(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, const float* x,
                      float* out);
};
KASSETTE_LEVEL_TABLES(RandomLoops, random_loops)

}  // namespace kassette::ops
