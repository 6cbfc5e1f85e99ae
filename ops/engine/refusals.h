// ops/engine/refusals.h - errors about the inputs of ops, and about their values with the same messages on every
// device.
#pragma once
#include <cstdint>
#include <string>

#include <kassette/error.h>

namespace kassette {
struct TensorDesc;
}
namespace kassette::ops {

struct OpDef;
class In;
/// What errors call input i of an op (OpDef::inputs).
std::string input_name(const OpDef& op, int i);
/// Throws the error for input i of an op, which is an empty Tensor.
[[noreturn]] void fail_undefined(const OpDef& op, int i);
/// Throws the error for input i of an op, which is sparse.
[[noreturn]] void fail_sparse(const OpDef& op, int i, const TensorDesc& x);
/// Throws DeviceError: two inputs are on different devices, and neither is a number on the CPU.
[[noreturn]] void fail_devices(const OpDef& op, const In* in);

/// An error about a value; the comments list the numbers in its message. A CUDA kernel cannot throw: it stores the code
/// and the numbers, and the next wait for the device throws (devices/cuda/faults.h).
enum class Refusal : std::int32_t {
  none,
  gather_index,   // index, size of the axis
  index,          // index, size of the axis
  index_of_axis,  // index, axis, size of the axis
  class_id,       // class, its position, how many classes there are
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

/// Whether the failing call itself throws, or a later one that waits for the device.
enum class Thrown : std::uint8_t { by_call, by_later_wait };

/// An asynchronous error: a later call throws it on behalf of an earlier one. attribute_errors
/// (ops/engine/error_attribution.h) leaves it alone: the function that the user called last only waited for the device.
class AsyncError final : public ValueError {
 public:
  using ValueError::ValueError;
};

/// Throws ValueError with that message. With Thrown::by_later_wait it is an AsyncError, and adds how to find the call.
[[noreturn]] void refuse(Refusal refusal, const std::int64_t* numbers, Thrown thrown = Thrown::by_call);

template <class... Numbers>
[[noreturn]] __attribute__((noinline, cold)) void refuse_for(Refusal refusal, Numbers... numbers) {
  const std::int64_t listed[kRefusalNumbers] = {numbers...};
  refuse(refusal, listed);
}

}  // namespace kassette::ops
