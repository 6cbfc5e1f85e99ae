// ops/refusals.h - what ops refuse in the values of their inputs, in the same words on every device.
#pragma once
#include <cstdint>

namespace kassette {

/// Its words have a place for each of the numbers. A CUDA kernel cannot throw: it leaves this and the numbers where the next wait finds
/// them (devices/cuda/faults.h).
enum class Refusal : std::int32_t {
  none,
  gather_index,  // index, size of the axis
  index,         // index, size of the axis
  class_id,      // class, its position, how many classes there are
  power,
  quotient,
  remainder,
  ctc_input_length,  // input_length, sample, time steps
  ctc_label_length,  // label_length, sample
  ctc_too_long,      // label_length, sample, input_length
  ctc_label,         // label, position, sample, label_length
  ctc_after_end      // label, position, sample, the label that ended them, classes without the blank
};
inline constexpr int kRefusalNumbers = 5;

/// Where an error is said of an op that was called before.
enum class Said : std::uint8_t { at_once, later };

/// Throws ValueError with those words; what is said later has more, about finding the call, and keeps its name where it passes attribute_errors (ops/error_attribution.h): the function there did
/// nothing but wait.
[[noreturn]] void refuse(Refusal refusal, const std::int64_t* numbers, Said said = Said::at_once);

template <class... Numbers>
[[noreturn]] __attribute__((noinline, cold)) void refuse_for(Refusal refusal, Numbers... numbers) {
  const std::int64_t listed[kRefusalNumbers] = {numbers...};
  refuse(refusal, listed);
}

}  // namespace kassette
