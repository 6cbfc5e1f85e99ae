// nn_backend/testing/testing.cpp - comparisons, golden files, random tensors and leaks for tests of numerical code.
#include <kassette/testing.h>

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <vector>

#include <kassette/backend.h>

#include "core/context.h"
#include "core/convert.h"
#include "core/print/decimal.h"
#include "core/rank.h"
#include "core/whole.h"
#include "nn_backend/testing/testing_report.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;
namespace testing {
using namespace detail;

struct ArrayAccess {
  static const Tensor& tensor(const Array& a) { return a.tensor_; }
  static bool is_tensor(const Array& a) { return a.kind_ == Array::kTensor; }
  static bool is_number(const Array& a) { return a.kind_ == Array::kNumber; }
  /// Numbers and lists get the dtype of the tensor that they are compared with.
  static bool weak(const Array& a) { return a.kind_ == Array::kNumber || a.kind_ == Array::kList; }
  static Random* outer(Random* r) { return r->outer_; }
};

namespace {

constexpr int kShown = 5;  // elements listed in a report

Random* innermost() { return static_cast<Random*>(context().random_scopes); }

}  // namespace

std::string detail::number_text(double v) { return general_text(v, 10); }
std::string detail::place(const Shape& shape, std::int64_t at) {
  std::string s;
  for (int i = shape.size() - 1; i >= 0; --i) {
    std::int64_t n = shape[i];
    s = std::to_string(at % n) + (s.empty() ? "" : ", ") + s;
    at /= n;
  }
  return "(" + s + ")";
}
Comparison detail::failed(std::string message, std::string more) {
  Comparison c;
  c.ok = false;
  c.message = std::move(message);
  for (Random* r = innermost(); r; r = ArrayAccess::outer(r))
    more += text("\n  random tensors: KASSETTE_TEST_SEED=", r->seed(), " reproduces them");
  c.report = c.message + more;
  return c;
}

namespace {

double coarseness(DType a, DType b) {
  double eps = 0;
  for (DType d : {a, b})
    eps = std::fmax(eps, d == float64 ? 1e-12 : d == float32 ? 1e-5 : d == float16 ? 2e-3 : d == bfloat16 ? 1.6e-2 : 0);
  return eps;
}
void raise(const char* what, const Comparison& c) {
  if (!c) throw AssertionError(what, "", c.report.c_str());
}

/// The elements of both sides, and which of them differ.
class Difference {
 public:
  Difference(const Tensor& actual, const Tensor& expected, bool spread, const Tolerance& t)
      : shape_(actual.shape()), got_(host_copy(actual, actual.dtype())), wanted_(host_copy(expected, expected.dtype())),
        spread_(spread) {
    double eps = coarseness(got_.dtype(), wanted_.dtype());
    rtol_ = t.rtol < 0 ? eps : t.rtol;
    atol_ = t.atol < 0 ? eps : t.atol;
    equal_nan_ = t.equal_nan;
    // float64 cannot hold every int64 and uint64.
    if (got_.dtype() == int64 && wanted_.dtype() == int64) look<std::int64_t>();
    else if (got_.dtype() == uint64 && wanted_.dtype() == uint64) look<std::uint64_t>();
    else look<double>();
  }
  Comparison result() const {
    if (count_ == 0) return {};
    Comparison c = failed(
        text(count_, " of ", got_.size(), " elements differ, most at ", place(shape_, where_), ": ", pair(where_)),
        more());
    c.count = count_;
    c.where = where_;
    c.worst = worst_;
    c.where_relative = where_relative_;
    c.worst_relative = worst_relative_;
    return c;
  }

 private:
  template <class T>
  void look() {
    auto a = got_.to_vector<T>(), e = wanted_.to_vector<T>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      T x = a[i], y = e[spread_ ? 0 : i];
      if (x == y) continue;
      double wide = static_cast<double>(y), off = std::fabs(static_cast<double>(x) - wide);
      if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(x) && std::isnan(y) && equal_nan_) continue;
        if (off <= atol_ + rtol_ * std::fabs(wide) && !std::isinf(wide)) continue;
      } else {
        off = static_cast<double>(x > y ? static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)
                                        : static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x));
        if (off <= atol_ + rtol_ * std::fabs(wide)) continue;
      }
      found(static_cast<std::int64_t>(i), off, off / std::fabs(wide));
    }
  }
  void found(std::int64_t i, double off, double relative) {
    ++count_;
    if (count_ <= kShown) first_.push_back(i);
    if (where_ < 0 || off > worst_ || (std::isnan(off) && !std::isnan(worst_))) {
      where_ = i;
      worst_ = off;
    }
    if (where_relative_ < 0 || relative > worst_relative_ || (std::isnan(relative) && !std::isnan(worst_relative_))) {
      where_relative_ = i;
      worst_relative_ = relative;
    }
  }
  /// "1.5, expected 2".
  std::string pair(std::int64_t i) const {
    return element(got_, i) + ", expected " + element(wanted_, spread_ ? 0 : i);
  }
  static std::string element(const Tensor& x, std::int64_t i) {
    const Value v = concrete_value(Access::desc(x), "compare");
    const std::byte* at = static_cast<const std::byte*>(v.storage->data) + v.offset + i * x.dtype().size();
    return dispatch(x.dtype(), [&](auto* p) {
      std::remove_pointer_t<decltype(p)> number;
      std::memcpy(&number, at, sizeof number);
      if constexpr (sizeof number == 8 && std::is_integral_v<decltype(number)>) return std::to_string(number);
      else return number_text(convert_one<double>(number));
    });
  }
  std::string more() const {
    std::string s = text("\n  allowed: atol ", number_text(atol_), " + rtol ", number_text(rtol_), " * |expected|");
    s += text("\n  largest difference: ", number_text(worst_), " at ", place(shape_, where_));
    s += text("\n  largest in proportion: ", number_text(worst_relative_), " at ", place(shape_, where_relative_), ": ",
              pair(where_relative_));
    s += text("\n  actual ", got_.dtype(), ' ', shape_, ", expected ", wanted_.dtype(), ' ', wanted_.shape());
    for (std::int64_t i : first_) s += text("\n    ", place(shape_, i), ": ", pair(i));
    if (count_ > kShown) s += text("\n    and ", count_ - kShown, " more");
    return s;
  }
  Shape shape_;
  Tensor got_, wanted_;
  bool spread_, equal_nan_ = true;
  double rtol_, atol_;
  std::int64_t count_ = 0, where_ = -1, where_relative_ = -1;
  double worst_ = 0, worst_relative_ = 0;
  std::vector<std::int64_t> first_;
};

}  // namespace

namespace detail {

void check_error_text(const char* what, Name expected) {
  if (std::string(what).find(string_of(expected)) == std::string::npos)
    fail<AssertionError>({"expect_error"}, '"', what, '"', kExpected, "it must hold \"", string_of(expected), '"');
}
void fail_no_error(Name expected) {
  fail<AssertionError>({"expect_error"}, "nothing was thrown", kExpected, "it must be an error with \"",
                       string_of(expected), '"');
}

}  // namespace detail

Array::Array(std::initializer_list<Operand> items)
    : tensor_(as_tensor(Operand(items), float64, "Array")), kind_(kList) {}
// A number keeps all its digits, whatever floatx is.
Array::Array(const Operand& number, int)
    : tensor_(as_tensor(number,
                        Access::kind(number) == Scalar::kFloat  ? float64
                        : Access::kind(number) == Scalar::kBool ? bool_
                                                                : integer_dtype(number),
                        "Array")),
      kind_(kNumber) {}

std::ostream& operator<<(std::ostream& os, const Comparison& c) {
  return os << (c.ok ? "equal within the tolerance" : c.report);
}

Comparison compare(const Array& actual, const Array& expected, const Tolerance& tolerance) {
  const Tensor &a = ArrayAccess::tensor(actual), &e = ArrayAccess::tensor(expected);
  if (!a.defined() || !e.defined()) {
    if (a.defined() == e.defined()) return {};
    return failed(a.defined() ? "a tensor where none is expected" : "no tensor where one is expected");
  }
  if (ArrayAccess::is_tensor(actual) && ArrayAccess::is_tensor(expected) && a.dtype() != e.dtype())
    return failed(text("dtype ", a.dtype(), ", expected ", e.dtype()));
  Tensor got = backend::eval(a), wanted = backend::eval(e);
  // A number or list has no precision: the tensor that it is compared with decides.
  if (ArrayAccess::weak(expected) && !ArrayAccess::weak(actual) && wanted.dtype().is_float() && got.dtype().is_float())
    wanted = host_copy(wanted, got.dtype());
  bool spread = ArrayAccess::is_number(expected);
  if (!spread && got.shape() != wanted.shape())
    return failed(text("shape ", got.shape(), ", expected ", wanted.shape()));
  if ((tolerance.any_sign || tolerance.any_order) && !spread) got = matched_columns(got, wanted, tolerance);
  return Difference(got, wanted, spread, tolerance).result();
}

void assert_close(const Array& actual, const Array& expected, const Tolerance& tolerance) {
  raise("assert_close", compare(actual, expected, tolerance));
}

// ---- random tensors -------------------------------------------------------------------------------------------------

Random::Random(Scalar seed) : seed_(0), outer_(innermost()) {
  const char* given = std::getenv("KASSETTE_TEST_SEED");
  if (!seed.is_none()) {
    if (Access::kind(seed) != Scalar::kInt)
      fail<TypeError>({"Random", "seed"}, "is ", scalar_text(seed), kExpected, "it must be an integer or None");
    seed_ = Access::int_value(seed);
  } else if (given) {
    char* end = nullptr;
    seed_ = std::strtoll(given, &end, 10);
    if (end == given || *end)
      fail<ValueError>({"Random"}, "KASSETTE_TEST_SEED is '", given, "'", kExpected, "it must be an integer");
  }
  context().random_scopes = this;
}
Random::~Random() {
  // Usually this is the innermost, but they may also end in another order.
  if (innermost() == this) {
    context().random_scopes = outer_;
    return;
  }
  for (Random* r = innermost(); r; r = r->outer_)
    if (r->outer_ == this) {
      r->outer_ = outer_;
      return;
    }
}
Scalar Random::next() {
  // With Philox, adjacent seeds give independent numbers.
  return Scalar((seed_ & 0xffffffff) << 20 | (drawn_++ & 0xfffff));
}
Tensor Random::uniform(const Dims& shape, double low, double high, DType dtype) {
  return backend::eval(backend::random_uniform(shape, low, high, dtype, next()));
}
Tensor Random::normal(const Dims& shape, double mean, double stddev, DType dtype) {
  return backend::eval(backend::random_normal(shape, mean, stddev, dtype, next()));
}
Tensor Random::integers(const Dims& shape, std::int64_t low, std::int64_t high, DType dtype) {
  return backend::eval(backend::random_uniform(shape, low, high, dtype, next()));
}

// ---- golden files ---------------------------------------------------------------------------------------------------

namespace {

/// FOLDER/NAME, without an extension.
std::string golden_path(Name name, const GoldenOptions& o) {
  if (name.size() == 0)
    fail<ValueError>({"compare_golden", "name"}, "is empty", kExpected, "it must have at least one character");
  const Name folder =
      o.folder.given() ? o.folder : Name(static_cast<const char*>(secure_getenv("KASSETTE_GOLDEN_DIR")));
  return text(folder.given() ? string_of(folder) : "golden", '/', string_of(name));
}
bool updating() {
  const char* v = secure_getenv("KASSETTE_UPDATE_GOLDEN");
  return v && *v && std::string(v) != "0";
}
bool exists(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}
void make_folders(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1))
    ::mkdir(path.substr(0, at).c_str(), 0777);
}
Comparison against(const std::string& path, const std::string& ending, const Callable<void(const std::string&)>& save,
                   const Callable<Comparison()>& look) {
  std::string file = path + ending, actual = path + ".actual" + ending;
  if (updating()) {
    make_folders(file);
    save(file);
    std::remove(actual.c_str());
    return {};
  }
  if (!exists(file)) return failed(text("there is no golden file ", file, "; KASSETTE_UPDATE_GOLDEN=1 writes it"));
  Comparison c = look();
  if (c) {
    std::remove(actual.c_str());
    return c;
  }
  save(actual);
  c.report += text("\n  golden file: ", file, "\n  what came is in ", actual, "; KASSETTE_UPDATE_GOLDEN=1 takes it");
  return c;
}
Tolerance tolerance_of(const GoldenOptions& o) {
  Tolerance t;
  t.rtol = o.rtol;
  t.atol = o.atol;
  t.equal_nan = o.equal_nan;
  return t;
}

}  // namespace

Comparison compare_golden(Name name, const Array& actual, const GoldenOptions& options) {
  std::string path = golden_path(name, options);
  Tensor x = ArrayAccess::tensor(actual).defined() ? backend::eval(ArrayAccess::tensor(actual)) : Tensor();
  auto save = [&](const std::string& file) { save_npy(file, x); };
  auto look = [&] { return compare(x, load_npy(path + ".npy"), tolerance_of(options)); };
  return against(path, ".npy", save, look);
}
Comparison compare_golden(Name name, const NamedTensors& actual, const GoldenOptions& options) {
  std::string path = golden_path(name, options);
  NamedTensors values;
  for (const NamedTensor& t : actual) values.set(std::string(t.name), backend::eval(t.tensor));
  auto save = [&](const std::string& file) { save_npz(file, values); };
  auto look = [&]() -> Comparison {
    NamedTensors golden = load_npz(path + ".npz");
    for (const NamedTensor& t : golden)
      if (!values.contains(std::string(t.name))) return failed(text("'", t.name, "' is missing"));
    for (const NamedTensor& t : values) {
      if (!golden.contains(std::string(t.name))) return failed(text("'", t.name, "' is not in the golden file"));
      Comparison c = compare(t.tensor, golden[std::string(t.name)], tolerance_of(options));
      if (c) continue;
      c.message = text("'", t.name, "': ", c.message);
      c.report = text("'", t.name, "': ", c.report);
      return c;
    }
    return {};
  };
  return against(path, ".npz", save, look);
}
void expect_golden(Name name, const Array& actual, const GoldenOptions& options) {
  raise("expect_golden", compare_golden(name, actual, options));
}
void expect_golden(Name name, const NamedTensors& actual, const GoldenOptions& options) {
  raise("expect_golden", compare_golden(name, actual, options));
}

// ---- leaks ----------------------------------------------------------------------------------------------------------

LeakCheck::LeakCheck() {
  Totals now = totals();
  nodes_ = now.live_nodes;
  tensors_ = now.live_tensors;
  bytes_ = now.live_bytes;
}
Comparison LeakCheck::check() const {
  Totals now = totals();
  if (now.live_nodes <= nodes_ && now.live_tensors <= tensors_ && now.live_bytes <= bytes_) return {};
  return failed(text("left alive: ", now.live_nodes - nodes_, " nodes of the tape, ", now.live_tensors - tensors_,
                     " tensors, ", now.live_bytes - bytes_, " bytes"));
}
void expect_no_leaks(Callable<void()> f) {
  f();
  LeakCheck leak;
  f();
  raise("expect_no_leaks", leak.check());
}

}  // namespace testing
}  // namespace kassette
