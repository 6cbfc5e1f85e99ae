// tests/scripts/api_lines.cpp - lines as users write them: none may be ambiguous or warn, with g++ and clang, C++17 and
// C++20. Compiled by api_lines.sh, never run.
#include <kassette/backend.h>

#include <array>
#include <ostream>
#include <string>
#include <vector>

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

void lines(std::ostream& os, Tensor x, Tensor y, Tensor z, Tensor w, Tensor b, Tensor c, Tensor loss) {
  // reductions: all, one axis, several, none
  K::sum(x); K::sum(x, 1, true); K::sum(x, {0, 1}); K::sum(x, {0}); K::sum(x, {}); K::sum(x, K::None, true); K::sum(x, 0); K::sum(x, -1);
  K::sum({1, 2}); K::sum({{1, 2}, {3, 4}}, 0); K::sum(3); K::mean(x); K::max(x, -1); K::argmax(x); K::std(x, {0, -1});
  // shapes: literals, static shapes, tensors, mixtures
  K::zeros({2, 3}); K::zeros({}); K::zeros({0}); K::zeros({5}); K::zeros({2}, "float64"); K::zeros(K::int_shape(x)); K::zeros(K::shape(x));
  K::eye(3); K::eye({3, 4}); K::zeros(x.shape()); K::zeros(std::vector<int>{2, 3}); K::zeros({x.shape()[0], 4});
  K::random_normal({K::shape(x)[0], 5}); K::random_normal({2}, y, 1, "float64", 7); K::random_normal({K::shape(x)[0]});
  K::reshape(x, {-1, 4}); K::reshape(x, {K::shape(x)[0], 3, 1}); K::reshape(x, {K::None, 4}); K::reshape(x, {-1});
  K::placeholder(); K::placeholder({}); K::placeholder({K::None}); K::placeholder(K::None, 3); K::placeholder({K::None, 3}, K::None, "int32");
  // values: literals, numbers, containers, tensors
  K::variable({{1, 2}, {3, 4}}, "float64"); K::variable(0.5); K::variable(0); K::variable(true, "bool"); K::variable(x); K::variable({x, 1});
  K::variable({{0}}); K::variable({}); K::variable(std::vector<double>{1, 2}, std::string("float64")); K::variable(std::array<int, 2>{1, 2});
  K::constant(3); K::constant(0.0, {}, {2, 3}); K::constant({{1}, {2.5f}, {3u}}, kassette::float32); K::constant({{{1, 0}, {0, 1}}, {{0, 0}, {0, 0}}});
  // operators and indexing
  x + 1; 2.0 / x; 1 - x; x + y; -x; x * true; x + 1ull; x % 2; x > 0; x <= y; (x > 0) & (y > 0); ~(x > 0); kassette::floor_divide(x, 2);
  K::cast(x > 0, "bool"); x[0]; x[-1]; x[c]; x["..., 1:5"]; x(0, kassette::newaxis); x(kassette::slice(K::None, K::None, -1)); x(kassette::all, 0);

  // functions of two, lists
  K::dot({{1, 2}}, {{3}, {4}}); K::dot(x, {{1}, {2}}); K::clip(x, 0, 1); K::clip(x, y, 1); K::pow(x, 2); K::pow(2, x); K::maximum(x, 0);
  K::relu(x, 0.1, 6); K::relu(x, 0, K::None, -1); K::concatenate({x, y}, 1); K::concatenate({x}); K::stack({x, y, z}); K::cast(x, K::dtype(y));
  K::gather(x, {0, 2, 1}); K::one_hot(x, 10); K::tile(x, 2); K::tile(x, {1, 2}); K::permute_dimensions(x, {1, 0}); K::expand_dims(x); K::repeat(x, 3);
  // the tape
  Tensor g = K::gradients(loss, {w})[0]; Tensors gs = K::gradients(loss, {w, b}); K::gradients(loss, w); K::stop_gradient(x); K::stop_gradient({x, y});
  K::update(w, w - 0.1 * g); K::update_sub(w, 0.1 * g); K::update_add(b, 1); K::moving_average_update(w, x, 0.9);
  auto f = K::function({x}, {y}); auto f1 = K::function({x, K::learning_phase()}, {y, z}, {{w, w - g}});
  K::function({}, {}, {{w, 1.0}, {b, b + 1}}); K::function({x}, {y}, Tensors{w, b}); K::function(x, y);
  f({x}); f({x, 1}); f({{1, 2}}); f({{{1, 2}, {3, 4}}}); f(gs); f({}); Tensors out = f({x}); f1({x, true})[0];
  K::switch_(c, x, y); K::switch_(c, 0.0, x); K::switch_(true, x, y); K::switch_(c, [&] { return x; }, [&] { return y; }); K::switch_(c, [&] { return x; }, 0); K::switch_(c, {1, 2}, x);
  K::in_train_phase(x, y); K::in_train_phase([&] { return x; }, y, 1); K::in_train_phase(x, y, c);
  K::foldl([&](const Tensor& acc, const Tensor& e) { return acc + e; }, x); K::foldl([](auto acc, auto e) { return acc * e; }, x, 1.0);
  auto step = [&](const Tensor& t, const Tensors& s) { Tensor h = K::dot(t, w) + s[0]; return K::Step{h, {h}}; };
  auto [last, outputs, states] = K::rnn(step, x, {y}); K::rnn(step, x, {y}, true); K::rnn(step, x, {y}, false, c, {w}); K::rnn(step, x, {y}, {}); K::rnn(step, x, {}); K::rnn(step, x, y);
  K::rnn([](const Tensors& xs, const Tensors& s) { return K::Step{xs[0] + xs[1], s}; }, {x, y}, {y}); K::rnn([](auto t, auto s) { return K::Step{t, s}; }, x, {y});
  K::map_fn([](const Tensor& t) { return t * 2; }, x); K::map_fn([](auto t) { return K::sum(t); }, x, K::None, "float64"); K::map_fn([](const Tensors& t) { return t[0] + t[1]; }, {x, y});
  K::foldl([n = 0](const Tensor& acc, const Tensor& e) mutable { ++n; return acc + n * e; }, x);
  K::symbolic([&] { return x + y; })(); K::eager([](const Tensor& t) { return t * 2; })(x); K::LearningPhaseScope training(1);
  K::set_value(w, {{1, 2}}); K::set_learning_phase(0); K::batch_set_value({{w, 1.0}, {b, x}}); K::get_value(w); K::eval(x + 1);
  // asking
  bool same = K::dtype(x) == "float32" && "float64" != K::dtype(y) && K::dtype(x) == kassette::float32 && K::int_shape(x)[0] == K::None;
  std::int64_t n = K::int_shape(x)[0]; float v = x.item<float>(); const float* p = x.data<float>(); std::vector<float> all = x.to_vector<float>();
  os << x << gs << K::int_shape(x) << K::dtype(x) << f << x.device() << same << n << v << p << all.size() << c.defined();
}
