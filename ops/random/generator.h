// ops/random/generator.h - generators, whose draws share a source that is saved and restored, and draws by rejection.
#pragma once
#include "ops/random/random.h"

namespace kassette::ops {

/// The source of a generator, which all its draws share: state is the seed and the number of draws so far.
struct GeneratorState {
  std::uint64_t seed, draws;
};
Tensor generator_source(const GeneratorState& state);
GeneratorState generator_state(const Tensor& source);
void set_generator_state(const Tensor& source, const GeneratorState& state);
/// The key of a generator's next draw; in a function, of the next one at each call. In a traced body the series is that
/// of a source of its own, whose seed the generator yields now.
Tensor generator_key(const Tensor& source, const char* what);
enum class RejectionLaw : std::int64_t;
/// Samples for parameters that are tensors of one float dtype (ops/random/rejection.h). The shapes of the parameters
/// and `dims` broadcast. No gradient.
Tensor random_rejection(const Tensor& key, const Tensor& dims, RejectionLaw law, const Tensor& a, const Tensor& b);

extern const OpDef random_rejection_op;

}  // namespace kassette::ops
