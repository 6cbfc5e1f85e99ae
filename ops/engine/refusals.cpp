// ops/engine/refusals.cpp - errors about the inputs of ops, and about their values.
#include "ops/engine/refusals.h"

#include <string>

#include "core/sparse.h"
#include "core/text.h"
#include "ops/engine/op.h"

namespace kassette::ops {
namespace {

/// An error about values. Each {} of a text is replaced by a number.
struct Words {
  At at;
  const char *given, *expected = "", *remedy = "";
};

Words words_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::none: break;
    case Refusal::gather_index: return {{"gather", "indices"}, "hold {}, which is out of range for an axis of size {}"};
    case Refusal::index: return {{"index"}, "index {} is out of range for an axis of size {}"};
    case Refusal::index_of_axis: return {{"index"}, "index {} is out of range for axis {} of size {}"};
    case Refusal::class_id:
      return {{"sparse_categorical_crossentropy", "target"},
              "holds class {} at position {}, which is out of range for {} classes"};
    case Refusal::power: return {{"pow", "a"}, "holds a negative integer", "", "cast x to a float dtype (K::cast)"};
    case Refusal::quotient: return {{"floor_divide"}, "integer division by zero"};
    case Refusal::remainder: return {{"remainder"}, "integer division by zero"};
    case Refusal::ctc_input_length:
      return {{"ctc_batch_cost", "input_length"}, "{} of sample {}", "it must be 0 to {}, the time steps of y_pred"};
    case Refusal::ctc_label_length: return {{"ctc_batch_cost", "label_length"}, "{} of sample {} is negative"};
    case Refusal::ctc_too_long:
      return {{"ctc_batch_cost"}, "the {} labels of sample {} need as many time steps, and its input_length is {}"};
    case Refusal::ctc_label:
      return {{"ctc_batch_cost", "y_true"},
              "has label {} at position {} of sample {}, within its label_length of {}",
              "labels must not be negative"};
    case Refusal::ctc_after_end:
      return {
          {"ctc_batch_cost", "y_true"},
          "has label {} at position {} of sample {} after {}, which ends the label: y_pred has {} classes and the blank"};
  }
  return {{}, ""};
}

/// The call that throws is not the call at fault, so a stack trace would show the wrong line.
constexpr const char* kHint = "KASSETTE_CUDA_SYNC=1 stops at the op itself";

/// The text with the next of the numbers for each {}.
std::string filled(const char* words, const std::int64_t*& numbers) {
  std::string said;
  for (const char* at = words; *at; ++at) {
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

std::string input_name(const OpDef& op, int i) {
  std::string names = op.inputs, name;
  if (const std::size_t at = names.find('#'); at != std::string::npos) return names.replace(at, 1, std::to_string(i));
  std::istringstream words(names);
  for (int k = 0; k <= i; ++k)
    if (!(words >> name)) return text("argument ", i);
  return name;
}

void fail_undefined(const OpDef& op, int i) { fail_empty({op.name, input_name(op, i).c_str()}); }
void fail_sparse(const OpDef& op, int i, const TensorDesc& x) {
  kassette::fail_sparse({op.name, input_name(op, i).c_str()}, x);
}
void fail_devices(const OpDef& op, const In* in) {
  const auto on = [&](int i) { return in[i].desc()->device; };
  const auto goes_anywhere = [&](int i) { return has_bit(op.host, i) || (on(i) == cpu && in[i].desc()->rank == 0); };
  int i = 0;
  while (goes_anywhere(i)) ++i;
  int k = i + 1;
  while (goes_anywhere(k) || on(k) == on(i)) ++k;
  const bool alone = !context().function;  // else the names are not those of the function that the user called
  fail<DeviceError>({op.name}, alone ? input_name(op, i) : "one operand", " is on ", on(i), ", ",
                    alone ? input_name(op, k) : "another", " on ", on(k), kRemedy, "move one with .to(\"", on(i),
                    "\")");
}

void refuse(Refusal refusal, const std::int64_t* numbers, Thrown thrown) {
  const Words words = words_of(refusal);
  const std::string given = filled(words.given, numbers), expected = filled(words.expected, numbers);
  if (thrown == Thrown::by_call) fail<ValueError>(words.at, given, kExpected, expected, kRemedy, words.remedy);
  fail<AsyncError>(words.at, given, kExpected, expected, kRemedy, words.remedy, *words.remedy ? "; " : "", kHint);
}

}  // namespace kassette::ops
