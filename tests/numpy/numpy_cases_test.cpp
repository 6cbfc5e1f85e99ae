// tests/numpy/numpy_cases_test.cpp - the functions of np and nn give what NumPy and PyTorch give: numpy_cases.txt and
// nn_cases.txt of tests/data, which make_numpy_cases.py and make_nn_cases.py write from the expressions of
// tests/np_samples.h and tests/nn_samples.h.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/sources.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

/// "float32 (2,3) 1 2 3 4 5 6"
Tensor tensor_from(const std::string& text) {
  std::istringstream words(text);
  std::string name, sizes, word;
  words >> name >> sizes;
  std::vector<std::int64_t> dims;
  std::istringstream inside(sizes.substr(1, sizes.size() - 2));
  while (std::getline(inside, word, ',')) dims.push_back(std::stoll(word));
  const Shape shape(dims.data(), static_cast<int>(dims.size()));
  const DType dtype(name);
  if (dtype.is_float()) {
    std::vector<double> v;
    while (words >> word) v.push_back(std::strtod(word.c_str(), nullptr));  // stod refuses subnormal numbers
    return K::cast(K::constant(v, float64, shape), dtype);
  }
  std::vector<std::int64_t> v;
  while (words >> word) v.push_back(static_cast<std::int64_t>(word[0] == '-' ? std::stoll(word) : std::stoull(word)));
  return K::cast(K::constant(v, int64, shape), dtype);
}
std::vector<std::string> parts(const std::string& text, const std::string& separator) {
  std::vector<std::string> out;
  for (std::size_t at = 0;;) {
    const std::size_t next = text.find(separator, at);
    out.push_back(text.substr(at, next - at));
    if (next == std::string::npos) return out;
    at = next + separator.size();
  }
}

/// The largest magnitude of finite elements.
double largest(const Tensor& x) {
  double most = 0;
  for (double v : values<double>(K::cast(x, float64)))
    if (std::isfinite(v)) most = std::max(most, std::fabs(v));
  return most;
}

/// By how many units in the last place of the larger of `scale` and the largest finite expected element they differ;
/// infinity if a special value is another, or the sign of a zero unless `either_zero`.
double apart(const Tensor& got, const Tensor& expected, bool either_zero, double scale) {
  const std::vector<double> x = values<double>(K::cast(got, float64)), y = values<double>(K::cast(expected, float64));
  double off = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (x[i] == y[i] && std::signbit(x[i]) == std::signbit(y[i])) continue;
    if (x[i] == 0 && y[i] == 0 && !either_zero) return INFINITY;
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return INFINITY;
    off = std::max(off, std::fabs(x[i] - y[i]));
  }
  const double unit = unit_of(got.dtype());
  return off == 0 ? 0 : unit == 0 ? INFINITY : off / std::max({largest(expected), scale, 0x1p-100}) / unit;
}

/// The cases of a file of tests/data against the samples of np or nn, and how many there were. `script`, which has
/// written them, names what has no case, with the reason.
int compare_cases(bool SampleTraits::*space, const char* cases, const char* script) {
  std::map<std::string, const Sample*> samples;
  for (const Sample& s : op_samples())
    if (s.traits.*space) samples[s.expression] = &s;
  std::set<std::string> tried, other_dtype, either_zero;
  std::ifstream file(kSourceTree / "tests/data" / cases);
  REQUIRE(file);
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    for (auto& [mark, names] : {std::pair<std::string, std::set<std::string>&>("# differs in dtype: ", other_dtype),
                                {"# has zeros of either sign: ", either_zero}})
      if (line.compare(0, mark.size(), mark) == 0)
        for (const std::string& name : parts(line.substr(mark.size()), " ")) names.insert(name);
    if (line.empty() || line[0] == '#') continue;
    const std::size_t bar = line.find(" | "), equals = line.find(" = ", bar);
    const auto found = samples.find(line.substr(0, bar));
    if (found == samples.end()) {
      FAIL_CHECK("no row of the samples has the expression " << line.substr(0, bar));
      continue;
    }
    const Sample& s = *found->second;
    tried.insert(found->first);
    ++compared;
    Tensors in;
    for (const std::string& text : parts(line.substr(bar + 3, equals - bar - 3), " | "))
      in.push_back(tensor_from(text));
    Tensors expected, got;
    for (const std::string& text : parts(line.substr(equals + 3), " ; ")) expected.push_back(tensor_from(text));
    try {
      got = call(s, in);
    } catch (const std::exception& e) {
      FAIL_CHECK(line << "\nthrew " << e.what());
      continue;
    }
    REQUIRE(got.size() == expected.size());
    for (std::int64_t i = 0; i < got.size(); ++i) {
      if (got[i].shape() != expected[i].shape()) {
        FAIL_CHECK(line << "\ngave " << got[i]);
        continue;
      }
      const bool same_dtype = got[i].dtype() == expected[i].dtype() || other_dtype.count(s.name);
      // A sum that cancels has the rounding errors of its terms, in an order that the width of vectors decides.
      const double scale = std::string(s.name) == "nansum" ? largest(in[0]) : 0;
      const double units = apart(got[i], expected[i], either_zero.count(s.name) > 0, scale);
      if (!same_dtype || !(units <= 4 * s.loose)) FAIL_CHECK(line << "\n" << units << " units from " << got[i]);
    }
  }
  const std::string reasons = text_of(kSourceTree / "tests/data" / script);
  for (const auto& [expression, s] : samples)
    if (!tried.count(expression) && reasons.find("\"" + std::string(s->name) + "\": \"") == std::string::npos)
      FAIL_CHECK(expression << " has no case: run tests/data/" << script);
  return compared;
}

}  // namespace

TEST_CASE("the functions of np give NumPy's values, dtypes and shapes", "[numpy]") {
  CHECK(compare_cases(&SampleTraits::np, "numpy_cases.txt", "make_numpy_cases.py") > 12000);
}

TEST_CASE("the functions of nn give PyTorch's values, dtypes and shapes", "[numpy][nn]") {
  CHECK(compare_cases(&SampleTraits::nn, "nn_cases.txt", "make_nn_cases.py") > 100);
}
