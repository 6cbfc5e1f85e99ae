// tests/core/borrow_test.cpp - tensors over memory of somebody else.
#include "core/storage.h"   // first: its names are not shadowed by those of borrow.h, which is an error here

#include <kassette/borrow.h>
#include <kassette/error.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "tests/catch.h"

using namespace kassette;

TEST_CASE("a borrowed tensor reads the owner's memory", "[borrow]") {
  auto v = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4, 5, 6});
  Tensor t = borrow(*v, {2, 3}, v);
  CHECK(t.data<float>() == v->data());
  CHECK(t.shape() == Shape{2, 3});
  CHECK(t.dtype() == float32);
  CHECK(v.use_count() == 2);
  Tensor copy = t;
  t = Tensor();
  CHECK(v.use_count() == 2);
  copy = Tensor();
  CHECK(v.use_count() == 1);
}

TEST_CASE("a moved container may be its own owner", "[borrow]") {
  std::vector<std::int64_t> v{7, 8};
  const std::int64_t* data = v.data();
  Tensor t = borrow(v, std::move(v));
  CHECK(t.data<std::int64_t>() == data);
  CHECK(t.shape() == Shape{2});
  CHECK(std::vector<float>(t.to_vector<float>()) == std::vector<float>{7, 8});
}

TEST_CASE("a callable owner is called once, by whoever drops the last tensor", "[borrow]") {
  std::array<double, 3> a{1, 2, 3};
  int calls = 0;
  auto note = [&calls] { ++calls; };
  Tensor t = borrow(a, note);
  Tensor d = t.detach();
  t = Tensor();
  CHECK(calls == 0);
  std::thread([d = std::move(d)]() mutable { d = Tensor(); }).join();
  CHECK(calls == 1);
}

TEST_CASE("move-only owners are kept", "[borrow]") {
  auto p = std::make_unique<std::array<std::uint8_t, 4>>(std::array<std::uint8_t, 4>{1, 2, 3, 4});
  Tensor t = borrow(*p, {2, 2}, std::move(p));
  CHECK(t.dtype() == uint8);
  CHECK(t.size() == 4);
}

TEST_CASE("borrow of nothing is an empty tensor", "[borrow]") {
  std::vector<float> none;
  CHECK(borrow(none, 0).shape() == Shape{0});
  CHECK(borrow(none, {3, 0}, 0).size() == 0);
  std::array<float, 1> one{5};
  CHECK(borrow(one, {}, 0).item<float>() == 5);
}

TEST_CASE("a borrow that fails says why and calls nothing", "[borrow]") {
  int calls = 0;
  auto owner = std::make_shared<int>(1);
  auto note = [&calls, owner] { ++calls; };
  std::vector<float> v{1, 2, 3, 4, 5, 6};
  CHECK_THROWS_WITH(borrow(v, {2, 2}, note), "borrow: 6 elements for the shape (2, 2), which takes 4");
  CHECK_THROWS_WITH(borrow(v, {2, None}, note), "borrow: a size of the shape is None");
  CHECK_THROWS_WITH(borrow(v, {-2, -3}, note), "borrow: a size of the shape is negative");
  CHECK_THROWS_AS(borrow(v, {1L << 40, 1L << 40}, note), ValueError);
  CHECK(calls == 0);
  CHECK(owner.use_count() == 2);
}
