// tests/nn_backend/ctc_decode_test.cpp - reading labels from scores: against TensorFlow, and against an enumeration of
// all labels.
#include <kassette/error.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <algorithm>
#include <map>
#include <random>
#include <sstream>

#include "tests/catch.h"
#include "tests/nn_backend/keras_cases.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using Ints = std::vector<std::int64_t>;

namespace {

Tensor scores(std::int64_t n, std::int64_t steps, std::int64_t classes, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::vector<double> v(static_cast<std::size_t>(n * steps * classes));
  for (double& x : v) x = 0.02 + static_cast<double>(generator() >> 8) * 0x1p-24;
  return K::constant(v, float64, {n, steps, classes});
}

/// All labels with the sum of the probabilities of their alignments, most probable first; y (1, steps, classes).
std::vector<std::pair<double, Ints>> all_labels(const Tensor& y, int steps, int classes) {
  auto v = y.to_vector<double>();
  std::map<Ints, long double> found;
  std::vector<int> path(static_cast<std::size_t>(steps));
  for (bool more = true; more;) {
    long double p = 1;
    Ints label;
    for (std::size_t t = 0; t < path.size(); ++t) {
      long double sum = 0;
      for (int k = 0; k < classes; ++k)
        sum += static_cast<long double>(v[t * static_cast<std::size_t>(classes) + static_cast<std::size_t>(k)]) + 1e-7L;
      p *= (static_cast<long double>(v[t * static_cast<std::size_t>(classes) + static_cast<std::size_t>(path[t])]) +
            1e-7L) /
           sum;
      if (path[t] != classes - 1 && (t == 0 || path[t] != path[t - 1])) label.push_back(path[t]);
    }
    found[label] += p;
    std::size_t t = 0;
    while (t < path.size() && ++path[t] == classes) path[t++] = 0;
    more = t < path.size();
  }
  std::vector<std::pair<double, Ints>> out;
  for (const auto& [label, p] : found) out.push_back({static_cast<double>(std::log(p)), label});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  return out;
}

}  // namespace

TEST_CASE("ctc_decode gives what Keras' own tests of it expect", "[ctc]") {
  Tensor y =
      K::constant({{{1, 0, 0, 0}, {0, 0, .4, .6}, {0, 0, .4, .6}, {0, .9, .1, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}},
                   {{.1, .9, 0, 0}, {0, .9, .1, 0}, {0, 0, .1, .9}, {0, .9, .1, .1}, {.9, .1, 0, 0}, {0, 0, 0, 0}}});
  auto [decoded, score] = K::ctc_decode(y, K::variable({4, 5}));  // lengths as floats
  REQUIRE(decoded.size() == 1);
  CHECK(testing::compare(decoded[0], K::constant({{0, 1, -1}, {1, 1, 0}}, int64)).message == "");
  CHECK(testing::compare(score, K::constant({{1.12701}, {.52680}}), {.rtol = 0, .atol = 1e-5}).message == "");

  Tensor m = K::constant({{{.30999, .309938, .0679938, .0673362, .0708352, .173908},
                           {.215136, .439699, .0370931, .0393967, .0381581, .230517},
                           {.199959, .489485, .0233221, .0251417, .0233289, .238763},
                           {.279611, .452966, .0204795, .0209126, .0194803, .20655},
                           {.51286, .288951, .0243026, .0220788, .0219297, .129878},
                           {.2, .2, .2, .2, .2, .2},
                           {.2, .2, .2, .2, .2, .2}}});
  auto [paths, log_prob] = K::ctc_decode(K::exp(m + 2.0), K::constant({5}, int32), false, 2, 2);
  CHECK(testing::compare(paths[0], K::constant({{1, 0}}, int64)).message == "");
  CHECK(testing::compare(paths[1], K::constant({{1}}, int64)).message == "");
  CHECK(testing::compare(log_prob, K::constant({{-5.811451, -6.63339}}), {.rtol = 0, .atol = 1e-5}).message == "");

  Tensor one_hot = K::one_hot(K::constant({{2, 0, 2, 0, 1, 2, 1}}, int32), 3);
  Tensor in = K::placeholder(None, K::None), steps = K::placeholder(None, K::None, int64);
  for (bool merge : {false, true}) {
    auto [path, score_of] = K::ctc_decode(in, steps, false, 1, 1, merge);
    Tensors out = K::function({in, steps}, {path[0], score_of})({one_hot, K::constant({7}, int64)});
    CHECK(testing::compare(out[0], merge ? K::constant({{0, 1}}, int64) : K::constant({{0, 0, 1, 1}}, int64)).message ==
          "");
    CHECK(out[1].item<double>() == Approx(-1.4e-6).margin(3e-7));
  }
}

TEST_CASE("ctc_decode is what TensorFlow gives, greedy and by beam search", "[ctc]") {
  int compared = 0;
  std::ifstream file(kSourceTree / "tests/data/ctc_cases.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("ctc_decode", 0) != 0) continue;
    KerasCase c = parse_case(line);
    ++compared;
    INFO(line.substr(line.rfind(']', line.find("->"))));
    auto [decoded, score] =
        K::ctc_decode(c.in[0].value(), c.in[1].value(), c.integer("greedy", 1) != 0, c.integer("beam_width", 100),
                      c.integer("top_paths", 1), c.integer("merge_repeated", 0) != 0);
    CHECK(testing::compare(score, c.out.value(), {.rtol = 1e-5, .atol = 2e-5}).message == "");
    REQUIRE(decoded.size() == static_cast<std::int64_t>(c.gradients.size()));
    for (std::int64_t i = 0; i < decoded.size(); ++i)
      CHECK(testing::compare(decoded[i], c.gradients[static_cast<std::size_t>(i)].value()).message == "");
  }
  CHECK(compared > 25);
}

TEST_CASE("a beam as wide as there are labels finds all of them, with the probabilities of all their alignments",
          "[ctc]") {
  for (int classes : {2, 3, 4})
    for (int steps : {1, 2, 4, 5}) {
      Tensor y = scores(1, steps, classes, static_cast<unsigned>(steps));
      auto wanted = all_labels(y, steps, classes);
      int count = static_cast<int>(wanted.size());
      auto [decoded, score] = K::ctc_decode(y, K::constant({steps}, int32), false, count + 3, count);
      auto got = score.to_vector<double>();
      for (int i = 0; i < count; ++i) {
        const auto& [log_p, label] = wanted[static_cast<std::size_t>(i)];
        const Ints read = decoded[i].to_vector<std::int64_t>();
        if (read != label || std::fabs(got[static_cast<std::size_t>(i)] - log_p) > 1e-12)
          FAIL_CHECK(classes << " classes, " << steps << " steps, label " << i << ": " << decoded[i] << " "
                             << got[static_cast<std::size_t>(i)] << ", expected " << log_p);
      }
    }
}

TEST_CASE("a path of the beam never has more than the probability of its label, which is that of ctc_batch_cost",
          "[ctc]") {
  const int n = 5, steps = 30, classes = 6;
  Tensor y = scores(n, steps, classes, 9), available = K::constant(std::vector<int>(n, steps), int32);
  auto cost_of = [&](const Tensor& label) {
    Tensor length = K::sum(K::cast(K::greater_equal(label, 0), int32), 1, true);
    return K::flatten(K::ctc_batch_cost(label, y, K::expand_dims(available), length));
  };
  auto [narrow, few] = K::ctc_decode(y, available, false, 3, 1);
  auto [wide, many] = K::ctc_decode(y, available, false, 2000, 1);
  CHECK(K::eval(K::all(K::less_equal(K::flatten(few), -cost_of(narrow[0]) + 1e-12))).item<bool>());
  CHECK(K::eval(K::all(K::less_equal(K::flatten(few), K::flatten(many)))).item<bool>());
  CHECK(K::eval(K::all(K::less_equal(K::flatten(many), -cost_of(wide[0]) + 1e-12))).item<bool>());
}

TEST_CASE("ctc_decode has the same result for any number of threads, and one of width 0 where there is nothing",
          "[ctc]") {
  Tensor y = scores(9, 20, 7, 4), steps = K::constant({20, 3, 0, 7, 20, 20, 1, 9, 15}, int32);
  test::SettingsScope restore;
  set_num_threads(1);
  auto [one, one_score] = K::ctc_decode(y, steps, false, 10, 1);
  set_num_threads(3);
  auto [three, three_score] = K::ctc_decode(y, steps, false, 10, 1);
  CHECK(testing::compare(one[0], three[0]).message == "");
  CHECK(testing::compare(one_score, three_score, {.rtol = 0, .atol = 0}).message == "");
  for (bool greedy : {true, false}) {
    auto [nothing, score] = K::ctc_decode(scores(2, 3, 1), K::constant({3, 2}, int32), greedy, 4);
    CHECK(nothing[0].shape() == Shape{2, 0});
    if (!greedy) CHECK(testing::compare(score, K::zeros({2, 1}, float64)).message == "");
  }
}

TEST_CASE("ctc_decode says what does not fit", "[ctc]") {
  Tensor y = scores(2, 5, 4), steps = K::constant({5, 5}, int32);
  CHECK_THROWS_WITH(K::ctc_decode(y, K::constant({6, 5}, int32)),
                    "ctc_decode: input_length 6 of sample 0; it must be 0 to 5, the time steps of y_pred");
  CHECK_THROWS_WITH(K::ctc_decode(y, K::constant({5, -1}, int32), false),
                    "ctc_decode: input_length -1 of sample 1; it must be 0 to 5, the time steps of y_pred");
  CHECK_THROWS_WITH(K::ctc_decode(y, K::constant({5}, int32)),
                    "ctc_decode: y_pred (2, 5, 4) has 2 samples, input_length (1,) has 1");
  CHECK_THROWS_WITH(K::ctc_decode(y, K::constant({{5}, {5}}, int32)),
                    "ctc_decode: input_length of shape (2, 1); the rank must be 1: (samples,)");
  CHECK_THROWS_WITH(K::ctc_decode(K::zeros({2, 0, 4}), steps),
                    "ctc_decode: y_pred of shape (2, 0, 4) has no time steps");
  CHECK_THROWS_WITH(K::ctc_decode(y, steps, false, 3, 4),
                    "ctc_decode: top_paths is 4; it must be between 1 and beam_width, 3");
  CHECK_THROWS_WITH(K::ctc_decode(y, steps, false, 0), "ctc_decode: beam_width is 0; it must be at least 1");
  CHECK_THROWS_WITH(K::ctc_decode(y, K::constant({5, 0}, int32), false, 9, 2),
                    "ctc_decode: top_paths is 2, and the beam of sample 1 ends with 1 label");
  CHECK_THROWS_WITH(K::ctc_decode(y - 1.0, steps, false),
                    "ctc_decode: y_pred of sample 0 has a score that is negative or NaN");
  CHECK_THROWS_WITH(K::ctc_decode(steps, steps),
                    "ctc_decode: y_pred is int32, not a float dtype; cast it first (K::cast)");
}

TEST_CASE("what ctc_decode gives can be printed", "[ctc]") {
  std::ostringstream os;
  os << K::ctc_decode(K::constant({{{1, 0}, {0, 1}}}), K::constant({2}, int32));
  CHECK(os.str().find("CtcDecoded(decoded=") == 0);
  CHECK(os.str().find("log_prob=") != std::string::npos);
}

TEST_CASE("the first of equal classes is read greedily, and one before the blank", "[ctc]") {
  for (DType dtype : {float32, float64}) {
    // Classes 0, 1 and the blank.
    Tensor y =
        K::constant({{{.4, .4, .2}, {.4, .4, .2}, {.2, .4, .4}, {.4, .2, .4}, {.3, .3, .4}, {.3, .3, .3}}}, dtype);
    auto [decoded, score] = K::ctc_decode(y, K::constant({6}, int32));
    CHECK(testing::compare(decoded[0], K::constant({{0, 1, 0, 0}}, int64)).message == "");
    CHECK(score.item<double>() == Approx(-(5 * std::log(.4) + std::log(.3))).epsilon(1e-5));
  }
}

TEST_CASE("of prefixes that are as probable the beam keeps and returns what came first", "[ctc]") {
  auto search = [](const Tensor& y, int steps, int width, int paths) {
    std::vector<Ints> labels;
    for (const Tensor& t : K::ctc_decode(y, K::constant({steps}, int32), false, width, paths).decoded)
      labels.push_back(t.to_vector<std::int64_t>());
    return labels;
  };
  using Labels = std::vector<Ints>;
  for (DType dtype : {float32, float64}) {
    Tensor even = K::constant(1, dtype, {1, 2, 3});
    CHECK(search(even, 1, 5, 3) == Labels{{}, {0}, {1}});  // 1/3 each: what stays, then by class
    CHECK(search(even, 1, 2, 2) == Labels{{}, {0}});
    CHECK(search(even, 1, 1, 1) == Labels{{}});
    CHECK(search(even, 2, 9, 5) == Labels{{0}, {1}, {}, {0, 1}, {1, 0}});  // 3/9, 3/9, and 1/9 each
    CHECK(search(even, 2, 2, 2) == Labels{{0}, {}});
    // After a step {} has .4, 0 and 1 have .3 each. Then {} is left with .21, [2] comes with .19, and one of the equal
    // two leaves: the later.
    Tensor y = K::constant({{{.3, .3, 0, .4}, {0, 0, .47, .53}}}, dtype);
    CHECK(search(y, 2, 3, 3) == Labels{{}, {2}, {0}});
    // The same with six equal ones, of which two leave.
    Tensor many = K::constant({{{.3, .3, .3, .3, .3, .3, 0, 0, .4}, {0, 0, 0, 0, 0, 0, .47, .46, .53}}}, dtype);
    CHECK(search(many, 2, 7, 7) == Labels{{}, {6}, {7}, {0}, {1}, {2}, {3}});
  }
}

TEST_CASE("of equal scores ctc_decode reads the first class, as np.argmax does, and of equal paths the first",
          "[ctc]") {
  // Classes 0 and 1 tie, then 1 and the blank, then all three.
  Tensor y = K::constant({{{.4, .4, .2}, {.2, .4, .4}, {.5, .25, .25}, {1 / 3., 1 / 3., 1 / 3.}}}, float64),
         steps = K::constant({4}, int32);
  for (DType dtype : {float32, float64}) {
    auto [decoded, score] = K::ctc_decode(K::cast(y, dtype), steps);
    CHECK(values<std::int64_t>(decoded[0]) == Ints{0, 1, 0});
    CHECK(testing::compare(score, K::cast(K::constant({{-std::log(.4 * .4 * .5 / 3)}}, float64), dtype), {.atol = 2e-6})
              .message == "");
  }
  // One step: the labels are the classes, and none for the blank; equals come in the order of the classes, whatever the
  // width.
  Tensor one = K::constant({{{.25, .25, .25, .1, .15}}}, float64);
  for (int width : {4, 5, 100}) {
    auto [decoded, score] = K::ctc_decode(one, K::constant({1}, int32), false, width, 4);
    CHECK(values<std::int64_t>(decoded[0]) == Ints{0});
    CHECK(values<std::int64_t>(decoded[1]) == Ints{1});
    CHECK(values<std::int64_t>(decoded[2]) == Ints{2});
    CHECK(decoded[3].shape() == Shape{1, 0});
    CHECK(testing::compare(score, K::constant({{std::log(.25), std::log(.25), std::log(.25), std::log(.15)}}, float64),
                           {.atol = 1e-6})
              .message == "");
  }
  // A beam of one keeps the shorter of two that tie, then the lower class.
  CHECK(K::ctc_decode(K::constant({{{.25, .25, .5}, {.25, .25, .5}}}, float64), K::constant({2}, int32), false, 1, 1)
            .decoded[0]
            .shape() == Shape{1, 0});
  CHECK(values<std::int64_t>(
            K::ctc_decode(K::constant({{{.4, .4, .2}}}, float64), K::constant({1}, int32), false, 1, 1).decoded[0]) ==
        Ints{0});
}
