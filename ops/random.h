// ops/random.h - random numbers: sources yield keys, and a draw is a pure function of its key and an element's index.
#pragma once
#include "devices/cpu/level.h"
#include "ops/op.h"
#include "ops/philox.h"

namespace kassette {

// ---- sources and keys ------------------------------------------------------------------------------------------------
/// A key tensor is two int64 on the host: the words of a RandomKey.
inline constexpr int kKeyBytes = 16;
static_assert(sizeof(RandomKey) == kKeyBytes);

/// All later sources without a seed of their own follow from this one.
void set_random_seed(std::uint64_t seed);
/// The key of a new source's first draw, on the tape: whatever replays it asks the source anew. None takes the next seed of
/// the global generator; an integer starts a sequence of its own. Throws TypeError for other numbers.
Tensor next_key(const Scalar& seed, const char* what = "random");
/// The number of the source's next draw: 1, 2, ...
std::uint64_t draw_counter(Cell& source);
/// The source's next key, kKeyBytes of it.
void make_key(Cell& source, void* out);
/// The key that source number `source` of a body has in step `step`, from the key of the body.
void derive_key(const void* key, std::uint64_t step, std::uint64_t source, void* out);

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

extern const OpDef random_key_row, random_uniform_row, random_between_row, random_integers_row, random_normal_row,
    truncated_normal_row, bernoulli_row, dropout_row;

// ---- loops -----------------------------------------------------------------------------------------------------------
/// What a loop makes of the draws: v * scale + shift, at most `top`. For masks: kept where a word is below `below`.
struct Form {
  double scale, shift, top;
  std::uint64_t below;   // at most 2^32
};
/// Loops over elements [first, first + n) of a draw; first is a multiple of 64.
struct RandomLoops {
  using Fill = void (*)(const RandomKey& key, std::int64_t first, std::int64_t n, const Form& form, void* out);
  Fill words, uniform_f32, uniform_f64, normal_f32, normal_f64, truncated_f32, truncated_f64, bernoulli_f32;
  /// out[i] = word i < below ? x[i] * scale : 0
  void (*dropout_f32)(const RandomKey& key, std::int64_t first, std::int64_t n, const Form& form, const float* x, float* out);
};
KASSETTE_LEVEL_TABLES(RandomLoops, random_loops)

}  // namespace kassette
