// python/src/arrays.h - what the bindings of kassette.numpy are made of; python/make_numpy.py writes these.
#pragma once
#include <kassette/numpy.h>

#include <optional>

#include "convert.h"

namespace kassette {
namespace python {

/// Numbers and lists in places where no tensor and no array says what their dtype is become arrays, as `asarray` makes
/// them: of int64, of floatx or of bool.
void settle(std::initializer_list<Value*> values);
/// The tensor of an argument that may be None: of a number, a list or an array it is made.
Tensor array_of(const Value& x);
/// A list of arrays: each keeps its dtype. `what` is the prefix of error messages.
Tensors to_arrays(nb::handle list, const char* what);
/// An argument of np.fft: an array, or a tuple of two, the real and the imaginary parts.
struct SignalArrays {
  numpy::fft::ComplexPair x;  // without imaginary parts real
  operator numpy::fft::Signal() const { return x.imag.defined() ? numpy::fft::Signal(x) : numpy::fft::Signal(x.real); }
};
SignalArrays to_signal(nb::handle x, const char* what);

nb::list to_array(const Tensors& tensors);
/// A namedtuple of arrays, and of lists of arrays.
nb::object to_record(const char* name, std::initializer_list<const char*> fields,
                     std::initializer_list<nb::object> values);

/// Whether other threads of Python should run meanwhile: what is small is computed before they could begin.
constexpr std::int64_t kLarge = 1 << 14;
inline bool is_large(const Value& x) { return x.elements() >= kLarge; }
inline bool is_large(const Tensors& tensors) {
  std::int64_t elements = 0;
  for (const Tensor& t : tensors) elements += t.symbolic() ? 0 : static_cast<std::int64_t>(t.size());
  return elements >= kLarge;
}
inline bool is_large(const SignalArrays& s) { return is_large(Tensors{s.x.real}); }
template <class X, class... More>
bool is_large(const X& x, const More&... more) {
  return is_large(x) || is_large(more...);
}
template <class F>
auto compute(bool large, F f) {
  std::optional<Computing> on;
  if (large) on.emplace();
  return f();
}

}  // namespace python
}  // namespace kassette
