// ops/random.h - random numbers: sources yield keys, and a draw is a pure function of its key and an element's index.
#pragma once
#include "devices/cpu/level.h"
#include "ops/op.h"
#include "ops/philox.h"

namespace kassette {

// ---- sources and keys ------------------------------------------------------------------------------------------------
// Note [Series of draws]
// A source is asked for a key at each evaluation of what draws from it; its n-th key is (seed, n). A seeded draw gives that same
// series wherever it stands. In a body of control flow its evaluations are those of the body, one call after the other and, in
// a loop, one step after the other: evaluation e of a loop of n steps holds the evaluations e * n to e * n + n - 1 of its body.
// The node that holds a body has a key of its own whose draw number says which evaluation this is; a source in the body that
// has a seed yields (its seed, the number of the body's evaluation), another one takes a seed from the key of the node. So keys
// are a function of the node's key and the step: an adjoint and a step that is played again find the masks of the forward pass.
//
// The number of steps may change from call to call. A loop in no other body therefore has a key that counts steps
// (kCountsSteps); a loop inside a body does not know the lengths it had before, and if they vary its numbers may come twice.
//
// A plain loop calls the user's step again and again, which makes a source each time: in step t of n that one begins with number
// t + 1 and goes on by n. That is what context().loop_step and loop_steps are, from the innermost body inwards.

/// A key tensor is two int64 on the host: the words of a RandomKey.
inline constexpr int kKeyBytes = 16;
static_assert(sizeof(RandomKey) == kKeyBytes);
/// In the draw number of a loop's key: it is that of the first step, not of the loop.
inline constexpr std::uint64_t kCountsSteps = std::uint64_t(1) << 63;

/// All later sources without a seed of their own follow from this one.
void set_random_seed(std::uint64_t seed);
/// The key of a new source's first draw, on the tape: whatever replays it asks the source anew. None takes the next seed of
/// the global generator; an integer starts a sequence of its own. Throws TypeError for other numbers.
Tensor next_key(const Scalar& seed, const char* what = "random");
/// The key of a loop over axis 0 of x, which counts steps.
Tensor next_loop_key(const Tensor& x, const char* what);
/// How the node of a source yields keys.
struct KeySource {
  bool seeded = false;
  std::uint64_t seed = 0;
  std::uint64_t steps = 1, step = 0;  // of the plain loops that made it
};
KeySource key_source(const Node& key);
/// The key that source number `index` of a body has in step `step` of `steps`, from the key of the body's node.
void derive_key(const void* key, std::uint64_t step, std::uint64_t steps, std::uint64_t index, const KeySource& source,
                void* out);
/// What throws draws nothing: the seeds that this thread has taken meanwhile are given back, unless another thread drew between.
class SeedScope {
 public:
  SeedScope();
  ~SeedScope();
  SeedScope(const SeedScope&) = delete;
  SeedScope& operator=(const SeedScope&) = delete;

 private:
  std::uint64_t taken_;
  int exceptions_;
};

// ---- draws -----------------------------------------------------------------------------------------------------------
/// A key, a shape argument as a tensor (ops/dims.h), both on the host, and the dtype of the samples.
struct Draw {
  const Tensor& key;
  const Tensor& dims;
  DType dtype;
  Device device = context().place;
};
/// U[low, high) of a float dtype, rounded down where rounding would give `high`.
Tensor random_uniform(const Draw& draw, double low = 0, double high = 1);
/// The same for bounds that are tensors of the samples' float dtype, on their device. What the three shapes broadcast to is the shape.
Tensor random_between(const Draw& draw, const Tensor& low, const Tensor& high);
/// Throws ValueError unless a float dtype holds both bounds and their distance.
void check_bounds(double low, double high, DType dtype);
/// Integers of [low, high), low < high.
Tensor random_integers(const Draw& draw, std::int64_t low, std::int64_t high);
/// The same for bounds that are int64 scalars on the host: a ValueError where they come together, once they are known.
Tensor random_integers(const Draw& draw, const Tensor& low, const Tensor& high);
/// N(mean, stddev^2) of a float dtype.
Tensor random_normal(const Draw& draw, double mean = 0, double stddev = 1);
/// The same without what lies two standard deviations or more from the mean.
Tensor truncated_normal(const Draw& draw, double mean = 0, double stddev = 1);
/// 1 with probability p, else 0.
Tensor bernoulli(const Draw& draw, double p);
/// Elements are kept with probability 1 - level and divided by it, else 0. `dims` is the shape of the mask, which broadcasts
/// to x; -1 in it stands for x's size, and an empty Tensor for x's shape.
Tensor dropout(const Tensor& x, const Tensor& key, const Tensor& dims, double level);

extern const OpDef random_key_op, random_uniform_op, random_between_op, random_integers_op, random_normal_op,
    truncated_normal_op, bernoulli_op, dropout_op;

// ---- loops -----------------------------------------------------------------------------------------------------------
/// What a loop makes of the draws: v * scale + shift, at most `top`. For masks: kept where a word is below `below`.
struct RandomForm {
  double scale, shift, top;
  std::uint64_t below;  // at most 2^32
};
/// Loops over elements [first, first + n) of a draw; first is a multiple of 64.
struct RandomLoops {
  using Fill = void (*)(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, void* out);
  Fill words, uniform_f32, uniform_f64, normal_f32, normal_f64, truncated_f32, truncated_f64, bernoulli_f32;
  /// out[i] = word i < below ? x[i] * scale : 0
  void (*dropout_f32)(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, const float* x,
                      float* out);
};
KASSETTE_LEVEL_TABLES(RandomLoops, random_loops)

}  // namespace kassette
