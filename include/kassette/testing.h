// include/kassette/testing.h - for tests of numerical code, with any framework and any library's arrays. Opt-in:
// <kassette/testing.h>.
#ifndef KASSETTE_TESTING_H
#define KASSETTE_TESTING_H
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <utility>

#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/io.h>
#include <kassette/none.h>

// Catch2 3, whose recommended headers say neither their version nor what a matcher derives from.
#if (defined(CATCH_TEST_MACROS_HPP_INCLUDED) || defined(CATCH_MATCHERS_HPP_INCLUDED)) && \
    !defined(CATCH_MATCHERS_TEMPLATED_HPP_INCLUDED)
#include <catch2/matchers/catch_matchers_templated.hpp>
#endif

namespace kassette {
namespace testing {

namespace detail {

using kassette::detail::IsMatrix;
using kassette::detail::IsRange;
/// A copy of an array that has a shape, as xtensor's have, in the order of its indices.
template <class C>
Tensor shaped(const C& c) {
  using T = kassette::detail::CopiedElement<C>;
  kassette::detail::Sizes s;
  for (auto n : c.shape()) s.push(static_cast<std::int64_t>(n));
  void* data = nullptr;
  Tensor x = kassette::detail::writable_memory(Shape(s.dims, s.rank), dtype_of(static_cast<const T*>(nullptr)), data);
  T* to = static_cast<T*>(data);
  kassette::detail::fill(c, to);
  return x;
}
template <class C>
Tensor copied(const C& c) {
  if constexpr (kassette::detail::HasShape<C>::value && !IsMatrix<C>::value) return shaped(c);
  else return kassette::detail::copied(c);
}

/// The sum of all float outputs, each weighted, so that no two elements can stand in for each other.
KASSETTE_API Tensor weighted_sum(const Tensors& ys);
}  // namespace detail

/// One side of a comparison: a Tensor, a number or nested list, or an array of another library: containers (nested ones
/// too) with begin() and end(), those with a shape(), like xtensor's, and matrices with rows(), cols() and m(i, j),
/// like Eigen's, whose vectors have one axis.
class KASSETTE_API Array {
 public:
  Array(const Tensor& x) : tensor_(x), kind_(kTensor) {}
  Array(std::initializer_list<Operand> items);
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>, class = void>
  Array(T number) : Array(Operand(number), 0) {}
  template <class C, class = std::enable_if_t<!std::is_convertible<const C&, const Tensor&>::value &&
                                              (detail::IsRange<C>::value || detail::IsMatrix<C>::value) &&
                                              kassette::detail::ElementOf<C>::known>>
  Array(const C& c) : tensor_(detail::copied(c)), kind_(kForeign) {}

 private:
  enum Kind : std::uint8_t { kTensor, kNumber, kList, kForeign };
  Array(const Operand& number, int);
  Tensor tensor_;
  Kind kind_;
  friend struct ArrayAccess;
};

/// |actual - expected| <= atol + rtol * |expected|. A negative tolerance gets the default of the less precise of the
/// two dtypes: 1e-12 for float64, 1e-5 float32, 2e-3 float16, 1.6e-2 bfloat16, 0 for integers and bool.
struct Tolerance {
  Named only_by_name{0};
  double rtol = -1, atol = -1;
  bool equal_nan = true;  // NaN equals NaN
  // The columns of matrices, as those of eigenvectors and singular vectors: each may have the other sign, and they may
  // come in another order. A vector is one column; with any_order, its elements may come in another order.
  bool any_sign = false, any_order = false;
};

/// The result of a comparison. It converts to bool, and prints as its report.
struct Comparison {
  bool ok = true;
  std::int64_t count = 0;            // elements that differ by more than is allowed
  std::int64_t where = -1;           // of them, where the difference is largest, row-major
  double worst = 0;                  // that difference
  std::int64_t where_relative = -1;  // and where it is in proportion to what is expected
  double worst_relative = 0;
  std::string message;  // one line, empty if all elements agree
  std::string report;   // the same and more in some lines
  explicit operator bool() const { return ok; }
};
KASSETTE_API std::ostream& operator<<(std::ostream& os, const Comparison& c);

/// The comparison of `actual` with `expected`. Shapes must be equal (a number stands for every element), and so must
/// dtypes if both are Tensors; inf equals inf.
KASSETTE_API Comparison compare(const Array& actual, const Array& expected, const Tolerance& tolerance = {});
/// The same as an exception: AssertionError with the report.
KASSETTE_API void assert_close(const Array& actual, const Array& expected, const Tolerance& tolerance = {});

// ---- gradients ------------------------------------------------------------------------------------------------------

/// A function of tensors that is to be differentiated; it may return one tensor or a list.
using Differentiable = Callable<Tensors(const Tensors&)>;

/// The step of the differences, and the tolerances of the comparison.
struct GradcheckOptions {
  Named only_by_name{0};
  double step = 1e-5, rtol = 1e-6, atol = 1e-6;
};
/// Compares gradients of f with central differences, for every float64 input: those of the sum of all elements of all
/// results, each times a random number from 0.5 to 1.5, so that errors do not cancel; it is the same in each run. If f
/// returns a single number, those of that number. An input that f does not depend on differentiably (an empty
/// gradient) must have differences of 0.
KASSETTE_API Comparison gradcheck(Differentiable f, const Tensors& inputs, const GradcheckOptions& options = {});
/// Compares in the same way the gradients of the sum of the gradients that gradcheck compares, weighted likewise.
KASSETTE_API Comparison gradgradcheck(Differentiable f, const Tensors& inputs, const GradcheckOptions& options = {});

// ---- random tensors -------------------------------------------------------------------------------------------------

/// Reproducible random tensors: while one lives, the reports of this thread's comparisons name its seed. Without a
/// given seed, it uses that of the environment variable KASSETTE_TEST_SEED, or 0.
class KASSETTE_API Random {
 public:
  explicit Random(Scalar seed = None);
  ~Random();
  Random(const Random&) = delete;
  Random& operator=(const Random&) = delete;
  std::int64_t seed() const { return seed_; }
  Tensor uniform(const Dims& shape, double low = 0, double high = 1, DType dtype = float64);
  Tensor normal(const Dims& shape, double mean = 0, double stddev = 1, DType dtype = float64);
  /// low <= x < high.
  Tensor integers(const Dims& shape, std::int64_t low, std::int64_t high, DType dtype = int64);

 private:
  Scalar next();
  std::int64_t seed_, drawn_ = 0;
  Random* outer_;
  friend struct ArrayAccess;
};

/// The rarer arguments of random matrices by name: the axes before those of the matrix, and the dtype.
struct MatrixOptions {
  Named only_by_name{0};
  Dims batch = {};
  DType dtype = float64;
};
/// Orthogonal matrices (n, n), each as likely as any other (Haar's measure). These three draw from the Random of this
/// thread that was made last; where none lives, they return the same matrices in each call. They throw ValueError
/// unless n >= 0, and TypeError unless dtype is a float dtype.
KASSETTE_API Tensor random_orthogonal(std::int64_t n, const MatrixOptions& options = {});
/// Symmetric positive definite matrices (n, n) with eigenvalues from 1 down to 1 / kappa in equal ratios. Throws
/// ValueError unless kappa >= 1.
KASSETTE_API Tensor random_spd(std::int64_t n, double kappa = 100, const MatrixOptions& options = {});
/// Matrices (n, n) with singular values from 1 down to 1 / kappa in equal ratios, and so with the condition number
/// kappa where n > 1. Throws ValueError unless kappa >= 1.
KASSETTE_API Tensor conditioned(std::int64_t n, double kappa, const MatrixOptions& options = {});

// ---- golden files ---------------------------------------------------------------------------------------------------

/// Tolerances as in Tolerance, and where the files are.
struct GoldenOptions {
  Named only_by_name{0};
  double rtol = -1, atol = -1;
  bool equal_nan = true;
  Name folder = None;  // of the files; else KASSETTE_GOLDEN_DIR, else "golden" in the working directory
};
/// Compares `actual` with FOLDER/NAME.npy, or with NAME.npz for several arrays. If they differ, `actual` is written to
/// NAME.actual.npy in the same folder. With KASSETTE_UPDATE_GOLDEN=1 in the environment the file is written instead.
KASSETTE_API Comparison compare_golden(Name name, const Array& actual, const GoldenOptions& options = {});
KASSETTE_API Comparison compare_golden(Name name, const NamedTensors& actual, const GoldenOptions& options = {});
/// The same as an exception: AssertionError with the report.
KASSETTE_API void expect_golden(Name name, const Array& actual, const GoldenOptions& options = {});
KASSETTE_API void expect_golden(Name name, const NamedTensors& actual, const GoldenOptions& options = {});

// ---- errors and leaks -----------------------------------------------------------------------------------------------

namespace detail {
KASSETTE_API void check_error_text(const char* what, Name text);
[[noreturn]] KASSETTE_API void fail_no_error(Name text);
}  // namespace detail
/// Calls f, and throws AssertionError unless f throws an E whose message contains the text. Other exceptions propagate.
template <class E = Error, class F>
void expect_error(Name text, F&& f) {
  bool thrown = false;
  try {
    static_cast<void>(f());
  } catch (const E& e) {
    thrown = true;
    detail::check_error_text(e.what(), text);
  }
  if (!thrown) detail::fail_no_error(text);
}

/// Remembers how many nodes of the tape and bytes of tensors are alive; check() tells whether there are more now.
class KASSETTE_API LeakCheck {
 public:
  LeakCheck();
  Comparison check() const;

 private:
  std::int64_t nodes_, tensors_, bytes_;
};
/// Calls f twice (the first time may fill caches) and throws AssertionError if the second call leaves nodes or bytes
/// alive.
KASSETTE_API void expect_no_leaks(Callable<void()> f);

// ---- matchers for Catch2, version 2 or 3, where one of its headers came before this one -----------------------------

#if defined(CATCH_MATCHERS_TEMPLATED_HPP_INCLUDED) || defined(CATCH_VERSION_MAJOR)
#ifdef CATCH_MATCHERS_TEMPLATED_HPP_INCLUDED
using MatcherBase = Catch::Matchers::MatcherGenericBase;
#else
using MatcherBase = Catch::Matchers::Impl::MatcherUntypedBase;
#endif

/// CHECK_THAT(x, IsClose(expected, {.rtol = 1e-3})).
class IsClose : public MatcherBase {
 public:
  IsClose(const Array& expected, const Tolerance& tolerance = {}) : expected_(expected), tolerance_(tolerance) {}
  template <class T>
  bool match(const T& actual) const {
    Comparison c = compare(actual, expected_, tolerance_);
    report_ = c.report;
    return c.ok;
  }
  std::string describe() const override {
    return report_.empty() ? "is close" : "is close to what is expected:\n" + report_;
  }

 private:
  Array expected_;
  Tolerance tolerance_;
  mutable std::string report_;
};

/// CHECK_THAT(x, MatchesGolden("name")).
class MatchesGolden : public MatcherBase {
 public:
  explicit MatchesGolden(std::string name, const GoldenOptions& options = {})
      : name_(std::move(name)), options_(options) {}
  template <class T>
  bool match(const T& actual) const {
    Comparison c = compare_golden(name_, actual, options_);
    report_ = c.report;
    return c.ok;
  }
  std::string describe() const override {
    return report_.empty() ? "matches its golden file" : "matches its golden file:\n" + report_;
  }

 private:
  std::string name_;
  GoldenOptions options_;
  mutable std::string report_;
};
#endif

}  // namespace testing
}  // namespace kassette

#endif  // KASSETTE_TESTING_H
