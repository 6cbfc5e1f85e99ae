// MLX's C++ API on the CPU. Lazy: every row builds its graph and evaluates it. --library compiled:
// through mx::compile.
#include <mlx/mlx.h>
#include <mlx/version.h>

#include "../../timer.h"
#include "rows.h"

namespace mx = mlx::core;
using Array = mx::array;
using Arrays = std::vector<Array>;
using bench::own_process;
using bench::row;

namespace {

bool compiled = false;

Array now(Array a) {
  mx::eval(a);
  return a;
}
Array ones(mx::Shape shape) { return now(mx::ones(shape)); }
Array uniform(mx::Shape shape) { return now(mx::random::uniform(0.1f, 1.1f, shape)); }
std::function<Arrays(const Arrays&)> wrap(std::function<Arrays(const Arrays&)> f) {
  return compiled ? mx::compile(f) : f;
}

/// f(inputs), built and evaluated at each call.
auto evaluated(std::function<Arrays(const Arrays&)> f, Arrays inputs) {
  return [f = wrap(f), inputs] {
    auto out = f(inputs);
    mx::eval(out);
  };
}

void small() {
  auto two = [] { return Arrays{ones({4}), ones({4})}; };
  row("small.add", [=] { return evaluated([](const Arrays& v) { return Arrays{mx::add(v[0], v[1])}; }, two()); });
  row("small.add_mul_sum_fb", [=] {
    auto g = mx::grad(std::function<Array(const Arrays&)>(
        [](const Arrays& v) { return mx::sum(mx::multiply(mx::add(v[0], v[1]), v[2])); }));
    return evaluated([g](const Arrays& v) { return Arrays{g(v)}; }, {ones({4}), ones({4}), ones({4})});
  });
  row("small.matmul2", [] {
    return evaluated([](const Arrays& v) { return Arrays{mx::matmul(v[0], v[1])}; }, {ones({2, 2}), ones({2, 2})});
  });
  row("small.sum4", [] { return evaluated([](const Arrays& v) { return Arrays{mx::sum(v[0])}; }, {ones({4})}); });
  row("small.create4", [] { return [] { Array c({1.f, 2.f, 3.f, 4.f}); }; });
  row("small.reshape", [] {
    return evaluated([](const Arrays& v) { return Arrays{mx::reshape(v[0], {2, 2})}; }, {ones({4})});
  });
}

auto mlp_step(int batch, std::vector<int> widths) {
  Arrays state;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    state.push_back(now(mx::multiply(mx::random::normal({widths[i], widths[i + 1]}), Array(0.05f))));
    state.push_back(now(mx::zeros({widths[i + 1]})));
  }
  size_t count = state.size();
  std::vector<int> which(count);
  for (size_t i = 0; i < count; ++i) which[i] = static_cast<int>(i);
  auto loss = [count](const Arrays& a) {
    Array h = a[count];
    for (size_t i = 0; i + 2 < count; i += 2) h = mx::maximum(mx::addmm(a[i + 1], h, a[i]), Array(0.f));
    h = mx::addmm(a[count - 1], h, a[count - 2]);
    Array score = mx::squeeze(mx::take_along_axis(h, mx::expand_dims(a[count + 1], 1), 1), 1);
    return Arrays{mx::mean(mx::subtract(mx::logsumexp(h, 1), score))};
  };
  auto gradient = mx::value_and_grad(std::function<Arrays(const Arrays&)>(loss), which);
  auto step = wrap([gradient, count](const Arrays& a) {
    auto g = gradient(a).second;
    Arrays out;
    for (size_t i = 0; i < count; ++i) out.push_back(mx::subtract(a[i], mx::multiply(Array(0.01f), g[i])));
    return out;
  });
  state.push_back(uniform({batch, widths[0]}));
  state.push_back(now(mx::random::randint(0, widths.back(), {batch})));
  return [=]() mutable {
    Arrays next = step(state);
    mx::eval(next);
    for (size_t i = 0; i < count; ++i) state[i] = next[i];
  };
}

void train() {
  row("train.mlp_b32", [] { return mlp_step(32, {64, 128, 10}); });
  own_process("mem.mlp_b32_1000", [] {
    auto step = mlp_step(32, {64, 128, 10});
    return bench::peak_of([&] {
      for (int i = 0; i < 1000; ++i) step();
    });
  });
  own_process("chain.1e6_fb", [] {
    return bench::peak_of([] {
      Array b = ones({4});
      auto f = [&](const Array& x) {
        Array y = x;
        for (int i = 0; i < 1000000; ++i) y = mx::add(y, b);
        return mx::sum(y);
      };
      mx::grad(std::function<Array(const Array&)>(f))(ones({4})).eval();
    });
  });
}

void elementwise() {
  for (auto [n, tag] : {std::pair<int, const char*>{1000, "1e3"}, {100000, "1e5"}, {10000000, "1e7"}}) {
    int size = n;
    std::string t = std::string(".") + tag;
    row("ew.add" + t, [=] {
      return evaluated([](const Arrays& v) { return Arrays{mx::add(v[0], v[1])}; }, {uniform({size}), uniform({size})});
    });
    row("ew.mul" + t, [=] {
      return evaluated([](const Arrays& v) { return Arrays{mx::multiply(v[0], v[1])}; },
                       {uniform({size}), uniform({size})});
    });
    row("ew.relu" + t, [=] {
      return evaluated([](const Arrays& v) { return Arrays{mx::maximum(v[0], Array(0.f))}; }, {uniform({size})});
    });
    row("ew.exp" + t,
        [=] { return evaluated([](const Arrays& v) { return Arrays{mx::exp(v[0])}; }, {uniform({size})}); });
  }
  row("ew.chain10.1e7", [] {
    auto chain = [](const Arrays& v) {
      Array x = v[0], cube = mx::multiply(mx::multiply(x, x), mx::multiply(x, Array(0.044715f)));
      Array t = mx::tanh(mx::multiply(mx::add(x, cube), Array(0.7978845608f)));
      return Arrays{mx::add(mx::multiply(mx::multiply(x, Array(0.5f)), mx::add(t, Array(1.f))), x)};
    };
    return evaluated(chain, {uniform({10000000})});
  });
}

}  // namespace

int main(int argc, char** argv) {
  auto options = bench::parse(argc, argv);
  compiled = options.library == "compiled";
  mx::set_default_device(mx::Device::cpu);
  small(), train(), elementwise(), convolution_rows();
  return bench::run(options, std::string("\"peer\": \"mlx") + (compiled ? "-compiled" : "") + "\", \"version\": \"" +
                                 mx::version() + "\"");
}
