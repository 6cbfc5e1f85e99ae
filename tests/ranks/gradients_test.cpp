// tests/ranks/gradients_test.cpp - derivatives through what the ranks exchange, against differences of the sum of all
// ranks' losses.
#include <functional>

#include "tests/ranks/ranks.h"

namespace kassette::test {
namespace {

using Op = std::function<Tensor(const Tensor&)>;

/// A loss in which every element of every rank has a weight of its own.
Tensor weighed(const Tensor& y, int rank) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < y.ndim(); ++i) dims.push_back(static_cast<std::int64_t>(y.shape()[i]));
  return K::sum(K::square(y) * smooth(rank + 10, dims) + y * smooth(rank + 20, dims));
}

double total_loss(const Op& op, const Tensor& x) {
  const D::World world;
  return D::all_reduce(weighed(op(x), world.rank())).item<double>();
}

/// The derivative of the sum of all losses by each element of each rank, by central differences: every rank evaluates
/// every loss.
void check_gradient(const char* what, const Op& op, const std::vector<std::int64_t>& dims, double tolerance = 1e-7) {
  const D::World world;
  INFO(what);
  const Tensor values = smooth(world.rank(), dims), x = variable(values);
  const std::vector<double> g = numbers(K::gradients(weighed(op(x), world.rank()), {x})[0]);
  constexpr double kStep = 1e-5;
  for (int r = 0; r < world.size(); ++r)
    for (std::int64_t i = 0; i < count(dims); ++i) {
      std::vector<double> up = numbers(values), down = up;
      if (r == world.rank()) {
        up[static_cast<std::size_t>(i)] += kStep;
        down[static_cast<std::size_t>(i)] -= kStep;
      }
      auto moved = [&](const std::vector<double>& v) { return K::reshape(K::constant(v, float64), values.shape()); };
      const double slope = (total_loss(op, moved(up)) - total_loss(op, moved(down))) / (2 * kStep);
      if (r == world.rank()) CHECK(g[static_cast<std::size_t>(i)] == Approx(slope).epsilon(tolerance).margin(1e-6));
    }
}

/// The same for the first gradient, as an op: a second derivative.
void check_second(const char* what, const Op& op, const std::vector<std::int64_t>& dims) {
  auto first = [&](const Tensor& x) {
    const D::World world;
    const Tensor at = K::is_variable(x) ? x * 1.0 : variable(x);
    return K::gradients(weighed(op(at), world.rank()), {at})[0];
  };
  check_gradient(what, first, dims, 1e-5);
}

std::vector<std::pair<const char*, Op>> ops() {
  std::vector<std::pair<const char*, Op>> list;
  for (auto [name, how] :
       {std::pair{"sum", D::sum}, {"mean", D::mean}, {"max", D::max}, {"min", D::min}, {"prod", D::prod}})
    list.push_back({name, [how = how](const Tensor& x) { return D::all_reduce(x * x, how); }});
  const int last = D::World().size() - 1;
  list.push_back({"broadcast", [last](const Tensor& x) { return D::broadcast(K::sin(x), last); }});
  list.push_back({"all_gather", [](const Tensor& x) { return D::all_gather(x * x); }});
  list.push_back({"reduce_scatter", [](const Tensor& x) { return D::reduce_scatter(x * x); }});
  list.push_back({"mean of reduce_scatter", [](const Tensor& x) { return D::reduce_scatter(x * x, D::mean); }});
  list.push_back({"max of reduce_scatter", [](const Tensor& x) { return D::reduce_scatter(x * x, D::max); }});
  list.push_back({"product of reduce_scatter", [](const Tensor& x) { return D::reduce_scatter(x * x, D::prod); }});
  list.push_back({"shard", [](const Tensor& x) { return D::shard(x * x); }});
  list.push_back({"all_to_all", [](const Tensor& x) { return D::all_to_all(x * x); }});
  return list;
}

}  // namespace

TEST_CASE("first gradients through collectives are those of finite differences", "[ranks][gradient]") {
  const D::World world;
  for (const auto& [name, op] : ops()) {
    check_gradient(name, op, {world.size(), 2});
    if (std::string(name) != "all_to_all") check_gradient(name, op, {3});
  }
  check_gradient("all_gather of a scalar", [](const Tensor& x) { return D::all_gather(x * x); }, {});
  check_gradient("all_gather of unequal rows",
                 [&](const Tensor& x) { return D::all_gather(x[kassette::slice(0, world.rank())]); },
                 {world.size(), 2});
}

TEST_CASE("second gradients through collectives are those of finite differences", "[ranks][gradient]") {
  const D::World world;
  for (const auto& [name, op] : ops()) check_second(name, op, {world.size()});
}

TEST_CASE("the gradient of a product is right where factors are zero", "[ranks][gradient]") {
  const D::World world;
  for (int zeros : {1, 2}) {
    const Tensor x = variable(K::constant(world.rank() < zeros ? 0. : 2., float64));
    const double g = K::gradients(D::all_reduce(x, D::prod), {x})[0].item<double>();
    // Every rank's loss is the product, so that each adds the product of the others.
    const double others =
        world.rank() < zeros ? (zeros == 1 || world.size() == 1 ? std::pow(2., world.size() - 1) : 0.) : 0.;
    CHECK(g == Approx(world.size() * others));
  }
}

TEST_CASE("ranks with the same extreme share its gradient", "[ranks][gradient]") {
  const D::World world;
  const Tensor x = variable(K::constant(1., float64));
  CHECK(K::gradients(D::all_reduce(x, D::max), {x})[0].item<double>() == Approx(1.));
}

TEST_CASE("gradients through collectives in a function are the eager ones", "[ranks][gradient][function]") {
  const D::World world;
  for (const auto& [name, op] : ops()) {
    INFO(name);
    const Tensor values = smooth(world.rank(), {2 * world.size(), 2}), x = variable(values),
                 fed = K::placeholder({None, 2}, None, float64);
    const Tensor weights = variable(K::constant(1.5, float64));
    const std::vector<double> eager = numbers(K::gradients(K::sum(K::square(op(x * weights))), {x})[0]);
    const Function f = K::function({fed}, K::gradients(K::sum(K::square(op(fed * weights))), {fed, weights}));
    for (int call = 0; call < 3; ++call) {
      const Tensors got = f({values});
      CHECK(numbers(got[0]) == eager);
    }
  }
}

TEST_CASE("data parallel training: all ranks hold the weights of one rank with all rows", "[ranks][gradient]") {
  const D::World world;
  const std::int64_t rows = 12;
  const Tensor x = smooth(0, {rows, 4}), y = smooth(1, {rows, 1});
  auto train = [&](bool alone) {
    const Tensor w = variable(smooth(2 + (alone ? 0 : world.rank()), {4, 1}));
    if (!alone) D::broadcast(w, 0);
    for (int step = 0; step < 20; ++step) {
      const Tensor mine = alone ? x : D::shard(x), target = alone ? y : D::shard(y);
      const Tensor loss = K::sum(K::square(K::dot(mine, w) - target)) / static_cast<double>(rows);
      Tensors g = K::gradients(loss, {w});
      if (!alone) g = D::all_reduce(g);
      K::update_sub(w, g[0] * 0.1);
    }
    return numbers(w);
  };
  const std::vector<double> together = train(false), alone = train(true);
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(together[i] == Approx(alone[i]).epsilon(1e-12));
  const std::vector<double> all = numbers(D::all_gather(K::constant(together, float64)));
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == together[i % 4]);
}

namespace {

/// A network of three layers, its loss on this rank's rows.
struct Net {
  Tensors w;
  Net() {
    for (auto [in, out] : {std::pair{6, 16}, {16, 16}, {16, 1}}) {
      w.push_back(variable(smooth(in + out, {in, out}) * 0.3 - 0.2));
      w.push_back(variable(smooth(3 * in + out, {out}) * 0.1));
    }
  }
  Tensor loss(const Tensor& x) const {
    Tensor h = x;
    for (std::int64_t i = 0; i < w.size(); i += 2) h = K::tanh(K::dot(h, w[i]) + w[i + 1]);
    return K::mean(K::square(h - K::sum(x, 1, true)));
  }
};

}  // namespace

TEST_CASE("D::gradients is all_reduce of K::gradients, for every size of bucket, with and without overlap",
          "[ranks][gradient][overlap]") {
  const D::World world;
  const Net net;
  const Tensor x = smooth(world.rank(), {5, 6}), fed = K::placeholder({None, 6}, None, float64);
  for (D::Reduction how : {D::sum, D::mean}) {
    const Tensors plain = D::all_reduce(K::gradients(net.loss(x), net.w), how);
    for (std::int64_t bytes : {0, 200, 1500, 1 << 20}) {
      D::GradientOptions aside, inline_;
      aside.bucket_bytes = inline_.bucket_bytes = bytes;
      inline_.overlap = false;
      const Tensors overlapped = D::gradients(net.loss(x), net.w, how, aside),
                    straight = D::gradients(net.loss(x), net.w, how, inline_);
      const Tensor loss = net.loss(x);
      const Tensors kept = D::gradients(loss, net.w, how, aside);
      const Function f = K::function({fed}, D::gradients(net.loss(fed), net.w, how, aside));
      for (int call = 0; call < 3; ++call) {
        const Tensors played = f({x});
        for (std::int64_t i = 0; i < net.w.size(); ++i) {
          const std::vector<double> a = numbers(overlapped[i]), b = numbers(plain[i]);
          CHECK(a == numbers(straight[i]));
          CHECK(a == numbers(kept[i]));
          const std::vector<double> c = numbers(played[i]);
          for (std::size_t k = 0; k < a.size(); ++k) {
            CHECK(a[k] == Approx(b[k]).epsilon(1e-12));
            CHECK(c[k] == Approx(b[k]).epsilon(1e-12));
          }
        }
      }
    }
  }
}

TEST_CASE("D::gradients: variables that are not reached, listed twice, or the loss itself",
          "[ranks][gradient][overlap]") {
  const D::World world;
  const Tensor a = variable(smooth(world.rank(), {3})), b = variable(smooth(1, {2})), h = a * 2.0, loss = K::sum(h * h);
  const Tensors g = D::gradients(loss, {a, b, h, a, loss});
  CHECK(!g[1].defined());
  const Tensors expected = D::all_reduce(Tensors{8.0 * a, 4.0 * a});
  CHECK(numbers(g[0]) == numbers(expected[0]));
  CHECK(numbers(g[2]) == numbers(expected[1]));
  CHECK(numbers(g[3]) == numbers(expected[0]));
  CHECK(numbers(g[4])[0] == world.size());
  CHECK(message_of([&] { D::gradients(loss, {a}, D::max); }) ==
        "gradients: how is max; it must be sum or mean: gradients are added or averaged over the ranks");
  CHECK(message_of([&] { D::gradients(loss, {K::constant({1., 2.})}); }).find("gradients: variable 0") == 0);
}

TEST_CASE("D::gradients can be differentiated, and put into a function afterwards", "[ranks][gradient][overlap]") {
  const D::World world;
  const Tensor x = variable(smooth(world.rank(), {3}));
  auto second = [&](bool bucketed) {
    const Tensor loss = K::sum(x * x * x);
    const Tensor g = bucketed ? D::gradients(loss, {x})[0] : D::all_reduce(K::gradients(loss, {x})[0]);
    return K::gradients(K::sum(g * g), {x})[0];
  };
  CHECK(numbers(second(true)) == numbers(second(false)));
  const Tensor g = D::gradients(K::sum(x * x * x), {x})[0];
  const Function f = K::function({}, {g});
  CHECK(numbers(f({})[0]) == numbers(g));
  K::update(x, x * 2.0);  // what is recorded is computed from the variable as it is
  const std::vector<double> again = numbers(f({})[0]), expected = numbers(D::all_reduce(3.0 * x * x));
  for (std::size_t i = 0; i < again.size(); ++i) CHECK(again[i] == Approx(expected[i]).epsilon(1e-12));
}

}  // namespace kassette::test
