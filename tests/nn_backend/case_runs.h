// tests/nn_backend/case_runs.h - runs the cases of keras_cases.h, eagerly and on placeholders, and reports differences.
#pragma once
#include <kassette/error.h>
#include <kassette/testing.h>

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/nn_backend/keras_cases.h"

namespace kassette::test {

namespace K = kassette::backend;

/// Calls the function of a case.
using CaseCall = Tensor (*)(const Tensors& in, const KerasCase& c);

/// The tolerance for results against the numbers of the file.
inline testing::Tolerance tolerance(DType dtype) {
  testing::Tolerance t;
  t.rtol = dtype == float64 ? 1e-9 : dtype == float32 ? 1e-5 : dtype == float16 ? 4e-3 : dtype == bfloat16 ? 2.4e-2 : 0;
  t.atol = dtype == float64    ? 1e-11
           : dtype == float32  ? 2e-6
           : dtype == float16  ? 2e-3
           : dtype == bfloat16 ? 1.2e-2
                               : 0;
  return t;
}

/// How the results differ from the file; empty if they do not.
inline std::string difference(const Tensor& y, const Tensors& gradients, const KerasCase& c) {
  if (auto d = testing::compare(y, c.out.value(), tolerance(y.dtype())); !d) return d.message;
  for (std::size_t i = 0; i < c.gradients.size(); ++i) {
    const GivenTensor& g = c.gradients[i];
    if (!g.dtype.given() && c.find("body")) continue;  // without a path a loop may return zeros
    std::string which = "gradient " + std::to_string(i) + ": ";
    const Tensor& ours = gradients[static_cast<std::int64_t>(i)];
    if (auto d = testing::compare(ours, g.dtype.given() ? g.value() : Tensor(), tolerance(g.dtype)); !d)
      return which + d.message;
  }
  return "";
}

/// The gradients as the file has them: by the float inputs, with element i of the result weighted by 1 + 0.5 (i mod 3).
inline Tensors gradients_of(const Tensor& y, const Tensors& in, const KerasCase& c) {
  Tensors floats;
  for (const Tensor& x : in)
    if (x.dtype().is_float()) floats.push_back(x);
  std::vector<double> w(static_cast<std::size_t>(c.out.shape.numel()));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 1 + 0.5 * static_cast<double>(i % 3);
  return K::gradients(K::sum(y * K::constant(w, y.dtype(), c.out.shape)), floats);
}

inline const char* category(const std::exception& e) {
  if (dynamic_cast<const ValueError*>(&e)) return "ValueError";
  if (dynamic_cast<const TypeError*>(&e)) return "TypeError";
  if (dynamic_cast<const AssertionError*>(&e)) return "AssertionError";
  if (dynamic_cast<const NotImplementedError*>(&e)) return "NotImplementedError";
  return "another error";
}

/// What is wrong with a case. run(&gradients) returns the result and fills the gradients.
template <class Run>
std::string wrong(const KerasCase& c, std::string* said, Run&& run) {
  try {
    Tensors gradients;
    Tensor y = run(&gradients);
    if (!c.error.empty()) return "no " + c.error;
    return difference(y, gradients, c);
  } catch (const std::exception& e) {
    *said = e.what();
    if (c.error.empty()) return std::string("threw ") + e.what();
    if (category(e) != c.error) return std::string(category(e)) + " instead of " + c.error + ": " + e.what();
    return said->find('\n') == std::string::npos ? "" : "more than one line: " + *said;
  }
}

inline std::string wrong_eagerly(const KerasCase& c, CaseCall call, std::string* said) {
  return wrong(c, said, [&](Tensors* gradients) {
    Tensors in;
    for (const GivenTensor& t : c.in) in.push_back(t.dtype.is_float() ? K::variable(t.value(), t.dtype) : t.value());
    Tensor y = call(in, c);
    if (c.has_gradients) *gradients = gradients_of(y, in, c);
    return y;
  });
}

enum class Known { sizes, rank, nothing };

/// wrong() on placeholders that are fed afterwards.
inline std::string wrong_on_placeholders(const KerasCase& c, CaseCall call, Known what, std::string* said) {
  return wrong(c, said, [&](Tensors* gradients) {
    Tensors in, values;
    for (const GivenTensor& t : c.in) {
      Dims shape = what == Known::nothing ? Dims(None) : Dims(what == Known::sizes ? t.shape : t.of_unknown_sizes());
      in.push_back(K::placeholder(shape, None, t.dtype));
      values.push_back(t.value());
    }
    Tensor y = call(in, c);
    Tensors outputs = y;
    if (c.has_gradients)
      for (const Tensor& g : gradients_of(y, in, c)) outputs.push_back(g.defined() ? g : K::constant(0));
    Tensors results = K::function(in, outputs)(values);
    for (std::int64_t i = 1; i < results.size(); ++i)
      gradients->push_back(c.gradients[static_cast<std::size_t>(i - 1)].dtype.given() ? results[i] : Tensor());
    Shape known = y.shape(), real = results[0].shape();
    if (known.rank() >= 0 && known.rank() != real.rank())
      FAIL_CHECK(c.line << "\n  static shape " << known << ", gives " << real);
    for (int i = 0; i < known.rank(); ++i)
      if (known[i] != None && std::int64_t(known[i]) != std::int64_t(real[i]))
        FAIL_CHECK(c.line << "\n  static shape " << known << ", gives " << real);
    return results[0];
  });
}

}  // namespace kassette::test
