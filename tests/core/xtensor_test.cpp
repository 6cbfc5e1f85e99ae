// tests/core/xtensor_test.cpp - arrays of xtensor to and from tensors.
#include <kassette/xtensor.h>

#include <kassette/backend.h>

#include <complex>
#include <thread>

#include <xtensor/xfixed.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using kassette::test::place;
namespace K = kassette::backend;

namespace {

template <class T>
std::vector<T> list(const Tensor& x) {
  return x.to_vector<T>();
}

template <class T>
void there_and_back() {
  xt::xarray<T> a = {{T(1), T(0), T(3)}, {T(1), T(5), T(0)}};
  Tensor t = from_xtensor(a);
  CHECK(t.dtype() == dtype_of(static_cast<const T*>(nullptr)));
  CHECK(t.shape() == Shape{2, 3});
  CHECK(std::equal(a.begin(), a.end(), t.data<T>()));
  CHECK(t.data<T>() != a.data());
  CHECK((to_xarray<T>(t) == a));
  CHECK((xview<T>(t) == a));
  CHECK(from_xtensor(xt::xarray<T>(a)).shape() == Shape{2, 3});
}

}  // namespace

TEST_CASE("every element type goes to a tensor and back", "[xtensor]") {
  there_and_back<bool>();
  there_and_back<std::uint8_t>();
  there_and_back<std::uint16_t>();
  there_and_back<std::int8_t>();
  there_and_back<std::int16_t>();
  there_and_back<std::int32_t>();
  there_and_back<std::int64_t>();
  there_and_back<std::uint32_t>();
  there_and_back<std::uint64_t>();
  there_and_back<long long>();
  there_and_back<float>();
  there_and_back<double>();
}

TEST_CASE("a column-major array keeps its indices", "[xtensor]") {
  xt::xarray<int, xt::layout_type::column_major> a = {{1, 2, 3}, {4, 5, 6}};
  CHECK(list<int>(from_xtensor(a)) == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(list<int>(from_xtensor(xt::xarray<int, xt::layout_type::column_major>(a))) ==
        std::vector<int>{1, 2, 3, 4, 5, 6});
  Tensor t = K::constant({{1, 2, 3}, {4, 5, 6}}, "int32");
  auto back = to_xarray<int, xt::layout_type::column_major>(t);
  CHECK((back == a));
  CHECK(std::vector<int>(back.data(), back.data() + 6) == std::vector<int>{1, 4, 2, 5, 3, 6});
  xt::xarray<int, xt::layout_type::dynamic> d(std::vector<std::size_t>{2, 3}, xt::layout_type::column_major);
  d = a;
  CHECK(list<int>(from_xtensor(d)) == std::vector<int>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("views and expressions are copied element by element", "[xtensor]") {
  xt::xarray<double> a = {{1, 2, 3}, {4, 5, 6}};
  CHECK(list<double>(from_xtensor(xt::view(a, xt::all(), xt::range(0, 3, 2)))) == std::vector<double>{1, 3, 4, 6});
  CHECK(list<double>(from_xtensor(xt::view(a, 1))) == std::vector<double>{4, 5, 6});
  CHECK(from_xtensor(xt::view(a, 1)).shape() == Shape{3});
  CHECK(list<double>(from_xtensor(xt::transpose(a))) == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(list<double>(from_xtensor(xt::flip(a, 1))) == std::vector<double>{3, 2, 1, 6, 5, 4});
  CHECK(list<double>(from_xtensor(a + 1.0)) == std::vector<double>{2, 3, 4, 5, 6, 7});
  CHECK(list<bool>(from_xtensor(a > 3.0)) == std::vector<bool>{false, false, false, true, true, true});
  CHECK(from_xtensor(xt::broadcast(xt::view(a, 0), {2, 3})).shape() == Shape{2, 3});
  CHECK(from_xtensor(xt::sum(a)).item<double>() == 21);
  CHECK(from_xtensor(xt::sum(a)).shape() == Shape{});
  CHECK(from_xtensor(xt::view(a, xt::range(0, 1), xt::range(0, 1))).shape() == Shape{1, 1});
}

TEST_CASE("arrays of fixed rank and shape go over too", "[xtensor]") {
  xt::xtensor<float, 2> a = {{1, 2}, {3, 4}, {5, 6}};
  CHECK(from_xtensor(a).shape() == Shape{3, 2});
  const float* data = a.data();
  CHECK(place<float>(from_xtensor(std::move(a))) == data);
  xt::xtensor_fixed<float, xt::xshape<2, 3>> f = {{1, 2, 3}, {4, 5, 6}};
  CHECK(list<float>(from_xtensor(f)) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("rank 0 and empty arrays go both ways", "[xtensor]") {
  xt::xarray<float> one = xt::xarray<float>::from_shape(std::vector<std::size_t>{});
  one() = 5;
  CHECK(from_xtensor(one).shape() == Shape{});
  CHECK(from_xtensor(one).item<float>() == 5);
  CHECK(to_xarray<float>(K::constant(5)).dimension() == 0);
  CHECK(to_xarray<float>(K::constant(5))() == 5);
  CHECK(xview<float>(K::constant(5))() == 5);
  xt::xarray<float> none = xt::xarray<float>::from_shape({2, 0, 3});
  CHECK(from_xtensor(none).shape() == Shape{2, 0, 3});
  CHECK(borrow_xtensor(none, 0).shape() == Shape{2, 0, 3});
  CHECK(from_xtensor(xt::transpose(none)).shape() == Shape{3, 0, 2});
  CHECK(from_xtensor(std::move(none)).shape() == Shape{2, 0, 3});
  CHECK(to_xarray<float>(K::zeros({0, 3})).shape(1) == 3);
  CHECK(xview<float>(K::zeros({0, 3})).size() == 0);
}

TEST_CASE("a moved array is taken over without a copy", "[xtensor]") {
  xt::xarray<float> a = {{1, 2, 3}, {4, 5, 6}};
  const float* data = a.data();
  Tensor t = from_xtensor(std::move(a));
  CHECK(t.data<float>() == data);
  CHECK(t.shape() == Shape{2, 3});
  std::thread([t = std::move(t)]() mutable { t = Tensor(); }).join();
}

TEST_CASE("a borrowed array keeps its owner until the last tensor is gone", "[xtensor]") {
  auto a = std::make_shared<xt::xarray<float>>(xt::xarray<float>{{1, 2, 3}, {4, 5, 6}});
  Tensor t = borrow_xtensor(*a, a);
  CHECK(t.data<float>() == a->data());
  CHECK(a.use_count() == 2);
  Tensor row = borrow_xtensor(xt::view(*a, 1), a);
  CHECK(row.data<float>() == a->data() + 3);
  CHECK(list<float>(row) == std::vector<float>{4, 5, 6});
  t = row = Tensor();
  CHECK(a.use_count() == 1);
  CHECK_THROWS_WITH(borrow_xtensor(xt::transpose(*a), a),
                    "borrow_xtensor: the elements do not lie row-major in one piece; from_xtensor copies them");
  CHECK_THROWS_AS(borrow_xtensor(xt::view(*a, xt::all(), 1), a), ValueError);
  CHECK(a.use_count() == 1);
}

TEST_CASE("xview shows the tensor's own elements and keeps it alive", "[xtensor]") {
  std::vector<float> released;
  auto view = [&] {
    std::vector<float> v{1, 2, 3, 4, 5, 6};
    Tensor t = borrow(v, {2, 3}, [&released] { released.push_back(1); });
    auto a = xview<float>(t);
    CHECK(&a(1, 2) == t.data<float>() + 5);
    static_assert(std::is_const_v<std::remove_reference_t<decltype(a(0, 0))>>, "a tensor does not change");
    return xview<float>(K::constant(a * 2.0f));
  }();
  CHECK(released.size() == 1);
  CHECK(view(1, 2) == 12);
  CHECK(xt::sum(view)() == 42);
}

TEST_CASE("what xview and to_xarray cannot show is an error", "[xtensor]") {
  Tensor half = K::constant({1.5, 2.5}, "float16");
  CHECK((to_xarray<float>(half) == xt::xarray<float>{1.5f, 2.5f}));
  CHECK((to_xarray<double>(K::cast(half, "bfloat16")) == xt::xarray<double>{1.5, 2.5}));
  CHECK((to_xarray<int>(half) == xt::xarray<int>{1, 2}));
  CHECK_THROWS_AS(xview<float>(half), TypeError);
  CHECK_THROWS_AS(xview<float>(K::placeholder({2})), ValueError);
  CHECK_THROWS_AS(to_xarray<float>(K::placeholder({2})), ValueError);
  CHECK_THROWS_AS(from_xtensor(xt::xarray<float>::from_shape(std::vector<std::size_t>(9, 1))), ValueError);
  static_assert(!std::is_constructible_v<Operand, xt::xarray<std::complex<double>>>, "a tensor has no such dtype");
  static_assert(!std::is_constructible_v<Operand, xt::xarray<long double>>, "a tensor has no such dtype");
}

TEST_CASE("an array stands where an operand does, with its shape", "[xtensor]") {
  xt::xarray<double> a = {{1, 2, 3}, {4, 5, 6}};
  Tensor v = K::variable(a);
  CHECK(v.shape() == Shape{2, 3});
  CHECK(v.dtype() == float32);
  CHECK(K::constant(a, "float64").dtype() == float64);
  CHECK(list<float>(K::sum(xt::transpose(a), 0)) == std::vector<float>{6, 15});
  CHECK(list<double>(K::constant(xt::view(a, xt::all(), 1), "float64")) == std::vector<double>{2, 5});
  CHECK(K::dot(v, xt::xarray<double>{1, 1, 1}).shape() == Shape{2});
  CHECK(K::stack({a, a + 1.0}).shape() == Shape{2, 2, 3});
  CHECK(K::constant({xt::xarray<double>{1, 2}, xt::xarray<double>{3, 4}}).shape() == Shape{2, 2});
  K::set_value(v, a * 2.0);
  CHECK(v(1, 2).item<float>() == 12);
  Tensor x = K::placeholder({None, 3});
  CHECK(K::function({x}, {x * 2})({a})[0].shape() == Shape{2, 3});
  CHECK_FALSE(K::is_tensor(a));
  xt::xarray<double, xt::layout_type::column_major> c = a;
  CHECK(list<float>(K::constant(c)) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK_THROWS_AS(K::constant(a + 0.5, "int32"), TypeError);
  a(0, 0) = 100;
  CHECK(v(0, 0).item<float>() == 2);
}
