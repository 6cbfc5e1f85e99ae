// tests/sweeps/wrong_argument_test.cpp - one argument of a K function is wrong, and the error names that one.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/sweeps/parameters.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::test;

namespace {

struct Said {
  std::string message = "no error", function, argument;
};

template <class F>
Said said_by(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.what(), e.function(), e.argument()};
  }
  return {};
}

/// Whether a function is another than that of the sample: a call among the arguments has refused its own.
bool of_inner_call(const Sample& s, const Said& said) {
  if (said.function == s.name) return false;
  CHECK((" " + std::string(s.traits.also) + " ").find(" " + said.function + " ") != std::string::npos);
  return true;
}

/// A sample of a K function: which of its tensors is which argument.
struct KCall {
  const Sample* sample;
  Strings names;                       // the arguments, by the header
  std::vector<std::ptrdiff_t> places;  // of each tensor among them; -1: it is no argument as it is
};

std::vector<KCall> calls() {
  const auto declared = parameters();
  std::vector<KCall> all;
  for (const Sample& s : op_samples()) {
    if (!s.traits.k) continue;
    const std::string expression = s.expression, opening = "K::" + std::string(s.name) + "(";
    const std::size_t at = expression.find(opening);
    if (at == std::string::npos) continue;
    const Strings given = arguments(expression, at + opening.size());
    KCall one{&s, {}, {}};
    const auto [from, to] = declared.equal_range(s.name);
    for (auto it = from; it != to; ++it)
      if (it->second.size() >= given.size() && (one.names.empty() || it->second.size() < one.names.size()))
        one.names = it->second;
    if (one.names.empty()) continue;
    for (std::size_t i = 0; i < cases_of(s)[0].size() && i < 4; ++i) {
      const auto position = std::find(given.begin(), given.end(), std::string(1, "xyzw"[i]));
      one.places.push_back(position == given.end() ? -1 : position - given.begin());
    }
    all.push_back(one);
  }
  return all;
}

/// A tensor of another dtype than x has: an integer one for floats, else float32.
Tensor other_dtype(const Tensor& x) { return backend::cast(x, x.dtype().is_float() ? "int32" : "float32"); }
/// Arguments of another rank that a message shows as what the function makes of them: moved axes, sums, an element.
const std::set<std::string> kDerived{"sparse_categorical_crossentropy output", "foldl elems", "foldr elems"};
/// x with three axes more.
Tensor other_rank(const Tensor& x) {
  Tensor more = x;
  for (int i = 0; i < 3; ++i) more = backend::expand_dims(more, 0);
  return backend::repeat_elements(more, 3, 0);
}

}  // namespace

TEST_CASE("an argument that is an empty Tensor is named", "[sweep][bad]") {
  int named = 0;
  for (const KCall& c : calls()) {
    const Sample& s = *c.sample;
    for (std::size_t i = 0; i < c.places.size(); ++i) {
      if (c.places[i] < 0 || s.in[i].optional) continue;
      const std::size_t p = static_cast<std::size_t>(c.places[i]);
      Tensors in = make_inputs(s, cases_of(s)[0], dtypes_of(s.takes).front());
      in[static_cast<std::int64_t>(i)] = Tensor();
      const Said said = said_by([&] { call(s, in); });
      INFO(said.message << "\n  of " << s.expression << ", where " << c.names[p] << " is an empty Tensor");
      CHECK(said.message != "no error");
      if (of_inner_call(s, said)) continue;
      CHECK(said.argument == c.names[p]);
      ++named;
    }
  }
  CHECK(named > 100);
}

TEST_CASE("an error about a dtype or a rank shows the argument that is wrong, and names no other tensor",
          "[sweep][bad]") {
  int refused = 0;
  std::set<std::string> derived;
  for (const KCall& c : calls()) {
    const Sample& s = *c.sample;
    for (std::size_t i = 0; i < c.places.size(); ++i) {
      if (c.places[i] < 0) continue;
      const std::size_t p = static_cast<std::size_t>(c.places[i]);
      for (auto* wrong : {other_dtype, other_rank}) {
        Tensors in = make_inputs(s, cases_of(s)[0], dtypes_of(s.takes).front());
        Tensor& given = in[static_cast<std::int64_t>(i)];
        if (!given.defined() || (wrong == other_rank && given.ndim() > 5)) continue;
        std::string shown;
        const Said said = said_by([&] {
          given = wrong(given);
          shown = wrong == other_dtype ? printed(given.dtype()) : printed(given.shape());
          call(s, in);
        });
        if (said.message == "no error") continue;
        INFO(said.message << "\n  of " << s.expression << ", where " << c.names[p] << " is " << shown);
        if (of_inner_call(s, said)) continue;
        if (said.argument != c.names[p] && said.message.find(shown) == std::string::npos) {
          CHECK(wrong == other_rank);
          derived.insert(said.function + " " + c.names[p]);
        }
        for (std::size_t k = 0; k < c.places.size(); ++k)
          if (k != i && c.places[k] >= 0) CHECK(said.argument != c.names[static_cast<std::size_t>(c.places[k])]);
        ++refused;
      }
    }
  }
  CHECK(derived == kDerived);
  CHECK(refused > 50);
}
