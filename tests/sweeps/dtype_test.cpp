// tests/sweeps/dtype_test.cpp - every sample in every dtype of its domain, against the widest one; other dtypes are
// refused.
#include <kassette/testing.h>

#include <cmath>

#include "core/convert.h"
#include "tests/catch.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

/// Integers from the whole range of a dtype instead of a sample's own.
Tensor wild(const Tensor& like, int number) {
  std::vector<std::int64_t> v(static_cast<std::size_t>(like.size()));
  std::int64_t x = 40 * number + 3;
  for (std::int64_t& e : v) e = x = (x * 25173 + 13849) % 65536;
  return K::cast(K::constant(v, int64, like.shape()), like.dtype());  // wraps
}

bool free_range(const Input& in) { return in.low == Input().low && in.high == Input().high; }

Tensors widened(const Sample& s, const Tensors& in, DType wide) {
  Tensors out;
  for (std::int64_t i = 0; i < in.size(); ++i) out.push_back(s.in[i].dtype.given() ? in[i] : K::cast(in[i], wide));
  return out;
}

double largest(const Tensor& t) {
  double m = 0;
  for (double v : t.to_vector<double>())
    if (std::isfinite(v)) m = std::fmax(m, std::fabs(v));
  return m;
}

std::string against_wide(const Sample& s, const Tensors& in, DType dtype) {
  const DType integer = dtype.is_unsigned() && dtype != uint64 ? uint64 : int64;
  DType wide = dtype.is_float() ? float64 : dtype.is_integer() ? integer : dtype;
  Tensors got = call(s, in), wanted = call(s, widened(s, in, wide));
  if (got.size() != wanted.size()) return "another number of results";
  for (std::int64_t i = 0; i < got.size(); ++i) {
    Tensor y = K::eval(got[i]), reference = K::eval(wanted[i]);
    bool follows = (reference.dtype() == wide && y.dtype() == dtype) || (dtype.is_integer() && y.dtype().is_float());
    if (follows) reference = K::cast(reference, y.dtype());  // a quotient of small integers is float32
    double tolerance = 3 * s.loose * unit_of(y.dtype());
    testing::Comparison c = testing::compare(y, reference, {.rtol = tolerance, .atol = tolerance * largest(reference)});
    if (!c) return "result " + std::to_string(i) + ": " + c.message;
  }
  return "";
}

}  // namespace

TEST_CASE("every sample in every dtype gives what the widest dtype gives, converted; integers wrap", "[sweep]") {
  for (const Sample& s : op_samples())
    for (DType dtype : s.traits.draws ? std::vector<DType>() : dtypes_of(s.takes))
      for (const Shapes& shapes : cases_of(s)) {
        Ledger ledger;
        try {
          Tensors in = make_inputs(s, shapes, dtype);
          if (std::string wrong = against_wide(s, in, dtype); !wrong.empty())
            FAIL_CHECK(title(s, shapes, dtype) << ": " << wrong);
          if (dtype.is_integer() && dtype != int64) {
            bool any = false;
            for (std::int64_t i = 0; i < in.size(); ++i)
              if (!s.in[i].dtype.given() && free_range(s.in[i])) {
                in[i] = wild(in[i], static_cast<int>(i));
                any = true;
              }
            if (std::string wrong = any ? against_wide(s, in, dtype) : ""; !wrong.empty())
              FAIL_CHECK(title(s, shapes, dtype) << ", large integers: " << wrong);
          }
        } catch (const std::exception& e) {
          FAIL_CHECK(title(s, shapes, dtype) << ": threw " << e.what());
        }
        if (std::string kept = ledger.change(); !kept.empty())
          FAIL_CHECK(title(s, shapes, dtype) << ": leaves " << kept);
      }
}

TEST_CASE("every sample refuses the dtypes outside its domain with a TypeError, eager and symbolic in the same words",
          "[sweep]") {
  for (const Sample& s : op_samples()) {
    std::vector<DType> taken = dtypes_of(s.takes);
    bool free_inputs = false;
    Shapes shapes = cases_of(s)[0];
    for (std::size_t i = 0; i < shapes.size(); ++i) free_inputs = free_inputs || !s.in[i].dtype.given();
    for (DType dtype : dtypes_of(Takes::anything)) {
      if (!free_inputs || std::find(taken.begin(), taken.end(), dtype) != taken.end()) continue;
      std::string said[2];
      for (bool symbolic : {false, true}) {
        Ledger ledger;
        try {
          Tensors in = make_inputs(s, shapes, dtype);
          if (symbolic)
            for (Tensor& x : in) x = K::placeholder(x.shape(), None, x.dtype());
          call(s, in);
          FAIL_CHECK(title(s, shapes, dtype) << (symbolic ? " symbolic" : "") << ": is not refused");
        } catch (const Error& e) {
          bool right = s.traits.dtype_is_value ? dynamic_cast<const ValueError*>(&e) != nullptr
                                               : dynamic_cast<const TypeError*>(&e) != nullptr;
          if (!right) FAIL_CHECK(title(s, shapes, dtype) << ": another class of exception: " << e.what());
          said[symbolic] = e.what();
          if (std::string bad = bad_message(s, e.what()); !bad.empty())
            FAIL_CHECK(title(s, shapes, dtype) << ": " << bad);
        } catch (const std::exception& e) {
          FAIL_CHECK(title(s, shapes, dtype) << ": no error of ours: " << e.what());
        }
        if (std::string kept = ledger.change(); !kept.empty())
          FAIL_CHECK(title(s, shapes, dtype) << ": leaves " << kept);
      }
      if (said[0] != said[1])
        FAIL_CHECK(title(s, shapes, dtype) << ": eager says " << said[0] << ", symbolic " << said[1]);
    }
  }
}
