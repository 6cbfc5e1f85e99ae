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

TEST_CASE("broadcasting to more bytes than there are is a MemoryError, one line, and nothing stays", "[bad]") {
  Tensor column = K::zeros({1 << 22, 1}), row = K::zeros({1, 1 << 22});
  std::string said = refused<MemoryError>([&] { column + row; });
  INFO(said);
  CHECK(said.find("leaves") == std::string::npos);
  CHECK(said.find("another exception") == std::string::npos);
  CHECK(said != "no error");
}

TEST_CASE("an empty list is a ValueError that names the function", "[bad]") {
  CHECK(refused<ValueError>([] { K::concatenate(Tensors()); }).find("concatenate: ") == 0);
  CHECK(refused<ValueError>([] { K::stack(Tensors()); }).find("stack: ") == 0);
}
