// ops/refusals.cpp - what ops refuse in the values of their inputs.
#include "ops/refusals.h"

#include <iterator>
#include <string>

#include <kassette/error.h>

namespace kassette {
namespace {

/// A number stands for each {}.
constexpr const char* kRefusals[] = {
    "",
    "gather: index {} is out of range for an axis of size {}",
    "index: index {} is out of range for an axis of size {}",
    "sparse_categorical_crossentropy: class {} at position {} is out of range for {} classes",
    "pow: a negative integer power; cast the base to a float dtype (K::cast)",
    "floor_divide: integer division by zero",
    "remainder: integer division by zero",
    "ctc_batch_cost: input_length {} of sample {}; y_pred has {} time steps",
    "ctc_batch_cost: label_length {} of sample {} is negative",
    "ctc_batch_cost: the {} labels of sample {} need as many time steps; its input_length is {}",
    "ctc_batch_cost: label {} at position {} of sample {} is negative, within its label_length of {}",
    "ctc_batch_cost: label {} at position {} of sample {} follows {}, which ends the label: y_pred has {} classes and the blank"};
static_assert(std::size(kRefusals) == static_cast<std::size_t>(Refusal::ctc_after_end) + 1);

/// rethrow_edited (core/text.h) leaves it as it is, as it does with all classes but the public ones.
class LateError final : public ValueError {
 public:
  using ValueError::ValueError;
};

std::string words(Refusal refusal, const std::int64_t* numbers) {
  std::string said;
  for (const char* at = kRefusals[static_cast<int>(refusal)]; *at; ++at) {
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

void refuse(Refusal refusal, const std::int64_t* numbers, Said said) {
  const std::string text = words(refusal, numbers);
  if (said == Said::later) throw LateError(text.c_str());
  throw ValueError(text.c_str());
}

}  // namespace kassette
