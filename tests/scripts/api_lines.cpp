// tests/scripts/api_lines.cpp - lines as users write them: none may be ambiguous or warn, with g++ and clang, C++17 and
// C++20. Compiled by api_lines.sh, never run.
#include <kassette/backend.h>
#include <kassette/io.h>

#include <array>
#include <deque>
#include <list>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

template <class T = void>
Tensor of_operands(const kassette::Operand& a, const kassette::Operand& b) {
  return (a + b * 2 - a / b) % 3 + -a + +b + K::cast((a < b) | ~(a >= b), "float32");
}
Tensor nothing_yet();

// clang-format off
void arguments(Tensor x, Tensor c, int argc, char** argv, const char* name, char* changeable, std::string_view view, std::string text) {
  // branches: with and without captures, functions, what changes itself
  K::in_train_phase([] { return K::zeros({2}); }, x); K::in_train_phase(x, [] { return K::zeros({2}); }); K::in_test_phase([] { return K::zeros({2}); }, [&] { return x; });
  K::switch_(c, [] { return K::zeros({2}); }, [] { return K::ones({2}); }); K::switch_(c, nothing_yet, &nothing_yet); K::switch_(c, [n = 1]() mutable { return K::zeros({++n}); }, x);
  K::switch_(c, []() -> Tensor { return nothing_yet(); }, 1.5); K::switch_(c, {1, 2}, [] { return K::ones({2}); });
  K::switch_(c, [&] { return x; }, [] { return 0.5; }); K::switch_(c, [n = 1]() mutable { return ++n; }, x); K::in_train_phase([&] { return x.item<float>(); }, x); K::in_test_phase(x, [] { return true; });
  auto f = K::function([](const Tensors& in) { return in; }, {x}); K::map_fn([](const Tensor& t) { return t; }, x); K::variable(1, {}, {}, [](const Tensor& w) { return w; });
  // operands: templates, sizes, numbers of every kind, containers of containers, C arrays
  of_operands(x, 1); of_operands(1, 2.5); of_operands({1, 2}, x); x * x.shape()[0]; x / K::int_shape(x)[0]; x + 1.0L; K::clip(x, 0, x.shape()[0]); kassette::slice(0, x.shape()[0]);
  K::constant(std::vector<std::vector<double>>{{1}, {2}}); K::variable(std::vector<std::array<float, 2>>{{1, 2}}); x + std::vector<std::vector<float>>{{1}}; K::dot(std::vector<std::vector<int>>{{1}}, x);
  const double flat[] = {1, 2}; const int table[2][2] = {{1, 2}, {3, 4}}; K::constant(flat); K::constant(table, "int32"); K::constant(std::list<double>{1}); K::constant(std::deque<std::list<int>>{{1}});
  K::constant(std::vector<bool>{true}, "bool"); K::constant(std::vector<unsigned>{1}); K::sum(std::vector<std::vector<double>>{{1, 2}}, 0); K::set_value(x, std::vector<std::vector<double>>{{1}});
  // names, dtypes, devices and indices
  K::cast(x, name); K::cast(x, changeable); K::cast(x, view); K::cast(x, text); K::cast(x, argc > 1 ? "float32" : "int8"); K::zeros({2}, name, view); x.to(name); x.to(view); x[name]; x[view]; x[text];
  kassette::load_npz(argv[1]); kassette::load_npy(view); kassette::save_npz(name, {{name, x}, {view, x}, {"c", x}}); kassette::NamedTensors named; named.set(view, x); named[name]; named.contains(view);
  kassette::load_npz(name, {}); kassette::load_npz(name, {"w"}); kassette::load_npz(name, {"w", "b"}, {}); kassette::load_safetensors(name, {}); kassette::load_safetensors(name, std::vector<std::string>{text});
  K::dtype(x) == name; K::dtype(x) != view; K::set_floatx(name); auto scope = K::name_scope(view); kassette::DType d = view; kassette::Device on = name; d == kassette::float32; on == kassette::cpu;
  // shapes and what is walked
  std::vector<kassette::Dim> some{2, K::None, K::shape(x)[0]}; some.push_back(K::None); K::placeholder(some); K::zeros(std::vector<Tensor>{K::shape(x)[0]}); K::zeros(argc); K::zeros(text.size()); K::zeros(x.shape()[0]);
  K::sum(x, text.size()); K::sum(x, -1L); K::sum(x, std::vector<long>{0, 1}); std::vector<std::int64_t> dims = x.shape(); std::vector<int> small = K::int_shape(x); x[text.size() - 1]; x(x.shape()[0] - 1);
  for (auto n : x.shape()) dims.push_back(n);
  for (float v : x.to_vector<float>()) small.push_back(static_cast<int>(v));
  for (const Tensor& t : f({x})) some.push_back(t.shape()[0]);
  // memory whose dtype is known at run time
  kassette::from_memory(argv, name, {2, 3}); kassette::from_memory(flat, view, {2, 1}, {1, 0}); kassette::from_memory(flat, "float64", dims, small); kassette::borrow(flat, name, {2}, 0); kassette::borrow(flat, "float64", dims, [] {});
}

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
  K::FunctionOptions options; options.updates = {{w, w - g}, {b, 0}}; options.fetches = {x}; options.feed_dict = {{y, 1.0}}; options.updates = K::Updates(); K::function({x}, {y}, options);
  { K::ControlDependencies one({w}), two({w, b}), all(gs), none({}); auto after = K::control_dependencies({w}); }
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
// clang-format on
