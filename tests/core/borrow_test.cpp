// tests/core/borrow_test.cpp - tensors over memory that belongs to the caller.
#include "core/storage.h"  // first: its names are not shadowed by those of borrow.h, which is an error here

#include <kassette/backend.h>
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

TEST_CASE("elements that only one tensor sees may be written to", "[borrow]") {
  Tensor x = from_memory(std::array<float, 6>{1, 2, 3, 4, 5, 6}.data(), float32, {2, 3});
  auto* data = static_cast<float*>(exclusive_data(x));
  REQUIRE(data == x.data<float>());
  data[0] = 9;
  CHECK(std::vector<float>(x.to_vector<float>()) == std::vector<float>{9, 2, 3, 4, 5, 6});
  {
    Tensor copy = x;
    CHECK(exclusive_data(x) == nullptr);
  }
  {
    Tensor row = x(0);
    CHECK(exclusive_data(x) == nullptr);
    CHECK(exclusive_data(row) == nullptr);
  }
  CHECK(exclusive_data(x) == data);
}

TEST_CASE("elements that others see or own are not given for writing", "[borrow]") {
  namespace K = backend;
  std::vector<float> numbers{1, 2};
  CHECK(exclusive_data(borrow(numbers, 0)) == nullptr);
  CHECK(exclusive_data(Tensor()) == nullptr);
  Tensor v = K::variable({1.0, 2.0}), in = K::placeholder({2});
  CHECK(exclusive_data(v) == nullptr);
  CHECK(exclusive_data(in) == nullptr);
  Tensor value = K::eval(v);
  CHECK(exclusive_data(value) == nullptr);
  CHECK(exclusive_data(K::square(v)) == nullptr);  // gradients may ask its node for it
  Tensor c = K::constant({3.0, 4.0});
  Tensors results = K::function({in}, {in * 2.0, v, in, c, K::reshape(v, {2, 1})})({c});
  CHECK(exclusive_data(results[0]) == results[0].data<float>());
  for (int i = 1; i < 5; ++i) CHECK(exclusive_data(results[i]) == nullptr);
}

TEST_CASE("a borrow that fails says why and calls nothing", "[borrow]") {
  int calls = 0;
  auto owner = std::make_shared<int>(1);
  auto note = [&calls, owner] { ++calls; };
  std::vector<float> v{1, 2, 3, 4, 5, 6};
  CHECK_THROWS_WITH(borrow(v, {2, 2}, note), "borrow: 6 elements for the shape (2, 2), which takes 4");
  CHECK_THROWS_WITH(borrow(v, {2, None}, note), "borrow: shape holds None; sizes must be known and not negative");
  CHECK_THROWS_WITH(borrow(v, {-2, -3}, note), "borrow: shape holds -2; sizes must be known and not negative");
  CHECK_THROWS_AS(borrow(v, {1L << 40, 1L << 40}, note), ValueError);
  CHECK(calls == 0);
  CHECK(owner.use_count() == 2);
}
