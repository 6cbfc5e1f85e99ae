// tests/sweeps/overflow_test.cpp - sizes that do not fit, and empty lists.
#include <kassette/backend.h>

#include <cmath>
#include <string>

#include "tests/catch.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;

namespace {

/// The message of a refusal by E; else what happened instead.
template <class E, class F>
std::string refused(F f) {
  test::Ledger ledger;
  std::string said = "no error";
  try {
    f();
  } catch (const E& e) {
    said = e.what();
  } catch (const std::exception& e) {
    said = std::string("another exception: ") + e.what();
  }
  if (std::string kept = ledger.change(); !kept.empty()) said += "; leaves " + kept;
  return said.find('\n') == std::string::npos ? said : "more than one line: " + said;
}

}  // namespace

TEST_CASE("sizes beyond 64 bits are a ValueError wherever a shape is made, and nothing is allocated", "[bad]") {
  std::int64_t big = std::int64_t(1) << 40;
  Tensor one = K::constant(1), x = K::constant(1, "float32", {2, 3});
  auto check = [](const std::string& said, const std::string& name) {
    INFO(said);
    CHECK(said.find(name + ": ") == 0);
    CHECK(said.find("is too large to address") != std::string::npos);
    CHECK(said.find("leaves") == std::string::npos);
    CHECK(said.find("another exception") == std::string::npos);
  };
  check(refused<ValueError>([&] { K::zeros({big, big}); }), "zeros");
  check(refused<ValueError>([&] { K::ones({big, big}); }), "ones");
  check(refused<ValueError>([&] { K::constant(1, "float32", {big, big}); }), "constant");
  check(refused<ValueError>([&] { K::eye({big, big}); }), "eye");
  check(refused<ValueError>([&] { K::random_uniform({big, big}); }), "random_uniform");
  check(refused<ValueError>([&] { K::tile(x, {big, big}); }), "tile");
  CHECK(refused<ValueError>([&] { K::reshape(x, {big, big}); }).find("reshape: ") == 0);
}

TEST_CASE("sizes beside a 0 have to fit too, wherever a shape is made", "[bad]") {
  std::int64_t big = std::int64_t(1) << 40;
  auto said = [](auto f) { return refused<ValueError>(f); };
  CHECK(said([&] {
          K::zeros({0, big, big});
        }) == "zeros: a result of shape (0, 1099511627776, 1099511627776) and dtype float32 is too large to address");
  CHECK(said([&] { K::reshape(K::zeros({0}), {big, 0, big}); }).find("reshape: ") == 0);
  CHECK(said([&] { K::zeros({0, big, 1}) + K::zeros({1, 3}); }) == "no error");
  CHECK(said([&] { K::zeros({0, big}).detach() + K::zeros({1 << 10, 1, 1}).detach(); }) == "no error");
  CHECK(said([&] {
          K::zeros({0, big, 1}).detach() + K::zeros({big, 0, 1, 1}).detach();
        }).find("too large to address") != std::string::npos);
  Tensor x = K::zeros({0, big}), y = K::reshape(x, {big, 0, 2});
  CHECK(K::eval(K::sum(y)).item<float>() == 0);
  CHECK(K::int_shape(K::transpose(x)) == Shape({big, 0}));
  // What is only declared has no strides; its size is 0, and what is fed cannot have that shape.
  Tensor p = K::placeholder({0, big, big});
  CHECK(p.shape().numel() == 0);
  CHECK(K::int_shape(p + 1.0) == Shape({0, big, big}));
  CHECK(said([&] { K::function({p}, {p + 1.0})({K::zeros({0, 2, 3})}); }).find("function: input 0") == 0);
}

TEST_CASE("broadcasting to more bytes than there are is a MemoryError, one line, and nothing stays", "[bad]") {
  Tensor column = K::zeros({1 << 22, 1}), row = K::zeros({1, 1 << 22});
  std::string said = refused<MemoryError>([&] { column + row; });
  INFO(said);
  CHECK(said.find("leaves") == std::string::npos);
  CHECK(said.find("another exception") == std::string::npos);
  CHECK(said.find("add: out of memory on cpu: 64.0 TiB asked for, ") == 0);
  Tensor a = K::placeholder({None, 1}), b = K::placeholder({1, None});
  kassette::Function f = K::function({a, b}, {K::maximum(a + b, 0.0)});
  CHECK(refused<MemoryError>([&] { f({column, row}); }).find("add: out of memory on cpu: ") == 0);
  CHECK(refused<MemoryError>([&] { K::zeros({1 << 30, 1 << 20}); }).find("zeros: out of memory on cpu: 4.0 PiB") == 0);
  CHECK(refused<MemoryError>([&] {
          K::random_normal({1 << 30, 1 << 20});
        }).find("random_normal: out of memory on cpu: 4.0 PiB") == 0);
}

TEST_CASE("an empty list is a ValueError that names the function", "[bad]") {
  CHECK(refused<ValueError>([] { K::concatenate(Tensors()); }).find("concatenate: ") == 0);
  CHECK(refused<ValueError>([] { K::stack(Tensors()); }).find("stack: ") == 0);
}
