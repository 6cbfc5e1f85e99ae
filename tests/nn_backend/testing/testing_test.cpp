// tests/nn_backend/testing/testing_test.cpp - <kassette/testing.h> as people use it on their own code.
#include "tests/catch.h"

#include <kassette/numpy.h>
#include <kassette/testing.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <xtensor/xarray.hpp>

#include "tests/environment.h"
#include "tests/io/folder.h"

namespace K = kassette::backend;
namespace np = kassette::numpy;
using namespace kassette;
using namespace kassette::test;
using namespace kassette::testing;

namespace {

/// As Eigen's matrices look from outside: column-major, m(i, j).
struct Matrix {
  long rows() const { return 2; }
  long cols() const { return 3; }
  double operator()(long i, long j) const { return v[static_cast<std::size_t>(j * 2 + i)]; }
  std::array<double, 6> v{1, 4, 2, 5, 3, 6};
};

std::string report(const Array& a, const Array& b, const Tolerance& t = {}) { return compare(a, b, t).report; }

}  // namespace

TEST_CASE("a comparison says how many elements differ, where most, and shows the first", "[testing]") {
  Tensor a = K::constant({{1, 2, 3}, {4, 5, 6}}), b = K::constant({{1, 2.5, 3}, {4, 5, 7}});
  Comparison c = compare(a, b);
  CHECK(!c);
  CHECK(c.count == 2);
  CHECK(c.where == 5);
  CHECK(c.where_relative == 1);
  CHECK(c.message == "2 of 6 elements differ, most at (1, 2): 6, expected 7");
  CHECK(c.report ==
        "2 of 6 elements differ, most at (1, 2): 6, expected 7\n"
        "  allowed: atol 1e-05 + rtol 1e-05 * |expected|\n"
        "  largest difference: 1 at (1, 2)\n"
        "  largest in proportion: 0.2 at (0, 1): 2, expected 2.5\n"
        "  actual float32 (2, 3), expected float32 (2, 3)\n"
        "    (0, 1): 2, expected 2.5\n"
        "    (1, 2): 6, expected 7");
  CHECK(printed(c) == c.report);
  CHECK(printed(compare(a, a)) == "equal within the tolerance");
  CHECK(error_of<AssertionError>([&] { assert_close(a, b); }) == "assert_close: " + c.report);
  CHECK_NOTHROW(assert_close(a, b, {.rtol = 0.3}));
  CHECK(!compare(K::zeros({100}), K::ones({100})));
  CHECK_THAT(report(K::zeros({100}), K::ones({100})), Catch::Contains("and 95 more"));
}

TEST_CASE("shapes and dtypes of tensors have to be equal", "[testing]") {
  CHECK(report(K::zeros({2, 3}), K::zeros({3, 2})) == "shape (2, 3), expected (3, 2)");
  CHECK(report(K::zeros({2}), K::zeros({2}, float64)) == "dtype float32, expected float64");
  CHECK(report(Tensor(), K::zeros({2})) == "no tensor where one is expected");
  CHECK(report(K::zeros({2}), Tensor()) == "a tensor where none is expected");
  CHECK(compare(Tensor(), Tensor()));
  CHECK(compare(K::zeros({0, 3}), K::zeros({0, 3})));
}

TEST_CASE("arrays of other libraries are compared as they are", "[testing]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}}, float64);
  xt::xarray<double> row_major{{1, 2, 3}, {4, 5, 6}};
  xt::xarray<float, xt::layout_type::column_major> column_major = row_major;
  CHECK(compare(row_major, x));
  CHECK(compare(x, column_major));
  CHECK(compare(Matrix(), x));
  CHECK(compare(std::vector<std::vector<int>>{{1, 2, 3}, {4, 5, 6}}, x));
  CHECK(compare(std::deque<unsigned>{1, 2, 3}, x[0]));
  CHECK(compare(std::vector<bool>{true, false}, K::constant({true, false}, bool_)));
  CHECK(compare(std::array<long double, 3>{4, 5, 6}, x[1]));
  CHECK(compare(x, {{1, 2, 3}, {4, 5, 6}}));
  CHECK(compare(K::zeros({4, 4}), 0));
  CHECK(report(x[0], std::vector<int>{1, 2}) == "shape (3,), expected (2,)");
  CHECK(error_of<ValueError>([&] {
          compare(std::vector<std::vector<int>>{{1}, {1, 2}}, x);
        }) == "array: a nested container is ragged: along axis 1 a size is 2, and 1 before it");
  // 0.1 as a float is what a float tensor holds of it.
  CHECK(compare(K::constant({0.1}), {0.1}, {.rtol = 0, .atol = 0}));
  CHECK(compare(K::constant({0.1}), 0.1, {.rtol = 0, .atol = 0}));
}

TEST_CASE("integers are compared exactly, also where float64 cannot tell them apart", "[testing]") {
  Tensor a = K::constant(std::vector<std::int64_t>{9007199254740993}, int64),
         b = K::constant(std::vector<std::int64_t>{9007199254740992}, int64);
  CHECK(compare(a, b).message == "1 of 1 elements differ, most at (0): 9007199254740993, expected 9007199254740992");
  CHECK(compare(a, 9007199254740993));
  Tensor c = K::constant(std::vector<std::uint64_t>{UINT64_MAX}, uint64),
         d = K::constant(std::vector<std::uint64_t>{UINT64_MAX - 1}, uint64);
  CHECK_FALSE(compare(c, d));
  CHECK(compare(c, d).report.find("18446744073709551615, expected 18446744073709551614") != std::string::npos);
  Tensor low = K::constant(std::vector<std::int64_t>{INT64_MIN}, int64),
         high = K::constant(std::vector<std::int64_t>{INT64_MAX}, int64);
  CHECK(compare(low, high).worst == 18446744073709551615.0);
  CHECK(compare(K::constant(std::vector<std::uint64_t>{UINT64_MAX}, uint64), UINT64_MAX));  // a number by itself
}

TEST_CASE("nan equals nan unless told otherwise, and infinities only themselves", "[testing]") {
  Tensor x = K::constant({double(NAN), double(INFINITY)});
  CHECK(compare(x, x));
  CHECK(compare(x, x, {.equal_nan = false}).count == 1);
  CHECK(!compare(x, K::constant({double(NAN), -double(INFINITY)})));
  CHECK(!compare(K::constant({1e30}), K::constant({double(INFINITY)}), {.rtol = 1e9}));
  CHECK(compare(K::constant({1.0, double(NAN), 3.0}), K::constant({9.0, 2.0, 3.0})).where == 1);
}

TEST_CASE("random tensors come again with their seed, and failures name it", "[testing]") {
  Tensor first;
  {
    Random random(42);
    first = random.uniform({2, 3}, -1, 1);
    CHECK(!compare(first, random.uniform({2, 3}, -1, 1)));
    CHECK_THAT(report(first, 5), Catch::Contains("random tensors: KASSETTE_TEST_SEED=42 reproduces them"));
    CHECK(K::all(first >= -1).item<bool>());
    CHECK(compare(Random(42).uniform({2, 3}, -1, 1), first));
    CHECK(!compare(Random(43).uniform({2, 3}, -1, 1), first));
    CHECK(random.normal({4}, 0, 1, float32).dtype() == float32);
    Tensor n = random.integers({100}, -2, 3);
    CHECK(n.dtype() == int64);
    CHECK(K::all((n >= -2) & (n < 3)).item<bool>());
  }
  CHECK(report(first, 5).find("random tensors") == std::string::npos);
  {
    Environment none("KASSETTE_TEST_SEED", nullptr);
    CHECK(Random().seed() == 0);
  }
  Environment seed("KASSETTE_TEST_SEED", "42");
  CHECK(compare(Random().uniform({2, 3}, -1, 1), first));
  Environment wrong("KASSETTE_TEST_SEED", "x1");
  CHECK(error_of<ValueError>([] { Random r; }) == "Random: KASSETTE_TEST_SEED is 'x1'; it must be an integer");
}

TEST_CASE("golden files are written when asked, compared, and what came is kept beside them", "[testing]") {
  Folder folder;
  Environment as_usual("KASSETTE_UPDATE_GOLDEN", nullptr);
  std::string where = folder / "golden/deep";
  Tensor x = K::constant({{1, 2}, {3, 4}});
  CHECK(compare_golden("a", x, {.folder = where}).report ==
        "there is no golden file " + where + "/a.npy; KASSETTE_UPDATE_GOLDEN=1 writes it");
  {
    Environment update("KASSETTE_UPDATE_GOLDEN", "1");
    expect_golden("a", x, {.folder = where});
    expect_golden("both", NamedTensors{{"x", x}, {"y", x[0]}}, {.folder = where});
  }
  CHECK(compare_golden("a", x, {.folder = where}));
  CHECK(compare_golden("both", NamedTensors{{"y", x[0]}, {"x", x}}, {.folder = where}));
  std::string message = error_of<AssertionError>([&] { expect_golden("a", x + 1, {.folder = where}); });
  CHECK_THAT(message, Catch::Contains("expect_golden: 4 of 4 elements differ"));
  CHECK_THAT(message, Catch::Contains("what came is in " + where + "/a.actual.npy; KASSETTE_UPDATE_GOLDEN=1 takes it"));
  CHECK(compare(load_npy(where + "/a.actual.npy"), x + 1));
  CHECK(compare_golden("a", x, {.folder = where}));
  CHECK(!std::filesystem::exists(where + "/a.actual.npy"));
  CHECK_THAT(compare_golden("both", NamedTensors{{"x", x}}, {.folder = where}).report,
             Catch::Contains("'y' is missing"));
  CHECK_THAT(compare_golden("both", NamedTensors{{"x", x}, {"y", x[1]}}, {.folder = where}).report,
             Catch::Contains("'y': 2 of 2 elements differ"));
  // What an earlier failure left is no longer true of a file that is written anew.
  CHECK(!compare_golden("a", x + 1, {.folder = where}));
  CHECK(!compare_golden("both", NamedTensors{{"x", x}, {"y", x[1]}}, {.folder = where}));
  CHECK(std::filesystem::exists(where + "/a.actual.npy"));
  CHECK(std::filesystem::exists(where + "/both.actual.npz"));
  {
    Environment off("KASSETTE_UPDATE_GOLDEN", "0");  // is not set
    CHECK(!compare_golden("a", x + 1, {.folder = where}));
    CHECK(compare(load_npy(where + "/a.npy"), x));
  }
  {
    Environment update("KASSETTE_UPDATE_GOLDEN", "1");
    CHECK(compare_golden("a", x + 2, {.folder = where}));
    CHECK(compare_golden("both", NamedTensors{{"x", x}, {"y", x[1]}}, {.folder = where}));
  }
  CHECK(compare(load_npy(where + "/a.npy"), x + 2));
  CHECK(!std::filesystem::exists(where + "/a.actual.npy"));
  CHECK(!std::filesystem::exists(where + "/both.actual.npz"));
  CHECK(compare_golden("a", x + 2, {.folder = where}));
  // The tolerance that was given counts, and the largest difference is said.
  CHECK(compare_golden("a", x + 2.5, {.rtol = 0, .atol = 0.6, .folder = where}));
  CHECK(!compare_golden("a", x + 2.5, {.rtol = 0, .atol = 0.4, .folder = where}));
  CHECK(!compare_golden("a", x + 2.5, {.rtol = 0.01, .atol = 0, .folder = where}));
  {
    Environment update("KASSETTE_UPDATE_GOLDEN", "1");
    expect_golden("nan", K::constant({double(NAN)}), {.folder = where});
    expect_golden("a", x, {.folder = where});
  }
  CHECK(compare_golden("nan", K::constant({double(NAN)}), {.folder = where}));
  CHECK(!compare_golden("nan", K::constant({double(NAN)}), {.equal_nan = false, .folder = where}));
  CHECK_THAT(compare_golden("both", NamedTensors{{"x", x}, {"y", x[1]}, {"z", x}}, {.folder = where}).report,
             Catch::Contains("'z' is not in the golden file"));
  CHECK(error_of<ValueError>([&] { compare_golden("", x); }) ==
        "compare_golden: name is empty; it must have at least one character");
  CHECK(error_of<ValueError>([&] { compare_golden(K::None, x); }) ==
        "compare_golden: name is empty; it must have at least one character");
  Environment elsewhere("KASSETTE_GOLDEN_DIR", where.c_str());
  CHECK(compare_golden("a", x));
  CHECK_THAT(x, MatchesGolden("a"));
}

TEST_CASE("errors are expected by class and text", "[testing]") {
  CHECK_NOTHROW(expect_error<ValueError>("inner dimensions differ", [] {
    K::dot(K::zeros({2, 3}), K::zeros({2, 3}));
  }));
  CHECK(error_of<AssertionError>([] {
          expect_error("no such thing", [] { K::dot(K::zeros({2, 3}), K::zeros({2, 3})); });
        }).find("; it must hold \"no such thing\"") != std::string::npos);
  CHECK(error_of<AssertionError>([] { expect_error("x", [] {}); }) ==
        "expect_error: nothing was thrown; it must be an error with \"x\"");
  CHECK_THROWS_AS(expect_error<TypeError>("inner", [] { K::dot(K::zeros({2, 3}), K::zeros({2, 3})); }), ValueError);
}

TEST_CASE("what is left alive is counted", "[testing]") {
  Tensor w = K::variable({1, 2, 3});
  Tensors kept;
  CHECK_NOTHROW(expect_no_leaks([&] { K::gradients(K::sum(w * w), {w}); }));
  std::string message = error_of<AssertionError>([&] { expect_no_leaks([&] { kept.push_back(w * w); }); });
  CHECK_THAT(message, Catch::Contains("expect_no_leaks: left alive: 1 nodes of the tape, 1 tensors"));
  LeakCheck leak;
  CHECK(leak.check());
  Tensor more = K::zeros({1000});
  CHECK(!leak.check());
}

TEST_CASE("gradcheck names the worst element, gradgradcheck the order", "[testing]") {
  Tensor x = K::constant({{0.3, 0.7}, {1.1, 2.0}}, float64);
  CHECK(gradcheck([](const Tensors& v) { return K::square(v[0]) * v[1]; }, {x, x}));
  CHECK(gradgradcheck([](const Tensors& v) { return K::square(v[0]) * v[1]; }, {x, x}));
  // The gradient of half of it is cut.
  Comparison c = gradcheck([](const Tensors& v) { return v[0] * K::stop_gradient(v[0]); }, {x});
  CHECK_THAT(c.message, Catch::Contains("input 0: 4 of 4 elements differ, most at (1, 1): gradient"));
  CHECK(c.where == 3);
  CHECK_THAT(c.report, Catch::Contains("input 0: 4 of 4 elements differ, most at (1, 1): gradient"));
  CHECK(gradcheck([](const Tensors& v) { return v[0]; }, {K::cast(x, "float32")}).message ==
        "gradcheck: differences need float64, input 0 is float32");
}

TEST_CASE("gradcheck finds faults that cancel between outputs or elements", "[testing]") {
  // Nothing in value; a fault of the gradient that is as large as `by`.
  auto fault = [](const Tensor& x, const Operand& by) { return by * (x - K::stop_gradient(x)); };
  Tensor x = K::constant({0.5, 0.75, 1.25}, "float64");
  auto two = [&](const Tensors& in) {
    return Tensors{K::exp(in[0]) + fault(in[0], 1), K::square(in[0]) + fault(in[0], -1)};
  };
  auto three = [&](const Tensors& in) {
    return Tensors{K::exp(in[0]) + fault(in[0], 1), K::square(in[0]) + fault(in[0], -2), in[0] + fault(in[0], 1)};
  };
  // One number that every element of the output depends on.
  auto elements = [&](const Tensors& in) {
    return K::constant({1, 1, 1, 1}, "float64") * K::exp(in[0]) + fault(in[0], {1, -1, -1, 1});
  };
  auto curve = [&](const Tensors& in) {
    return K::constant({1, 1, 1}, "float64") * K::exp(in[0]) + fault(in[0], {1, -2, 1});
  };
  auto far = [&](const Tensors& in) {
    return K::constant({1, 1, 1, 1, 1, 1}, "float64") * K::exp(in[0]) + fault(in[0], {1, 0, 0, -1, 0, 0});
  };
  CHECK_FALSE(gradcheck(two, {x}));
  CHECK_FALSE(gradcheck(three, {x}));
  for (double at : {0.5, -1.0, 2.0}) {
    CHECK_FALSE(gradcheck(elements, {K::constant(at, "float64")}));
    CHECK_FALSE(gradcheck(curve, {K::constant(at, "float64")}));
    CHECK_FALSE(gradcheck(far, {K::constant(at, "float64")}));
  }
  // The same of second gradients: the gradient's fault is of value 0.
  auto second_fault = [&](const Tensor& v, double by) { return by * K::square(v - K::stop_gradient(v)); };
  auto second = [&](const Tensors& in) {
    return Tensors{K::exp(in[0]) + second_fault(in[0], 1), K::square(in[0]) + second_fault(in[0], -2),
                   in[0] + second_fault(in[0], 1)};
  };
  CHECK(gradcheck(second, {x}));
  CHECK_FALSE(gradgradcheck(second, {x}));
  // And of two inputs whose faults cancel.
  auto inputs = [&](const Tensors& in) { return in[0] * in[1] + fault(in[0], 1) + fault(in[1], -1); };
  CHECK_FALSE(gradcheck(inputs, {x, x}));
}

TEST_CASE("no small integer combination of gradcheck's cotangents cancels", "[testing]") {
  // The cotangents themselves: the gradients of the weighted sum.
  Tensors ys;
  for (int k = 0; k < 4; ++k) ys.push_back(K::variable(K::zeros({6}, "float64"), "float64"));
  std::vector<double> w;
  for (const Tensor& g : K::gradients(testing::detail::weighted_sum(ys), ys))
    for (double v : K::eval(g).to_vector<double>()) w.push_back(v);
  REQUIRE(w.size() == 24);
  for (std::size_t i = 0; i < w.size(); ++i)
    for (std::size_t j = 0; j < w.size(); ++j)
      for (std::size_t k = 0; k < w.size(); ++k) {
        if (i == j || j == k || i == k) continue;
        CAPTURE(i, j, k);
        // REQUIRE alone: 12,000 of each.
        if (std::abs(w[i] - w[j]) < 1e-4 || std::abs(w[i] - 2 * w[j] + w[k]) < 1e-6 ||
            std::abs(w[i] + w[j] - w[k]) < 1e-6)
          FAIL("they cancel");
      }
}

TEST_CASE("matchers say what differs", "[testing]") {
  Tensor x = K::constant({1, 2, 3});
  CHECK_THAT(x, IsClose({1, 2, 3}));
  CHECK_THAT((std::vector<double>{1, 2}), IsClose(std::vector<double>{1, 2.1}, {.atol = 0.2}));
  IsClose close(K::constant({1, 2, 4}));
  CHECK(!close.match(x));
  CHECK_THAT(close.toString(), Catch::Contains("1 of 3 elements differ, most at (2): 3, expected 4"));
}

TEST_CASE("gradcheck finds a wrong gradient, and gradgradcheck a wrong second one", "[testing]") {
  Tensor x = K::constant({0.5, 0.75, -20.0}, "float64");
  CHECK(gradcheck([](const Tensors& in) { return K::exp(in[0]); }, {x}));
  CHECK(gradgradcheck([](const Tensors& in) { return K::exp(in[0]); }, {x}));
  // x * stop(x) has the value of x^2 and half its gradient; (x^2 - stop(x)^2) stop(x) + ... only a wrong second one.
  auto half = [](const Tensors& in) { return in[0] * K::stop_gradient(in[0]); };
  Comparison c = gradcheck(half, {x});
  CHECK_FALSE(c);
  CHECK(c.count == 3);
  CHECK(c.where == 2);
  CHECK(c.message.find("input 0: 3 of 3 elements differ, most at (2): gradient ") == 0);
  auto linear = [](const Tensors& in) {  // the value and gradient of x^2, but a gradient that is a constant
    Tensor s = K::stop_gradient(in[0]);
    return 2.0 * s * in[0] - s * s;
  };
  CHECK(gradgradcheck([](const Tensors& in) { return K::square(in[0]); }, {x}));
  CHECK(gradgradcheck(linear, {x}).message.find("second order: input 0: ") == 0);
}

TEST_CASE("gradcheck says that it weighs results, and does not weigh a loss", "[testing]") {
  const Tensor x = K::constant({3}, "float64");
  // 2 x * stop(x) has the gradient 2 x, and differences of 4 x.
  auto loss = [](const Tensors& in) { return K::sum(2.0 * in[0] * K::stop_gradient(in[0])); };
  CHECK(gradcheck(loss, {x}).message.find("gradient 6, central difference 1") != std::string::npos);
  CHECK(gradcheck(loss, {x}).message.find("random") == std::string::npos);
  auto two = [](const Tensors& in) { return K::concatenate({in[0] * K::stop_gradient(in[0]), in[0]}); };
  CHECK(gradcheck(two, {x}).message.find("each times a fixed random number") != std::string::npos);
  CHECK(gradcheck(two, {x}).report.find("each times a fixed random number") != std::string::npos);
  CHECK(gradcheck(two, {x}).message == gradcheck(two, {x}).message);
}

TEST_CASE("gradcheck sees faults that cancel between outputs, and between elements", "[testing]") {
  Tensor x = K::constant({0.5, 0.75, -2.0}, "float64");
  // Each output has the value of x; the gradients are 1 + 1 and 1 - 1, whose sum is right.
  auto outputs = [](const Tensors& in) {
    Tensor none = in[0] - K::stop_gradient(in[0]);
    return Tensors{in[0] + none, in[0] - none};
  };
  CHECK_FALSE(gradcheck(outputs, {x}));
  CHECK(gradcheck([&](const Tensors& in) { return Tensors{in[0], in[0]}; }, {x}));
  // d y[i] / d x[j] is moved from one element to the next: all columns of the Jacobian keep their sums.
  auto elements = [](const Tensors& in) {
    Tensor none = in[0] - K::stop_gradient(in[0]);
    return Tensors{in[0] - none + K::concatenate({none(slice(1, None)), none(slice(None, 1))}, 0)};
  };
  CHECK_FALSE(gradcheck(elements, {x}));
  // A second gradient that is wrong in two outputs alike, with opposite signs: 2 x^2 against the square's 0 and 2.
  auto second = [](const Tensors& in) {
    Tensor s = K::stop_gradient(in[0]), bent = K::square(in[0]) - (2.0 * s * in[0] - s * s);
    return Tensors{K::square(in[0]) + bent, K::square(in[0]) - bent};
  };
  CHECK(gradcheck(second, {x}));
  CHECK_FALSE(gradgradcheck(second, {x}));
}

TEST_CASE("an updated golden file leaves nothing behind of what came before", "[testing]") {
  Folder folder;
  std::string where = folder / "golden";
  Tensor x = K::constant({1, 2});
  Environment elsewhere("KASSETTE_GOLDEN_DIR", "/nowhere");  // the option goes before it
  for (const char* update : {"1", "yes"}) {
    {
      Environment as_usual("KASSETTE_UPDATE_GOLDEN", "1");
      CHECK(compare_golden("a", x, {.folder = where}));
      CHECK(compare_golden("b", NamedTensors{{"x", x}}, {.folder = where}));
    }
    Environment as_usual("KASSETTE_UPDATE_GOLDEN", "0");
    CHECK_FALSE(compare_golden("a", x + 1, {.folder = where}));
    CHECK_FALSE(compare_golden("b", NamedTensors{{"x", x + 1}}, {.folder = where}));
    CHECK(std::filesystem::exists(where + "/a.actual.npy"));
    CHECK(std::filesystem::exists(where + "/b.actual.npz"));
    CHECK(compare(load_npz(where + "/b.actual.npz")["x"], x + 1));
    Environment taken("KASSETTE_UPDATE_GOLDEN", update);
    CHECK(compare_golden("a", x + 1, {.folder = where}));
    CHECK(compare_golden("b", NamedTensors{{"x", x + 1}}, {.folder = where}));
    CHECK_FALSE(std::filesystem::exists(where + "/a.actual.npy"));
    CHECK_FALSE(std::filesystem::exists(where + "/b.actual.npz"));
    CHECK(compare(load_npy(where + "/a.npy"), x + 1));
  }
}

TEST_CASE("columns are compared up to their signs and their order if that is asked for", "[testing]") {
  const Tensor v = K::constant({{1, 2, 3}, {4, 5, 6}}, float64),
               flipped = K::constant({{-1, 2, -3}, {-4, 5, -6}}, float64),
               mixed = K::constant({{-3, 1, 2}, {-6, 4, 5}}, float64),
               half = K::constant({{-1, 2, 3}, {4, 5, 6}}, float64);
  CHECK(!compare(flipped, v));
  CHECK(compare(flipped, v, {.any_sign = true}));
  CHECK(!compare(flipped, v, {.any_order = true}));
  CHECK(!compare(mixed, v, {.any_sign = true}));
  CHECK(compare(mixed, v, {.any_sign = true, .any_order = true}));
  CHECK(!compare(half, v, {.any_sign = true, .any_order = true}));  // a part of a column
  CHECK(compare(half, v, {.any_sign = true}).count == 1);
  CHECK(!compare(K::constant({{1, 1, 2}, {4, 4, 5}}, float64), v, {.any_order = true}));  // one of them twice
  // Batches, vectors, nothing, NaN; exact where nothing is exchanged.
  CHECK(compare(K::stack({flipped, v}), K::stack({v, v}), {.any_sign = true}));
  CHECK(compare(K::constant({-1, -2}, float64), {1, 2}, {.any_sign = true}));
  CHECK(!compare(K::constant({-1, 2}, float64), {1, 2}, {.any_sign = true}));
  CHECK(compare(K::constant({2, 1}, float32), {1, 2}, {.rtol = 0, .atol = 0, .any_order = true}));
  CHECK(compare(K::zeros({0, 3}), K::zeros({0, 3}), {.any_sign = true, .any_order = true}));
  // Integers, those beside others that float64 does not tell apart too.
  CHECK(compare(K::constant({3, 1, 2}, int32), K::constant({1, 2, 3}, int32), {.any_order = true}));
  CHECK(compare(K::constant({-1, 2}, int64), K::constant({1, -2}, int64), {.any_sign = true}));
  CHECK(!compare(K::constant({-1, 2}, int64), K::constant({1, 2}, int64), {.any_sign = true}));
  CHECK(!compare(K::constant({true, true}, bool_), K::constant({true, false}, bool_), {.any_order = true}));
  const Tensor large = K::constant(std::vector<std::int64_t>{9007199254740993, 5}, int64),
               other = K::constant(std::vector<std::int64_t>{5, 9007199254740992}, int64);
  CHECK(compare(large, other, {.any_order = true}).count == 1);
  CHECK(compare(K::constant({double(NAN), 1.0}), K::constant({1.0, double(NAN)}), {.any_order = true}));
  // A symmetric matrix by two methods.
  testing::Random random(3);
  const Tensor q = testing::random_orthogonal(6);
  const Tensor a = np::matmul(q * K::constant({1, 2, 3, 4, 5, 6}, float64), np::transpose(q));
  const auto [w, vectors] = np::linalg::eigh(a);
  const auto [u, s, vh] = np::linalg::svd(a);
  testing::assert_close(s, w, {.rtol = 1e-10, .any_order = true});
  testing::assert_close(u, vectors, {.rtol = 1e-8, .atol = 1e-10, .any_sign = true, .any_order = true});
  auto eigen = [](const Tensors& x) -> Tensors {
    const auto found = np::linalg::eigh((x[0] + np::matrix_transpose(x[0])) / 2);
    return {found.eigenvalues, found.eigenvectors};
  };
  CHECK(gradcheck(eigen, {a}));
  CHECK(gradgradcheck(eigen, {a}));
}
