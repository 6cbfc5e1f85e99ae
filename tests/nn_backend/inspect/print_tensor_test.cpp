// tests/nn_backend/inspect/print_tensor_test.cpp - tensors that write their value when they are computed, and
// constraints that are kept.
#include <kassette/backend.h>

#include <cstdio>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using namespace kassette;

namespace {

using Lines = std::vector<std::string>;

/// Collects what is printed while it lives.
struct Caught {
  Lines lines;
  test::PrintsTo sink{[this](const char* line) { lines.push_back(line); }};
  Lines take() {
    Lines all;
    all.swap(lines);
    return all;
  }
};

Tensor clipped(const Tensor& w) { return K::maximum(w, 0); }

}  // namespace

TEST_CASE("print_tensor of a value writes message, space and value at once, and gives a new equal tensor", "[print]") {
  Caught caught;
  Tensor x = K::ones({1, 1}), y = K::print_tensor(x, "msg");
  CHECK(caught.take() == Lines{"msg [[1.]]"});
  CHECK(K::is_variable(x));
  CHECK_FALSE(K::is_variable(y));
  CHECK(y.item<float>() == 1);
  CHECK(y.dtype() == float32);
  K::print_tensor(K::constant({1, 2}, "int32"));
  K::print_tensor(K::arange(2000), "many:");
  CHECK(caught.take() == Lines{" [1 2]", "many: [   0    1    2 ... 1997 1998 1999]"});
  CHECK_THROWS_WITH(K::print_tensor(Tensor(), "m"),
                    "print_tensor: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("print_tensor in a function writes at each call that needs it, and x itself writes nothing", "[print]") {
  Caught caught;
  Tensor x = K::placeholder({K::None}), p = K::print_tensor(x, "x:");
  CHECK(caught.take().empty());
  auto both = K::function({x}, {p * 2.0, x}), plain = K::function({x}, {x});
  plain({{1.5, 2.5}});
  CHECK(caught.take().empty());
  both({{1.5, 2.5}});
  both({std::vector<double>{3.0}});
  CHECK(caught.take() == Lines{"x: [1.5 2.5]", "x: [3.]"});
}

TEST_CASE("print_tensor inside symbolic waits for eval, whatever it prints", "[print]") {
  Caught caught;
  Tensor p = K::symbolic([] { return K::print_tensor(K::constant({1, 2}), "c"); })();
  CHECK(caught.take().empty());
  K::eval(p);
  K::eval(p);
  CHECK(caught.take() == Lines{"c [1. 2.]", "c [1. 2.]"});
}

TEST_CASE("the gradient passes print_tensor, to any order, and writes nothing more", "[print]") {
  Caught caught;
  Tensor x = K::variable({2, 3}), y = K::sum(K::pow(K::print_tensor(x, "v"), 3));
  Tensor g = K::gradients(y, {x})[0], h = K::gradients(K::sum(g), {x})[0];
  CHECK(g.to_vector<double>()[1] == 27);
  CHECK(h.to_vector<double>()[1] == 18);
  CHECK(caught.take() == Lines{"v [2. 3.]"});
  Tensor in = K::placeholder({2}), loss = K::sum(K::square(K::print_tensor(in, "p")));
  auto f = K::function({in}, {loss, K::gradients(loss, {in})[0]});
  f({{1, 2}});
  CHECK(caught.take() == Lines{"p [1. 2.]"});
}

TEST_CASE("print_tensor in a loop writes at each step, and once where the loop is differentiated", "[print]") {
  Caught caught;
  auto add = [](const Tensor& a, const Tensor& e) { return K::print_tensor(a * e, "step"); };
  K::foldl(add, K::constant({1, 2, 3}), K::constant(1));
  CHECK(caught.take() == Lines{"step 1.0", "step 2.0", "step 6.0"});
  Tensor x = K::placeholder({3}), y = K::foldl(add, x, K::constant(1));
  auto f = K::function({x}, {y, K::gradients(y, {x})[0]});
  CHECK(caught.take().empty());
  Tensors out = f({{1, 2, 3}});
  CHECK(caught.take() == Lines{"step 1.0", "step 2.0", "step 6.0"});
  CHECK(out[1].to_vector<double>()[1] == 3);
}

TEST_CASE("without a sink print_tensor writes to standard output", "[print]") {
  std::fflush(stdout);
  std::FILE* file = std::tmpfile();
  REQUIRE(file);
  int saved = dup(1);
  dup2(fileno(file), 1);
  test::PrintsTo standard_output(None);
  K::print_tensor(K::constant({{1, 2}}), "to stdout");
  dup2(saved, 1);
  close(saved);
  std::rewind(file);
  char text[64] = {};
  std::size_t n = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  CHECK(std::string(text, n) == "to stdout [[1. 2.]]\n");
}

TEST_CASE("a variable keeps its constraint, which updates do not apply", "[print][constraint]") {
  double least = 0.5;
  Tensor w = K::variable({-1, 2}, K::None, "w", [least](const Tensor& t) { return K::maximum(t, least); });
  Constraint c = constraint_of(w);
  REQUIRE(c.defined());
  CHECK(c(w).to_vector<double>()[0] == 0.5);
  K::update(w, K::constant({-3, -4}));
  CHECK(w.to_vector<double>()[1] == -4);
  K::update(w, constraint_of(w)(w));
  CHECK(w.to_vector<double>()[1] == 0.5);
  CHECK(constraint_of(w) == c);
  CHECK_FALSE(constraint_of(w) != c);
  CHECK(constraint_of(w) != Constraint(clipped));
  CHECK(constraint_of(K::variable(1, K::None, K::None, clipped))(K::constant(-2)).item<double>() == 0);
}

TEST_CASE("a sparse value takes no constraint: the result is not a variable", "[constraint][sparse]") {
  Tensor sparse = K::sparse_coo({{0, 1}}, {-1}, {2, 2});
  CHECK_THROWS_AS(K::variable(sparse, K::None, K::None, clipped), ValueError);
  CHECK_THROWS_WITH(
      K::variable(sparse, K::None, K::None, clipped),
      "variable: constraint is given for a sparse value, and the result is not a variable; it must be None");
  CHECK_FALSE(K::is_variable(K::variable(sparse, K::None, K::None, K::None)));
}

TEST_CASE("what has no constraint says None, and what is no variable is refused", "[constraint]") {
  CHECK_FALSE(constraint_of(K::variable(1)).defined());
  CHECK_FALSE(constraint_of(K::variable(1, K::None, K::None, K::None)).defined());
  CHECK(test::printed(Constraint()) == "None");
  CHECK(test::printed(Constraint(clipped)) == "<callable>");
  CHECK_THROWS_WITH(constraint_of(K::constant(1)),
                    "constraint_of: variable is not a variable; make it with K::variable");
  CHECK_THROWS_WITH(Constraint()(K::constant(1)), "a callable that is None was called");
}
