// tests/ops/engine/refusals_test.cpp - bad calls that are possible (almost) only below the K functions: they are
// refused in one line that names the function and the argument.
#include <cstdint>
#include <limits>

#include <kassette/backend.h>
#include <kassette/io.h>

#include "core/impl.h"
#include "ops/ctc/ctc.h"
#include "ops/convolution/resize.h"
#include "ops/shape/shaping.h"
#include "ops/sparse/sparse.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using kassette::test::error_of;
using kassette::test::values;

TEST_CASE("an op on integers that needs floats names the dtype and the remedy", "[errors]") {
  const Tensor ints = K::zeros({2, 3, 4}, "int32"), lengths = K::ones({2}, "int32");
  CHECK(error_of<TypeError>([&] {
          ctc_batch_cost(K::ones({2, 1}, "int32"), ints, lengths, lengths, 1e-7);
        }) == "ctc_batch_cost: y_pred is int32, not a float dtype; cast it first (K::cast)");
  CHECK(error_of<TypeError>([] {
          resize_bilinear(K::zeros({1, 2, 3, 1}, "int32"), {2, 2, false});
        }) == "resize_bilinear: x is int32; it must be float32 or float64");
  CHECK(error_of<TypeError>([] {
          sparse_coo(K::zeros({2, 1}), K::ones({2}), K::constant({3}, "int64"));
        }) == "sparse_coo: indices are float32; they must be integers; cast them (K::cast)");
  CHECK(error_of<TypeError>([] { K::dropout(K::ones({2}), 0.5, K::None, true); }) ==
        "dropout: seed is true; it must be an integer or None");
}

TEST_CASE("sizes that nothing can have are refused by the function that was given them", "[errors]") {
  CHECK(error_of<ValueError>([] {
          Pads amounts{.rank = 1};
          amounts.after[0] = -1;
          pad(K::ones({3}), amounts);
        }) == "pad: padding holds -1; amounts must not be negative; K::slice removes elements");
  CHECK(error_of<ValueError>([] {
          K::dropout(K::ones({2, 3}), 0.5, {2, -2});
        }) == "dropout: noise_shape (2, -2); sizes must not be negative, except -1 for that of x");
  CHECK(error_of<ValueError>([] {
          const std::int64_t most = std::numeric_limits<std::int64_t>::max();
          resize_bilinear(K::zeros({1, 2, 3, 1}), {most, 1, false});
        }).rfind("resize_bilinear: x (1, 2, 3, 1) enlarged by 9223372036854775807 and 1 is too large", 0) == 0);
  CHECK(error_of<ValueError>([] {
          (void)K::ones({2, 3}).item<double>();
        }) == "item: a tensor of shape (2, 3) has not exactly one element");
  for (char delimiter : {'5', '.', '\n', '"'})
    CHECK(error_of<ValueError>([&] { save_csv("nowhere/x.csv", K::ones({2}), {.delimiter = delimiter}); }) ==
          "save_csv: delimiter is '" + (delimiter == '\n' ? std::string("\\n") : std::string(1, delimiter)) +
              "'; it must not occur in numbers or end lines");
}

TEST_CASE("more parts than an op has results come in several ops, with their gradients", "[shaping]") {
  const int n = kMaxOutputs + 2;
  const Tensor x = K::variable(K::arange(0, n, 1, "float64"), "float64");
  const Tensors parts = unstack(x, n, 0);
  REQUIRE(parts.size() == n);
  bool equal = true;
  for (int i = 0; i < n; ++i) equal = equal && parts[i].ndim() == 0;
  CHECK(equal);
  for (int i : {0, 1, kMaxOutputs - 1, kMaxOutputs, n - 1}) CHECK(parts[i].item<double>() == i);
  // d(a b) = b da + a db, with a part of each op.
  const Tensor g = K::gradients(parts[2] * parts[n - 1], {x})[0];
  CHECK(K::sum(g).item<double>() == 2 + n - 1);
  CHECK(values(g)[2] == n - 1);
  CHECK(values(g)[static_cast<std::size_t>(n - 1)] == 2);
  const Tensor unranked = K::placeholder(K::None, K::None, "float64");
  CHECK(error_of<NotImplementedError>([&] { unstack(unranked, n, -1); }) ==
        "unstack: 65537 parts along axis -1 of a tensor of unknown rank");
}
