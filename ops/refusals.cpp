// ops/refusals.cpp - errors about the values of inputs.
#include "ops/refusals.h"

#include <string>

#include "core/text.h"

namespace kassette::ops {
namespace {

struct Words {
  At at;
  const char* message;  // each {} is replaced by a number
};

Words words_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::none: break;
    case Refusal::gather_index: return {{"gather", "indices"}, "hold {}, which is out of range for an axis of size {}"};
    case Refusal::index: return {{"index"}, "index {} is out of range for an axis of size {}"};
    case Refusal::class_id:
      return {{"sparse_categorical_crossentropy", "target"},
              "holds class {} at position {}, which is out of range for {} classes"};
    case Refusal::power: return {{"pow", "a"}, "holds a negative integer; cast x to a float dtype (K::cast)"};
    case Refusal::quotient: return {{"floor_divide"}, "integer division by zero"};
    case Refusal::remainder: return {{"remainder"}, "integer division by zero"};
    case Refusal::ctc_input_length:
      return {{"ctc_batch_cost", "input_length"}, "{} of sample {}; y_pred has {} time steps"};
    case Refusal::ctc_label_length: return {{"ctc_batch_cost", "label_length"}, "{} of sample {} is negative"};
    case Refusal::ctc_too_long:
      return {{"ctc_batch_cost"}, "the {} labels of sample {} need as many time steps; its input_length is {}"};
    case Refusal::ctc_label:
      return {{"ctc_batch_cost", "y_true"},
              "has label {} at position {} of sample {}, within its label_length of {}; labels must not be negative"};
    case Refusal::ctc_after_end:
      return {
          {"ctc_batch_cost", "y_true"},
          "has label {} at position {} of sample {} after {}, which ends the label: y_pred has {} classes and the blank"};
  }
  return {{}, ""};
}

/// The call that throws is not the call at fault, so a stack trace would show the wrong line.
constexpr const char* kHint = "; KASSETTE_CUDA_SYNC=1 stops at the op itself";

std::string filled(const char* message, const std::int64_t* numbers) {
  std::string said;
  for (const char* at = message; *at; ++at) {
    if (*at != '{') {
      said += *at;
      continue;
    }
    said += std::to_string(*numbers++);
    ++at;
  }
  return said;
}

}  // namespace

void refuse(Refusal refusal, const std::int64_t* numbers, Thrown thrown) {
  const Words words = words_of(refusal);
  const std::string message = filled(words.message, numbers);
  if (thrown == Thrown::by_later_wait)
    throw AsyncError(words.at.function, words.at.argument, (message + kHint).c_str());
  throw ValueError(words.at.function, words.at.argument, message.c_str());
}

}  // namespace kassette::ops
