// tests/sweeps/sample.h - the type of a row of tests/op_samples.h, and functions that the sweeps apply to rows.
#pragma once
#include <kassette/backend.h>

#include <span>
#include <string>
#include <vector>

#include "core/impl.h"
#include "ops/engine/op.h"

namespace kassette::test {
using namespace ops;

/// The dtypes for inputs without a fixed dtype; all of these inputs get the same one.
enum class Takes : std::uint8_t { floats, numbers, anything, bools, integers, bits };

/// One input of a sample: the range of its values, which avoids kinks and poles, and its properties.
struct Input {
  double low = -2, high = 2;
  DType dtype = {};  // if given, the fixed dtype: integers in [low, high], or bool
  bool differentiable = true;
  bool host = false;      // lives on the CPU whatever the device
  bool mixes = false;     // may have another dtype than its neighbours
  bool optional = false;  // may be an empty Tensor
  bool anywhere = false;  // may be on another device than its neighbours: it comes to the CPU
};

/// How many times the results can be differentiated by the differentiable inputs.
enum class Order : std::uint8_t {
  second,  // first and second order are held to central differences
  none,    // no path: gradients are empty
};

inline constexpr int kMaxInputs = 6;

/// Properties that few samples have; rows set them by name.
struct SampleTraits {
  bool grows = true;            // whether it may be called with all sizes above 1 multiplied by one factor
  bool k = true;                // false: name is that of an op, not of a K function
  bool np = false;              // set for the rows of tests/np_samples.h: name is that of a function of np
  bool nn = false;              // the same for tests/nn_samples.h and nn
  bool sized = false;           // needs to know the sizes of its inputs: their placeholders have them
  bool draws = false;           // random: each call of a function draws anew
  const char* also = "";        // other functions that the call uses, which messages may name instead
  bool dtype_is_value = false;  // another dtype is a ValueError, not a TypeError
};

/// One way to call a K function, or an op that no K function reaches.
struct Sample {
  const char* name;  // as the user types it, and as messages start
  // shapes of the inputs, "(2,3) (3) | (4,1) (1,3)"; cases of one signature are replayed by one function
  const char* cases;
  const char* expression;  // the call as it is written, with the inputs x, y, z, w
  Tensors (*call)(const Tensor* in);
  Input in[kMaxInputs] = {};
  Takes takes = Takes::floats;
  Order order = Order::second;
  double loose = 1;             // a factor for the tolerances of the dtype and level sweeps
  const char* bad_shapes = "";  // cases that are a ValueError
  SampleTraits traits = {};
};

/// Whether it takes integers, and no floats.
inline bool takes_integers(const Sample& s) { return s.takes == Takes::integers || s.takes == Takes::bits; }

/// The rows of tests/op_samples.h, and those of tests/np_samples.h and tests/nn_samples.h behind them.
std::span<const Sample> op_samples();

using Shapes = std::vector<Shape>;
/// The cases of a sample, parsed.
std::vector<Shapes> cases_of(const Sample& s, const char* text);
inline std::vector<Shapes> cases_of(const Sample& s) { return cases_of(s, s.cases); }
/// The cases grouped by their ranks, in order of first appearance.
std::vector<std::vector<Shapes>> cases_by_ranks(const Sample& s);
/// A placeholder for an input of that shape: of its rank, with the sizes that the sample has to know.
Tensor placeholder_for(const Sample& s, std::size_t input, const Shape& shape, DType dtype);
/// A case with its sizes above 1 multiplied by one factor, so that results have about that many elements.
Shapes grown(const Shapes& shapes, std::int64_t elements);
/// A tensor with the same values every time. Floats are distinct, evenly spread over the range, and avoid its middle
/// and integers.
Tensor make_input(const Input& input, const Shape& shape, DType dtype, int number);
Tensors make_inputs(const Sample& s, const Shapes& shapes, DType dtype);
/// Calls the sample; missing inputs are empty tensors.
Tensors call(const Sample& s, const Tensors& in);
/// The dtypes of `takes`.
std::vector<DType> dtypes_of(Takes takes);
/// What a failure message starts with: "sum #12 (2, 3) (3,) float64".
std::string title(const Sample& s, const Shapes& shapes, DType dtype);
std::string text(const Shape& shape);
/// What is wrong with the message of an error, which must be one line that starts with the name of the function; empty
/// if nothing is.
std::string bad_message(const Sample& s, const char* message);
/// Whether bytes, shape and dtype are equal.
bool same_bits(const Tensor& a, const Tensor& b);
/// The unit in the last place of 1; 0 if the dtype is not a float.
double unit_of(DType d);
/// A bound for how many elements were summed into one element of the result.
double folded(const Tensors& results, const Tensor& out);
/// By how many units in the last place two results differ, relative to the largest element or the number of summed
/// elements, n.
double units_apart(const Tensor& a, const Tensor& b, double n);
/// Names of the ops on the tape behind some tensors.
std::vector<std::string> ops_behind(const Tensors& ys);

/// The counts of live nodes, tensors and bytes at construction; change() describes how they have changed since, or is
/// empty.
class Ledger {
 public:
  Ledger() : before_(totals()) {}
  std::string change() const;

 private:
  Totals before_;
};

}  // namespace kassette::test
