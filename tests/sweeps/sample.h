// tests/sweeps/sample.h - what one row of tests/op_samples.h says, and what the sweeps make of it.
#pragma once
#include <kassette/backend.h>

#include <span>
#include <string>
#include <vector>

#include "core/impl.h"
#include "ops/op.h"

namespace kassette::test {

/// The dtypes that inputs without a dtype of their own take, all the same one.
enum class Takes : std::uint8_t { floats, numbers, anything, bools, integers };

/// One input of a sample: the range of its values, which lies away from kinks and poles.
struct Input {
  double low = -2, high = 2;
  DType dtype = {};  // given: always this one; integers of [low, high], or bool
  bool differentiable = true;
  bool host = false;      // lives on the CPU whatever the device
  bool mixes = false;     // may have another dtype than its neighbours
  bool optional = false;  // may be an empty Tensor
  bool anywhere = false;  // may be on another device than its neighbours: it comes to the CPU
};

/// How often the results can be differentiated by the differentiable inputs.
enum class Order : std::uint8_t {
  second,  // first and second order are held to central differences
  none,    // no path: gradients are empty
};

inline constexpr int kMaxInputs = 6;

/// What a sample has that most have not; rows name what they set.
struct SampleTraits {
  bool grows = true;            // whether it may be called with all sizes above 1 multiplied by one factor
  bool k = true;                // false: name is that of an op row, not of a K function
  bool draws = false;           // random: each call of a function draws anew
  const char* also = "";        // functions that the call itself makes, and in whose names messages may be
  bool dtype_is_value = false;  // the specification makes another dtype a ValueError, not a TypeError
};

/// One way to call a K function, or an op that no K function reaches.
struct Sample {
  const char* name;  // as the user types it, and as messages start
  const char*
      cases;  // shapes of the inputs, "(2,3) (3) | (4,1) (1,3)"; cases of one signature are replayed by one function
  const char* expression;  // the call as it is written, with the inputs x, y, z, w
  Tensors (*call)(const Tensor* in);
  Input in[kMaxInputs] = {};
  Takes takes = Takes::floats;
  Order order = Order::second;
  double loose = 1;             // what the tolerances of the dtype and level sweeps are multiplied with
  const char* bad_shapes = "";  // cases that are a ValueError
  SampleTraits traits = {};
};

/// The table.
std::span<const Sample> op_samples();

using Shapes = std::vector<Shape>;
/// The cases of a sample, parsed.
std::vector<Shapes> cases_of(const Sample& s, const char* text);
inline std::vector<Shapes> cases_of(const Sample& s) { return cases_of(s, s.cases); }
/// The cases by their ranks, in the order in which these come.
std::vector<std::vector<Shapes>> cases_by_ranks(const Sample& s);
/// A case with its sizes above 1 multiplied by one factor, so that results have about that many elements.
Shapes grown(const Shapes& shapes, std::int64_t elements);
/// The same values every time: floats are distinct, evenly spread over the range and not on its middle or integers.
Tensor make_input(const Input& input, const Shape& shape, DType dtype, int number);
Tensors make_inputs(const Sample& s, const Shapes& shapes, DType dtype);
/// Calls the sample; missing inputs are empty tensors.
Tensors call(const Sample& s, const Tensors& in);
/// The dtypes of `takes`.
std::vector<DType> dtypes_of(Takes takes);
/// What a failure message starts with: "sum #12 (2, 3) (3,) float64".
std::string title(const Sample& s, const Shapes& shapes, DType dtype);
std::string text(const Shape& shape);
/// What is wrong with the message of an error: it is one line that starts with the name of the function. Empty: nothing.
std::string bad_message(const Sample& s, const char* message);
/// The same bytes, shape and dtype.
bool same_bits(const Tensor& a, const Tensor& b);
/// What one unit in the last place of 1 is; 0 for what is no float.
double unit_of(DType d);
/// How many elements went into one of the result, where it is a sum: a bound of the sum of their sizes.
double folded(const Tensors& results, const Tensor& out);
/// Units in the last place of the largest element, or of how many were folded, by which two results differ.
double units_apart(const Tensor& a, const Tensor& b, double n);
/// Names of the ops on the tape behind some tensors.
std::vector<std::string> ops_behind(const Tensors& ys);

/// Live nodes, tensors and bytes when made; `change()` says what is there now that was not, or nothing.
class Ledger {
 public:
  Ledger() : before_(totals()) {}
  std::string change() const;

 private:
  Totals before_;
};

}  // namespace kassette::test
