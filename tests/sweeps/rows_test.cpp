// tests/sweeps/rows_test.cpp - every sample, and its gradient, for many rows at once (vmap's rules) against row by row.
#include <kassette/testing.h>
#include <kassette/transforms.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "nn_backend/batching.h"
#include "tests/catch.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

constexpr int kRows = 3;

DType dtype_of(const Sample& s) { return s.takes == Takes::bools ? bool_ : takes_integers(s) ? int32 : float64; }

/// A sample as a function of the inputs that may differ from row to row.
struct OneRow {
  const Sample& s;
  Tensors shared;            // all inputs; those that differ are replaced
  std::vector<int> differs;  // their indices
  std::int64_t result = 0;
  int by = -1;  // the input by which the result is differentiated

  Tensor operator()(const Tensors& row) const {
    Tensors in = shared;
    for (std::size_t k = 0; k < differs.size(); ++k) in[differs[k]] = row[static_cast<std::int64_t>(k)];
    if (by < 0) return call(s, in)[result];
    auto of_one = [&](const Tensor& x) {
      Tensors all = in;
      all[by] = x;
      return K::sum(call(s, all)[result]);
    };
    return grad(of_one)(in[by]);
  }
};

/// What is wrong, or nothing. `ruled` says whether the rules had an answer.
std::string compare(const OneRow& f, const std::vector<Tensors>& rows, bool* ruled) {
  Tensors args, expected;
  for (std::size_t k = 0; k < f.differs.size(); ++k) {
    Tensors column;
    for (const Tensors& row : rows) column.push_back(row[static_cast<std::int64_t>(k)]);
    args.push_back(K::stack(column, 0));
  }
  DType dtype;
  const Tensor y = batched([&](const Tensors& row) { return f(row); }, args, &dtype);
  *ruled = y.defined();
  if (!*ruled) return "";
  for (const Tensors& row : rows) expected.push_back(f(row));
  const Tensor wanted = K::stack(expected, 0);
  if (y.dtype() != wanted.dtype()) return std::string("is ") + y.dtype().name() + ", not " + wanted.dtype().name();
  return testing::compare(y, wanted, {.rtol = 1e-7, .atol = 1e-9}).message;
}

}  // namespace

TEST_CASE("the rules of vmap give for every sample what its rows give", "[sweep][transforms]") {
  int ruled = 0, all = 0;
  std::map<std::string, int> without;
  for (const Sample& s : op_samples()) {
    if (s.traits.draws) continue;
    for (const Shapes& shapes : cases_of(s)) {
      OneRow f{s, make_inputs(s, shapes, dtype_of(s)), {}};
      for (std::size_t i = 0; i < shapes.size(); ++i)
        if (!s.in[i].host && !s.in[i].anywhere && shapes[i].rank() < kMaxRank - 1)
          f.differs.push_back(static_cast<int>(i));
      if (f.differs.empty()) continue;
      // All inputs differ, then one at a time.
      const std::vector<int> any = f.differs;
      std::vector<std::vector<int>> choices{any};
      if (any.size() > 1)
        for (int i : any) choices.push_back({i});
      for (const auto& differs : choices) {
        f.differs = differs;
        std::vector<Tensors> rows(kRows);
        for (int k = 0; k < kRows; ++k)
          for (int i : differs) {
            const Input& input = s.in[i];
            rows[static_cast<std::size_t>(k)].push_back(make_input(
                input, shapes[static_cast<std::size_t>(i)], input.dtype.given() ? input.dtype : dtype_of(s), i + k));
          }
        const Tensors one = call(s, f.shared);
        for (f.result = 0; f.result < one.size(); ++f.result) {
          for (f.by = -1; f.by < 1; ++f.by) {
            if (f.by == 0 && (!one[f.result].dtype().is_float() || !f.shared[0].dtype().is_float() || s.in[0].host))
              continue;
            INFO(title(s, shapes, dtype_of(s)) << " result " << f.result << " by " << f.by << " " << differs.size()
                                               << " inputs differ, the first is " << differs[0]);
            bool has_rule = false;
            std::string wrong;
            try {
              wrong = compare(f, rows, &has_rule);
            } catch (const std::exception& e) {
              wrong = std::string("threw ") + e.what();
            }
            if (!wrong.empty()) FAIL_CHECK(wrong);
            ++all;
            ruled += has_rule;
            if (!has_rule) ++without[s.name];
          }
        }
      }
    }
  }
  if (std::getenv("KASSETTE_TEST_LIST")) {
    for (const auto& [name, n] : without) std::cout << name << " " << n << "\n";
    std::cout << ruled << " of " << all << " calls by rules\n";
  }
  CHECK(ruled > all * 3 / 4);
}
