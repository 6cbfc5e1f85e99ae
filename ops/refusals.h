// ops/refusals.h - errors about the values of inputs, with the same messages on every device.
#pragma once
#include <cstdint>

#include <kassette/error.h>

namespace kassette::ops {

/// An error about a value; the comments list the numbers in its message. A CUDA kernel cannot throw: it stores
/// the code and the numbers, and the next wait for the device throws (devices/cuda/faults.h).
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
  ctc_after_end      // label, position, sample, the label that ended the sequence, classes without the blank
};
inline constexpr int kRefusalNumbers = 5;

/// When the error is thrown: by the call of the op, or by a later one that waits for the device.
enum class Said : std::uint8_t { at_once, later };

/// An error of an earlier call: the function that the user called there only waited, and attribute_errors
/// (ops/error_attribution.h) leaves it alone.
class LateError final : public ValueError {
 public:
  using ValueError::ValueError;
};

/// Throws ValueError with that message. With Said::later it is a LateError, and adds how to find the call.
[[noreturn]] void refuse(Refusal refusal, const std::int64_t* numbers, Said said = Said::at_once);

template <class... Numbers>
[[noreturn]] __attribute__((noinline, cold)) void refuse_for(Refusal refusal, Numbers... numbers) {
  const std::int64_t listed[kRefusalNumbers] = {numbers...};
  refuse(refusal, listed);
}

}  // namespace kassette::ops
