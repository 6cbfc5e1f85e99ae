// tests/nn_backend/ctc_test.cpp - the CTC loss: against an enumeration of all alignments, TensorFlow, PyTorch, central
// differences.
#include <kassette/error.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <random>

#include "tests/catch.h"
#include "tests/nn_backend/keras_cases.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using Ints = std::vector<int>;

namespace {

Tensor column(const Ints& v) { return K::constant(v, int32, {static_cast<std::int64_t>(v.size()), 1}); }
/// Numbers in [low, 1), the same every time.
std::vector<double> uniform(std::int64_t n, double low, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::vector<double> v(static_cast<std::size_t>(n));
  for (double& x : v) x = low + (1 - low) * (static_cast<double>(generator() >> 8) + 0.5) * 0x1p-24;
  return v;
}
double cost_of(const Ints& label, const Tensor& y, int steps) {
  Tensor ids = K::constant(label, int32, {1, static_cast<std::int64_t>(label.size())});
  return K::ctc_batch_cost(ids, y, column({steps}), column({static_cast<int>(label.size())})).item<double>();
}

/// The label of an alignment: repeats are merged, then blanks dropped.
Ints read(const Ints& path, int blank) {
  Ints label;
  for (std::size_t t = 0; t < path.size(); ++t)
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) label.push_back(path[t]);
  return label;
}
/// Calls f(alignment) for all of `steps` steps in `classes` classes.
template <class F>
void for_each_path(int steps, int classes, F&& f) {
  Ints path(static_cast<std::size_t>(steps));
  for (;;) {
    f(path);
    std::size_t t = 0;
    while (t < path.size() && ++path[t] == classes) path[t++] = 0;
    if (t == path.size()) return;
  }
}
/// -log of the sum of the probabilities of all alignments of `label`, y (1, steps, classes).
long double by_enumeration(const Ints& label, const Tensor& y, int steps, int classes) {
  auto v = y.to_vector<double>();
  auto at = [&](int t, int k) {
    return static_cast<long double>(v[static_cast<std::size_t>(t * classes + k)]) + 1e-7L;
  };
  long double total = 0, scale = 1;
  for (int t = 0; t < steps; ++t) {
    long double sum = 0;
    for (int k = 0; k < classes; ++k) sum += at(t, k);
    scale *= sum;
  }
  for_each_path(steps, classes, [&](const Ints& path) {
    if (read(path, classes - 1) != label) return;
    long double p = 1;
    for (int t = 0; t < steps; ++t) p *= at(t, path[static_cast<std::size_t>(t)]);
    total += p;
  });
  return -std::log(total / scale);
}

std::string error_of(const Tensor& labels, const Tensor& y, const Tensor& steps, const Tensor& lengths) {
  std::string said[2];
  try {
    K::ctc_batch_cost(labels, y, steps, lengths);
  } catch (const ValueError& e) {
    said[0] = e.what();
  }
  Tensor in[4] = {labels, y, steps, lengths}, holders[4];
  for (int i = 0; i < 4; ++i) holders[i] = K::placeholder(None, K::None, in[i].dtype());
  try {
    K::function({holders[0], holders[1], holders[2], holders[3]},
                {K::ctc_batch_cost(holders[0], holders[1], holders[2], holders[3])})({labels, y, steps, lengths});
  } catch (const ValueError& e) {
    said[1] = e.what();
  }
  CHECK(said[0] == said[1]);
  return said[0];
}

const std::vector<KerasCase>& ctc_cases() {
  static const std::vector<KerasCase> all = [] {
    std::vector<KerasCase> cases;
    std::ifstream in(kSourceTree / "tests/data/ctc_cases.txt");
    for (std::string line; std::getline(in, line);)
      if (!line.empty() && line[0] != '#') cases.push_back(parse_case(line));
    return cases;
  }();
  return all;
}

}  // namespace

TEST_CASE("ctc_batch_cost gives what Keras' own test of it expects", "[ctc]") {
  Tensor y = K::constant({{{.633766, .221185, .0917319, .0129757, .0142857, .0260553},
                           {.111121, .588392, .278779, .0055756, .00569609, .010436},
                           {.0357786, .633813, .321418, .00249248, .00272882, .0037688},
                           {.0663296, .643849, .280111, .00283995, .0035545, .00331533},
                           {.458235, .396634, .123377, .00648837, .00903441, .00623107}},
                          {{.30176, .28562, .0831517, .0862751, .0816851, .161508},
                           {.24082, .397533, .0557226, .0546814, .0557528, .19549},
                           {.230246, .450868, .0389607, .038309, .0391602, .202456},
                           {.280884, .429522, .0326593, .0339046, .0326856, .190345},
                           {.423286, .315517, .0338439, .0393744, .0339315, .154046}}});
  Tensor labels = K::constant({{0, 1, 2, 1, 0}, {0, 1, 1, 0, -1}}, int32);
  Tensor cost = K::ctc_batch_cost(labels, y, column({5, 5}), column({5, 4}));
  CHECK(testing::compare(cost, K::constant({{3.3421146}, {5.4226232}}), {.rtol = 1e-6, .atol = 1e-6}).message == "");
  CHECK(K::int_shape(cost) == Shape{2, 1});
  CHECK(cost_of({0, 1, 2, 1, 0}, y(kassette::slice(0, 1)), 5) == Approx(3.3421146).epsilon(1e-6));
}

TEST_CASE("ctc_batch_cost is what TensorFlow and PyTorch give, gradients too", "[ctc]") {
  int compared = 0;
  for (const KerasCase& c : ctc_cases()) {
    if (c.function != "ctc_batch_cost") continue;
    ++compared;
    INFO(c.line.substr(0, 60));
    Tensor y = K::variable(c.in[1].value(), c.in[1].dtype);
    Tensor cost = K::ctc_batch_cost(c.in[0].value(), y, c.in[2].value(), c.in[3].value());
    bool torch = y.dtype() == float64;
    CHECK(testing::compare(cost, c.out.value(), {.rtol = torch ? 1e-11 : 3e-6, .atol = torch ? 1e-11 : 2e-6}).message ==
          "");
    Tensor g = K::gradients(K::sum(cost), {y})[0], wanted = c.gradients[0].value();
    // The gradient divides by scores, of which some are 1e-7 here: what counts is its size beside that. TensorFlow's
    // float32 logarithms of 100 are good to 1e-5, and so are the shares that it makes of them.
    Tensor weight = y + 1e-7;
    CHECK(testing::compare(g * weight, wanted * weight, {.rtol = torch ? 1e-9 : 1e-4, .atol = torch ? 1e-10 : 1e-5})
              .message == "");
  }
  CHECK(compared > 25);
}

TEST_CASE("ctc_batch_cost is the sum over all alignments, for every label of up to four of two and three classes",
          "[ctc]") {
  for (int classes : {2, 3, 4})
    for (int steps : {1, 2, 3, 5, 6}) {
      if (classes == 4 && steps == 6) continue;
      Tensor y = K::constant(uniform(steps * classes, 0.01, 7), float64, {1, steps, classes});
      for (int length = 0; length <= std::min(4, steps); ++length) {
        auto check = [&](const Ints& label) {
          long double wanted = by_enumeration(label, y, steps, classes);
          double got = cost_of(label, y, steps);
          if (!(std::isinf(got) && std::isinf(wanted)) &&
              !(std::fabs(got - static_cast<double>(wanted)) < 1e-12 * (1 + std::fabs(got))))
            FAIL_CHECK(classes << " classes, " << steps << " steps, " << length << " labels: " << got << ", expected "
                               << wanted);
        };
        if (length == 0) check({});
        else for_each_path(length, classes - 1, check);
      }
    }
}

TEST_CASE("ctc_batch_cost of an impossible label is inf, and its gradient pulls nothing", "[ctc]") {
  Tensor y = K::variable(K::constant(uniform(2 * 3 * 4, 0.1), float64, {2, 3, 4}), float64);
  Tensor cost = K::ctc_batch_cost(K::constant({{1, 1}, {1, 1}}, int32), y, column({2, 3}), column({2, 2}));
  CHECK(std::isinf(cost.to_vector<double>()[0]));
  CHECK(std::isfinite(cost.to_vector<double>()[1]));
  Tensor g = K::gradients(K::sum(cost), {y})[0], sums = 1.0 / K::sum(y + 1e-7, 2, true);
  Tensor wanted = K::concatenate(
      {K::repeat_elements(sums(kassette::slice(0, 1), kassette::slice(0, 2)), 4, 2), K::zeros({1, 1, 4}, float64)}, 1);
  CHECK(testing::compare(g(kassette::slice(0, 1)), wanted).message == "");
}

TEST_CASE("ctc_batch_cost of an empty label is that of blanks alone, of no time steps 0", "[ctc]") {
  Tensor y = K::constant(uniform(2 * 3 * 4, 0.1), float64, {2, 3, 4});
  Tensor cost = K::ctc_batch_cost(K::constant({{7, -1}, {-1, -1}}, int32), y, column({2, 0}), column({0, 0}));
  Tensor q = (y + 1e-7) / K::sum(y + 1e-7, 2, true), wanted = -K::sum(K::log(q(0, kassette::slice(0, 2), 3)));
  CHECK(cost.to_vector<double>()[0] == Approx(wanted.item<double>()).epsilon(1e-13));
  CHECK(cost.to_vector<double>()[1] == 0);
  // A label of none but the blank's class is empty too.
  CHECK(cost_of({3, 3}, y(kassette::slice(0, 1)), 2) == Approx(wanted.item<double>()).epsilon(1e-13));
}

TEST_CASE("ctc_batch_cost is exact where linear space has no numbers for it", "[ctc]") {
  // One class is certain at each step, and the label needs others: 1e-7 each, which is 1e-420 for sixty labels.
  for (int length : {3, 20, 45, 60}) {
    const int steps = 2 * length + 5;
    std::vector<double> v(static_cast<std::size_t>(steps * 4));
    for (int t = 0; t < steps; ++t) v[static_cast<std::size_t>(t * 4 + 3)] = 1;
    Tensor y = K::constant(v, float64, {1, steps, 4});
    Ints label;
    for (int i = 0; i < length; ++i) label.push_back(i % 3);
    // Alignments have k >= length steps with labels, the rest blanks; with k = length they are binomial(steps, length)
    // many.
    double rare = 1e-7 / (1 + 4e-7), sure = (1 + 1e-7) / (1 + 4e-7), ways = 0;
    for (int i = 0; i < length; ++i) ways += std::log(static_cast<double>(steps - i) / (i + 1));
    double wanted = -(ways + length * std::log(rare) + (steps - length) * std::log(sure));
    CHECK(cost_of(label, y, steps) == Approx(wanted).epsilon(1e-6));
    Tensor x = K::variable(y, float64);
    Tensor ids = K::constant(label, int32, {1, length});
    Tensor g = K::gradients(K::ctc_batch_cost(ids, x, column({steps}), column({length})), {x})[0];
    // At each step the shares of all classes are those of one alignment: they sum to 1, as q does.
    Tensor sums = K::sum(g * (y + 1e-7), 2);
    CHECK(testing::compare(sums, K::zeros({1, steps}, float64), {.rtol = 0, .atol = 1e-10}).message == "");
  }
}

TEST_CASE("ctc_batch_cost of ten thousand steps adds up no errors", "[ctc]") {
  const int steps = 10000, classes = 5, length = 50;
  Tensor y = K::constant(uniform(steps * classes, 0.01, 3), float64, {1, steps, classes});
  Ints label;
  for (int i = 0; i < length; ++i) label.push_back(i * i % 4);
  // The same recursion in long double, scaled at each step.
  auto v = y.to_vector<double>();
  std::vector<long double> alpha(2 * length + 1), next;
  long double log_scale = 0;
  for (int t = 0; t < steps; ++t) {
    long double sum = 0, total = 0;
    auto z = [&](int k) { return static_cast<long double>(v[static_cast<std::size_t>(t * classes + k)]) + 1e-7L; };
    for (int k = 0; k < classes; ++k) sum += z(k);
    next.assign(alpha.size(), 0);
    for (std::size_t u = 0; u < alpha.size(); ++u) {
      int k = u % 2 ? label[u / 2] : classes - 1;
      long double a =
          t == 0 ? (u < 2 ? 1 : 0)
                 : alpha[u] + (u > 0 ? alpha[u - 1] : 0) + (u % 2 && u > 2 && k != label[u / 2 - 1] ? alpha[u - 2] : 0);
      next[u] = a * z(k) / sum;
      total += next[u];
    }
    for (auto& a : next) a /= total;
    log_scale += std::log(total);
    alpha = next;
  }
  double wanted = static_cast<double>(-(log_scale + std::log(alpha[2 * length] + alpha[2 * length - 1])));
  CHECK(cost_of(label, y, steps) == Approx(wanted).epsilon(1e-13));
  CHECK(cost_of(label, K::cast(y, float32), steps) == Approx(wanted).epsilon(1e-6));
}

TEST_CASE("ctc_batch_cost has the same bits for any number of threads", "[ctc]") {
  const int n = 37, steps = 60, classes = 9;
  Tensor y = K::variable(K::constant(uniform(n * steps * classes, 0, 5), float32, {n, steps, classes}));
  Ints ids, lengths, available;
  for (int i = 0; i < n; ++i) {
    lengths.push_back(i % 13);
    available.push_back(steps - i % 7);
    for (int k = 0; k < 12; ++k) ids.push_back((i * 5 + k * k) % 8);
  }
  Tensor labels = K::constant(ids, int32, {n, 12});
  auto results = [&](int threads) {
    set_num_threads(threads);
    Tensor cost = K::ctc_batch_cost(labels, y, column(available), column(lengths));
    Tensor g = K::gradients(cost, {y})[0];
    return Tensors{K::eval(cost), g};
  };
  test::SettingsScope restore;
  Tensors one = results(1), three = results(3);
  for (int i = 0; i < 2; ++i) CHECK(testing::compare(one[i], three[i], {.rtol = 0, .atol = 0}).message == "");
}

TEST_CASE("ctc_batch_cost runs on placeholders of unknown sizes, as often as one likes", "[ctc]") {
  Tensor labels = K::placeholder({None, None}, None, float32), y = K::placeholder({None, None, 4}),
         steps = K::placeholder({None, 1}, None, int64), lengths = K::placeholder({None, 1}, None, int32);
  Tensor cost = K::ctc_batch_cost(labels, y, steps, lengths);
  CHECK(K::int_shape(cost) == Shape{-1, 1});
  Function f = K::function({labels, y, steps, lengths}, {cost, K::gradients(cost, {y})[0]});
  for (int n : {1, 3}) {
    Tensor ids = K::constant(std::vector<float>(static_cast<std::size_t>(2 * n), 1), float32, {n, 2}),
           in = K::variable(K::constant(uniform(n * 5 * 4, 0.1), float32, {n, 5, 4}));
    Tensor available = K::cast(column(Ints(static_cast<std::size_t>(n), 5)), int64),
           counts = column(Ints(static_cast<std::size_t>(n), 2));
    Tensors out = f({ids, in, available, counts});
    Tensor eager = K::ctc_batch_cost(ids, in, available, counts);
    CHECK(testing::compare(out[0], eager, {.rtol = 0, .atol = 0}).message == "");
    CHECK(testing::compare(out[1], K::gradients(eager, {in})[0], {.rtol = 0, .atol = 0}).message == "");
  }
}

TEST_CASE("ctc_batch_cost says what does not fit, at once and at replay", "[ctc]") {
  Tensor y = K::constant(uniform(2 * 5 * 4, 0.1), float32, {2, 5, 4}),
         labels = K::constant({{0, 1, 2}, {1, 1, 0}}, int32);
  Tensor steps = column({5, 5}), lengths = column({3, 2});
  CHECK(error_of(labels, y, column({5, 6}), lengths) ==
        "ctc_batch_cost: input_length 6 of sample 1; it must be 0 to 5, the time steps of y_pred");
  CHECK(error_of(labels, y, column({-1, 5}), lengths) ==
        "ctc_batch_cost: input_length -1 of sample 0; it must be 0 to 5, the time steps of y_pred");
  CHECK(error_of(labels, y, column({2, 5}), lengths) ==
        "ctc_batch_cost: the 3 labels of sample 0 need as many time steps, and its input_length is 2");
  CHECK(error_of(labels, y, steps, column({3, -2})) == "ctc_batch_cost: label_length -2 of sample 1 is negative");
  CHECK(
      error_of(K::constant({{0, 1, 2}, {1, -1, 0}}, int32), y, steps, lengths) ==
      "ctc_batch_cost: y_true has label -1 at position 1 of sample 1, within its label_length of 2; labels must not be negative");
  CHECK(
      error_of(K::constant({{0, 7, 2}, {1, 1, 0}}, int32), y, steps, lengths) ==
      "ctc_batch_cost: y_true has label 2 at position 2 of sample 0 after 7, which ends the label: y_pred has 3 classes and the blank");
  CHECK(error_of(labels, y, steps, column({3, 2, 1})) ==
        "ctc_batch_cost: input_length (2, 1) has 2 samples, label_length (3, 1) has 3");
  CHECK(error_of(labels, y, K::constant({{5, 5}, {5, 5}}, int32), lengths) ==
        "ctc_batch_cost: input_length has shape (2, 2); it must be (samples, 1)");
  CHECK(error_of(labels, K::zeros({2, 5, 0}), steps, lengths) ==
        "ctc_batch_cost: y_pred of shape (2, 5, 0) has no classes; there must be at least one, the blank");
}

TEST_CASE("the gradient of ctc_batch_cost can be taken twice, and says so the third time", "[ctc]") {
  Tensor y = K::variable(K::constant(uniform(1 * 4 * 3, 0.2), float64, {1, 4, 3}), float64);
  Tensor cost = K::ctc_batch_cost(K::constant({{0, 0}}, int32), y, column({4}), column({2}));
  Tensor first = K::gradients(cost, {y})[0], second = K::gradients(K::sum(first * first), {y})[0];
  CHECK_THROWS_WITH(K::gradients(K::sum(second * second), {y}),
                    "ctc_batch_cost: its gradient can be taken twice, not three times");
}

TEST_CASE("ctc_label_dense_to_sparse keeps the labels within their lengths, in rows", "[ctc]") {
  Tensor sparse = K::ctc_label_dense_to_sparse(K::constant({{1, 2, 3}, {4, 5, 6}}, int32), K::constant({2, 1}, int32));
  auto [indices, values, shape] = K::sparse_parts(sparse);
  CHECK(testing::compare(indices, K::constant({{0, 0}, {0, 1}, {1, 0}}, int64)).message == "");
  CHECK(testing::compare(values, K::constant({1, 2, 4}, int32)).message == "");
  CHECK(testing::compare(shape, K::constant({2, 3}, int64)).message == "");
  auto [all, same, wide] =
      K::sparse_parts(K::ctc_label_dense_to_sparse(K::constant({{0, 2}, {4, 5}}), K::constant({9, 0})));
  CHECK(testing::compare(same, K::constant({0., 2.})).message == "");  // a label of 0 is one
  CHECK_THROWS_WITH(K::ctc_label_dense_to_sparse(K::zeros({2, 3}), K::zeros({3})),
                    "ctc_label_dense_to_sparse: labels (2, 3) and 3 label_lengths; there must be one for each sample");
}
