// tests/nn_backend/arguments_test.cpp - what can be passed as a tensor, a shape, a name or a branch.
#include <kassette/backend.h>
#include <kassette/io.h>

#include <array>
#include <deque>
#include <filesystem>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

#if __has_include(<Eigen/Dense>)
#include <Eigen/Dense>
#endif

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using Vec = std::vector<double>;
using Ints = std::vector<std::int64_t>;

namespace {

/// Takes whatever an operand may be, and computes with it.
template <class T = void>
Tensor twice_and_more(const Operand& a, const Operand& b) {
  return a * 2 + b - -b;
}

Tensor three() { return K::constant(3); }

template <class T, class = void>
struct Walked : std::false_type {};
template <class T>
struct Walked<T, std::void_t<decltype(std::declval<T>().begin()), decltype(std::declval<T>().end())>> : std::true_type {
};

/// As Eigen's matrices look from outside. The elements lie `apart` from row to row, in a piece of memory of more.
template <bool vector>
class Strided {
 public:
  static constexpr bool IsVectorAtCompileTime = vector;
  Strided(int rows, int cols, int row_stride, int col_stride)
      : rows_(rows), cols_(cols), row_stride_(row_stride), col_stride_(col_stride) {
    for (int i = 0; i < 24; ++i) memory_.push_back(i);
  }
  long rows() const { return rows_; }
  long cols() const { return cols_; }
  long size() const { return rows_ * cols_; }
  const double* data() const { return memory_.data(); }
  double operator()(long i, long j) const {
    return memory_[static_cast<std::size_t>(i * row_stride_ + j * col_stride_)];
  }

 private:
  int rows_, cols_, row_stride_, col_stride_;
  std::vector<double> memory_;
};

}  // namespace

TEST_CASE("branches are values, functions, and lambdas with and without captures", "[arguments]") {
  Tensor p = K::constant({1, 2}), x = K::constant({5, 6});
  CHECK(values(K::in_train_phase([] { return K::zeros({2}); }, p)) == Vec{1, 2});
  CHECK(values(K::in_train_phase([] { return K::zeros({2}); }, p, 1)) == Vec{0, 0});
  CHECK(values(K::in_test_phase([] { return K::zeros({2}); }, [] { return K::ones({2}); })) == Vec{0, 0});
  CHECK(values(K::switch_(
            true, [] { return K::zeros({2}); }, [&] { return x; })) == Vec{0, 0});
  CHECK(values(K::switch_(
            false, [] { return K::zeros({}); }, three)) == Vec{3});
  CHECK(values(K::switch_(false, three, &three)) == Vec{3});
  int calls = 0;
  CHECK(values(K::switch_(
            true,
            [&, n = 1.0]() mutable {
              ++calls;
              n += 1;
              return x * n;
            },
            x)) == Vec{10, 12});
  CHECK(calls == 1);
  CHECK(values(K::switch_(true, {1, 2}, x)) == Vec{1, 2});
  CHECK(values(K::switch_(true, x.shape()[0], 0)) == Vec{2});
  // A callable that returns a number is called; as an operand it would be a pointer to a function, and that a bool.
  CHECK_FALSE(std::is_convertible_v<double (*)(double), Operand>);
  CHECK_FALSE(std::is_convertible_v<double (&)(double), Operand>);
  CHECK_FALSE(std::is_constructible_v<Operand, double (*)(double)>);
}

TEST_CASE("a template over operands computes with them", "[arguments]") {
  Tensor x = K::constant({1, 2});
  CHECK(values(twice_and_more(x, 1)) == Vec{4, 6});
  CHECK(values(twice_and_more(3, x)) == Vec{8, 10});
  CHECK(values(twice_and_more(1.5, 1)) == Vec{5});
  CHECK(values(twice_and_more({1, 2}, std::vector<float>{0, 1})) == Vec{2, 6});
  const Operand a = 7, b = 4, yes = true;
  CHECK(values(a % b) == Vec{3});
  CHECK(values(a / b) == Vec{1.75});
  CHECK(values(a > b) == Vec{1});
  CHECK(values(a <= b) == Vec{0});
  CHECK(values(+a) == Vec{7});
  CHECK(values(~yes) == Vec{0});
  CHECK(values(x * x.shape()[0]) == Vec{2, 4});
  CHECK(values(x / K::int_shape(x)[0]) == Vec{0.5, 1});
  CHECK(values(x[K::int_shape(x)[0] - 1]) == Vec{2});
  CHECK(values(x[std::size_t(1)]) == Vec{2});
  CHECK(values(x[slice(0, x.shape()[0])]) == Vec{1, 2});
  CHECK(values(x * 2.0L) == Vec{2, 4});
  CHECK_THROWS_WITH(x * K::placeholder({None}).shape()[0],
                    "int_shape: this dimension is unknown until the function is called; use K::shape(x)[i]");
  CHECK_THROWS_AS(x[SIZE_MAX], ValueError);
}

TEST_CASE("a branch's callable may return a number, which is one as if it stood there", "[arguments]") {
  Tensor x = K::constant({1, 2}, "float64");
  int calls = 0;
  auto half = [&] {
    ++calls;
    return 0.5;
  };
  CHECK(values(K::switch_(true, x, half)) == Vec{1, 2});
  CHECK(calls == 0);  // only the one that is taken is called
  Tensor taken = K::switch_(false, x, half);
  CHECK(values(taken) == Vec{0.5, 0.5});
  CHECK(taken.dtype() == float64);
  CHECK(calls == 1);
  CHECK(values(K::switch_(K::constant({true, false}, "bool"), x, [] { return 7; })) == Vec{1, 7});
  CHECK(values(K::switch_(
            true, [] { return true; }, [] { return 0; })) == Vec{1});
  CHECK(values(K::in_train_phase(half, x, 1)) == values(K::in_train_phase(0.5, x, 1)));
  CHECK(values(K::in_test_phase(half, x)) == Vec{0.5, 0.5});

  Tensor in = K::placeholder({2}, None, "float64"), positive = K::sum(in) > 0;
  Tensor y = K::switch_(positive, in * in, [] { return -1; });
  auto f = K::function({in}, {y, K::gradients(y, {in})[0]});
  CHECK(values(f({{1, 2}})[0]) == Vec{1, 4});
  CHECK(values(f({{1, 2}})[1]) == Vec{2, 4});
  CHECK(values(f({{-1, -2}})[0]) == Vec{-1, -1});
  CHECK(values(f({{-1, -2}})[1]) == Vec{0, 0});
}

TEST_CASE("options of a function are filled member by member, and dependencies are listed in braces", "[arguments]") {
  Tensor x = K::placeholder({}), scale = K::placeholder({}), n = K::variable(0), factor = K::variable(10);
  K::FunctionOptions options;
  options.updates = {{factor, 0}};
  options.updates = {{n, n + x}};  // in place of those before
  options.feed_dict = {{scale, factor}};
  K::FunctionOptions same = options;
  same.updates = K::Updates(same.updates);
  auto f = K::function({x}, {x * scale}, same);
  CHECK(values(f({3})[0]) == Vec{30});
  CHECK(values(f({4})[0]) == Vec{40});
  CHECK(values(n) == Vec{7});
  CHECK(values(factor) == Vec{10});

  Tensor add = K::update_add(n, x), after;
  {
    K::ControlDependencies scope({add});
    after = 1 * n;
  }
  CHECK(values(K::function({x}, {after, add})({5})[0]) == Vec{12});
}

TEST_CASE("range-for over a temporary does not compile", "[arguments]") {
  Tensor x = K::zeros({2, 3});
  // x.shape().begin() and x.shape().end() would be of two copies.
  CHECK_FALSE(Walked<Shape>::value);
  CHECK_FALSE(Walked<Values<int>>::value);
  CHECK_FALSE(Walked<Tensors>::value);
  CHECK_FALSE(Walked<NamedTensors>::value);
  CHECK((Walked<Shape&>::value && Walked<const Values<int>&>::value && Walked<Tensors&>::value &&
         Walked<const Tensors&>::value && Walked<const NamedTensors&>::value));
  std::int64_t sum = 0;
  for (auto n : x.shape()) sum += n;
  for (int v : (x + 1).to_vector<int>()) sum += v;
  for (const Tensor& t : Tensors{x, x}) sum += t.size();
  CHECK(sum == 5 + 6 + 12);
  Ints dims = x.shape();
  std::vector<int> small = K::int_shape(K::placeholder({None, 3}));
  CHECK(dims == Ints{2, 3});
  CHECK(small == std::vector<int>{-1, 3});
  CHECK_FALSE(std::is_convertible_v<Shape, std::string>);
  const Tensor& kept = NamedTensors({{"a", x}})["a"];
  CHECK(values(kept).size() == 6);
  const int& second = K::constant({4, 5}).to_vector<int>()[1];
  CHECK(second == 5);
}

TEST_CASE("names, dtypes, devices and indices are pointers and views too", "[arguments]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}});
  const char* pointer = "float64";
  char buffer[] = "int32";
  char* changeable = buffer;
  std::string text = "float16xyz";
  std::string_view view = std::string_view(text).substr(0, 7);  // no NUL behind it
  CHECK(K::cast(x, pointer).dtype() == float64);
  CHECK(K::cast(x, buffer).dtype() == int32);
  CHECK(K::cast(x, changeable).dtype() == int32);
  CHECK(K::cast(x, view).dtype() == float16);
  CHECK(x.dtype() != view);
  CHECK_THROWS_WITH(K::cast(x, std::string_view("float64").substr(0, 5)), Catch::Contains("dtype 'float' is unknown"));
  CHECK_THROWS_WITH(K::cast(x, std::string_view()), Catch::Contains("dtype '' is unknown"));
  CHECK_THROWS_AS(K::cast(x, std::string_view("float3264")), TypeError);
  const char unterminated[4] = {'b', 'o', 'o', 'l'};
  CHECK(DType(unterminated) == bool_);
  CHECK_THROWS_AS(DType(std::string_view("bool\0junk", 9)), TypeError);
  const char* none = nullptr;
  CHECK_FALSE(DType(none).given());
  CHECK_FALSE(Device(none).given());
  CHECK_FALSE(Name(none).given());
  CHECK(Name(view).size() == 7);
  CHECK(Name("ab\0c").size() == 2);
  CHECK(x.to(std::string_view("cpux").substr(0, 3)).device() == cpu);
  CHECK_THROWS_AS(x.to(std::string_view("cuda:12345").substr(0, 5)), DeviceError);
  const char* last = "..., -1";
  CHECK(values(x[last]) == Vec{3, 6});
  CHECK(values(x[std::string("0")]) == Vec{1, 2, 3});
  CHECK(values(x[std::string_view("0, 1:9").substr(0, 4)]) == Vec{2});
  CHECK_THROWS_AS(x[none], ValueError);
  Tensor v = K::variable({1}, pointer, std::string_view("weights").substr(0, 6));
  CHECK(v.dtype() == float64);
  NamedTensors named({{view, x}});
  CHECK(named.contains("float16"));
  CHECK(named.contains(view));
  CHECK_THROWS_WITH(load_npz(none), "load_npz: path is None");
  CHECK_THROWS_WITH(load_npz(std::string_view("/no/such/file.npz").substr(0, 8)),
                    Catch::Contains("load_npz: /no/such: "));
  // 0 is no name, and nullptr is not either.
  CHECK_FALSE(std::is_constructible_v<Name, int>);
  CHECK_FALSE(std::is_convertible_v<int, Name>);
  CHECK_FALSE(std::is_convertible_v<std::nullptr_t, Name>);
  CHECK_FALSE(std::is_convertible_v<std::nullptr_t, DType>);
  CHECK_FALSE(std::is_convertible_v<int, DType>);
  CHECK_FALSE(std::is_convertible_v<const void*, Name>);
  CHECK_FALSE(std::is_convertible_v<std::vector<char>, Name>);
}

TEST_CASE("nested containers are arrays", "[arguments]") {
  std::vector<std::vector<double>> rows{{1, 2, 3}, {4, 5, 6}};
  Tensor x = K::constant(rows);
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.dtype() == float32);
  CHECK(values(x) == Vec{1, 2, 3, 4, 5, 6});
  CHECK(values(K::constant(rows, "float64") + rows) == Vec{2, 4, 6, 8, 10, 12});
  CHECK(values(K::variable(rows) * 2) == Vec{2, 4, 6, 8, 10, 12});
  CHECK(values(K::sum(rows, 0)) == Vec{5, 7, 9});
  CHECK(K::constant(std::vector<std::array<float, 2>>{{1, 2}, {3, 4}}).shape() == Shape{2, 2});
  CHECK(values(K::constant(std::list<std::deque<int>>{{1, 2}, {3, 4}})) == Vec{1, 2, 3, 4});
  CHECK(K::constant(std::vector<std::vector<std::vector<int>>>{{{1}, {2}, {3}}}).shape() == Shape{1, 3, 1});
  CHECK(values(K::constant(std::vector<bool>{true, false}, "bool")) == Vec{1, 0});
  CHECK(values(K::constant(std::vector<std::vector<bool>>{{true}, {false}}, "bool")) == Vec{1, 0});
  CHECK(values(K::constant(std::vector<unsigned>{4000000000u}, "int64")) == Vec{4e9});
  CHECK(values(K::constant(std::vector<long double>{0.5L}, "float64")) == Vec{0.5});
  std::initializer_list<double> list{1, 2};
  CHECK(values(K::constant(list)) == Vec{1, 2});
  const double flat[3] = {1, 2, 3};
  const int table[2][3] = {{1, 2, 3}, {4, 5, 6}};
  CHECK(values(K::constant(flat)) == Vec{1, 2, 3});
  CHECK(K::constant(table).shape() == Shape{2, 3});
  CHECK(values(K::constant(table)) == Vec{1, 2, 3, 4, 5, 6});
  CHECK(K::constant(std::vector<std::vector<double>>{}).shape() == Shape{0});
  CHECK(K::constant(std::vector<std::vector<double>>{{}, {}}).shape() == Shape{2, 0});
  CHECK(values(K::constant({rows, rows})[1][1]) == Vec{4, 5, 6});
  CHECK_THROWS_WITH(K::constant(std::vector<std::vector<double>>{{1, 2}, {3}}),
                    "constant: a nested container is ragged: along axis 1 a size is 1, and 2 before it");
  CHECK_THROWS_WITH(K::zeros({2}) + std::vector<std::vector<double>>({{}, {3}}),
                    "add: a nested container is ragged: along axis 1 a size is 1, and 0 before it");
  CHECK_THROWS_AS(K::constant(std::vector<std::vector<double>>{{0.5}}, "int32"), TypeError);
  std::vector<
      std::vector<std::vector<std::vector<std::vector<std::vector<std::vector<std::vector<std::vector<int>>>>>>>>>
      deep(1);
  deep[0].resize(1);
  deep[0][0].resize(1);
  deep[0][0][0].resize(1);
  deep[0][0][0][0].resize(1);
  deep[0][0][0][0][0].resize(1);
  deep[0][0][0][0][0][0].resize(1);
  deep[0][0][0][0][0][0][0].resize(1);
  deep[0][0][0][0][0][0][0][0] = {1};
  CHECK_THROWS_WITH(K::constant(deep), "constant: a container nested deeper than 8");
  // Texts are no numbers, and a shape has sizes that may be None.
  CHECK_FALSE(std::is_convertible_v<std::string, Operand>);
  CHECK_FALSE(std::is_convertible_v<std::vector<std::string>, Operand>);
  CHECK_FALSE(std::is_convertible_v<const char*, Operand>);
  CHECK_FALSE(std::is_convertible_v<const char(&)[4], Operand>);
  CHECK_FALSE(std::is_convertible_v<std::filesystem::path, Operand>);
  CHECK_FALSE(std::is_convertible_v<Shape, Operand>);
}

TEST_CASE("matrices are read by their indices, whatever their order in memory", "[arguments]") {
  Strided<false> column_major(2, 3, 1, 2), row_major(2, 3, 3, 1);
  CHECK(K::constant(column_major).shape() == Shape{2, 3});
  CHECK(values(K::constant(column_major)) == Vec{0, 2, 4, 1, 3, 5});
  CHECK(values(K::constant(row_major)) == Vec{0, 1, 2, 3, 4, 5});
  CHECK(values(K::ones({2, 3}) * column_major) == Vec{0, 2, 4, 1, 3, 5});
  // A row of a matrix that lies column by column: its data() is not the row.
  Strided<true> row(1, 3, 0, 4);
  CHECK(K::constant(row).shape() == Shape{3});
  CHECK(values(K::constant(row)) == Vec{0, 4, 8});
#if __has_include(<Eigen/Dense>)
  Eigen::MatrixXd m(2, 3);
  m << 1, 2, 3, 4, 5, 6;
  Eigen::Matrix<float, 2, 3, Eigen::RowMajor> r = m.cast<float>();
  CHECK(values(K::constant(m)) == Vec{1, 2, 3, 4, 5, 6});
  CHECK(values(K::constant(r)) == Vec{1, 2, 3, 4, 5, 6});
  CHECK(values(K::constant(m.transpose())) == Vec{1, 4, 2, 5, 3, 6});
  CHECK(values(K::constant(m * m.transpose())) == Vec{14, 32, 32, 77});
  CHECK(values(K::constant(m.row(1))) == Vec{4, 5, 6});
  CHECK(K::constant(m.row(1)).shape() == Shape{3});
  CHECK(values(K::constant(m.col(1))) == Vec{2, 5});
  CHECK(values(K::constant(m.block(0, 1, 2, 2))) == Vec{2, 3, 5, 6});
  CHECK(values(K::constant((m.array() > 2).matrix(), "bool")) == Vec{0, 0, 1, 1, 1, 1});
  CHECK(values(K::constant(Eigen::VectorXi::LinSpaced(3, 1, 3))) == Vec{1, 2, 3});
  CHECK(values(K::ones({2, 3}) + m) == Vec{2, 3, 4, 5, 6, 7});
  CHECK(values(K::dot(m, Eigen::Vector3d(1, 0, 1))) == Vec{4, 10});
#endif
}

TEST_CASE("arrays whose dtype is known at run time", "[arguments]") {
  const std::int16_t memory[] = {1, 2, 3, 4, 5, 6};
  std::string dtype = "int16";
  Tensor x = from_memory(memory, dtype, {2, 3});
  CHECK(x.dtype() == int16);
  CHECK(x.shape() == Shape{2, 3});
  CHECK(values(x) == Vec{1, 2, 3, 4, 5, 6});
  CHECK(values(from_memory(memory, dtype, {3, 2}, {1, 3})) == Vec{1, 4, 2, 5, 3, 6});
  CHECK(values(from_memory(memory + 5, dtype, {3}, {-2})) == Vec{6, 4, 2});
  CHECK(values(from_memory(memory, dtype, {2, 2}, {0, 1})) == Vec{1, 2, 1, 2});
  CHECK(values(from_memory(memory, dtype, {})) == Vec{1});
  CHECK(from_memory(nullptr, dtype, {0, 3}).shape() == Shape{0, 3});
  std::vector<int> shape{3, 2}, strides{1, 3};
  CHECK(values(from_memory(memory, dtype, shape, strides)) == Vec{1, 4, 2, 5, 3, 6});
  const unsigned char bytes[] = {0, 7, 255, 0, 0, 0x80, 0x3f};
  CHECK(values(from_memory(bytes, "bool", {3})) == Vec{0, 1, 1});
  CHECK(values(from_memory(bytes + 3, "float32", {1})) == Vec{1});  // not aligned
  CHECK_THROWS_WITH(from_memory(memory, dtype, {2, 3}, {1}),
                    "from_memory: strides are 1 for the shape (2, 3); there must be one for each axis");
  CHECK_THROWS_WITH(from_memory(memory, dtype, {None, 3}),
                    "from_memory: shape holds None; sizes must be known and not negative");
  CHECK_THROWS_WITH(from_memory(memory, dtype, {-1}),
                    "from_memory: shape holds -1; sizes must be known and not negative");
  CHECK_THROWS_WITH(from_memory(memory, dtype, None), "from_memory: shape is None");
  CHECK_THROWS_WITH(from_memory(memory, None, {2}), "from_memory: dtype is None");
  CHECK_THROWS_WITH(from_memory(nullptr, dtype, {2}), "from_memory: data is a null pointer for the shape (2,)");
  CHECK_THROWS_WITH(from_memory(memory, dtype, {2}, {None}),
                    "from_memory: strides hold None; they must be numbers of elements");

  int released = 0;
  {
    Tensor lent = borrow(memory, dtype, {2, 3}, [&] { ++released; });
    CHECK(lent.data<std::int16_t>() == memory);
    CHECK(values(lent) == Vec{1, 2, 3, 4, 5, 6});
    CHECK(released == 0);
  }
  CHECK(released == 1);
  alignas(4) const unsigned char odd[] = {0, 0, 0, 0, 0, 0, 0, 2};
  CHECK_THROWS_WITH(borrow(odd + 1, "float32", {1}, 0),
                    "borrow: data is not aligned for float32; copy it with from_memory");
  CHECK_THROWS_WITH(borrow(odd, "bool", {8}, 0),
                    "borrow: data has a byte that is neither 0 nor 1 for bool; copy it with from_memory");
  CHECK_THROWS_WITH(borrow(odd, "bool", None, 0), "borrow: shape is None");
  CHECK_THROWS_WITH(borrow(odd, None, {1}, 0), "borrow: dtype is None");
  CHECK(released == 1);
}

TEST_CASE("shapes that are put together at run time", "[arguments]") {
  std::vector<Dim> some;
  some.push_back(None);
  some.push_back(3);
  CHECK(K::placeholder(some).shape() == Shape{-1, 3});
  std::vector<Extent> same;
  for (int i = 0; i < 2; ++i) same.push_back(K::placeholder(some).shape()[i]);
  CHECK(K::placeholder(same).shape() == Shape{-1, 3});
  CHECK(K::placeholder(K::placeholder(some).shape()).shape() == Shape{-1, 3});
  CHECK_THROWS_WITH(K::placeholder(Ints{-1, 3}), "placeholder: shape holds -1; an unknown size is K::None");
  Tensor x = K::zeros({2, 3});
  std::vector<Tensor> sizes{K::shape(x)[1], K::shape(x)[0]};
  CHECK(K::zeros(sizes).shape() == Shape{3, 2});
  CHECK_FALSE(std::is_convertible_v<std::vector<double>, Dims>);
  std::size_t n = 4;
  long long wide = 4;
  CHECK(K::zeros(n).shape() == Shape{4});
  CHECK(K::zeros(wide).shape() == Shape{4});
  CHECK(K::zeros(4u).shape() == Shape{4});
  CHECK(K::zeros(x.shape()[1]).shape() == Shape{3});
  CHECK(K::sum(x, std::size_t(1)).shape() == Shape{2});
  CHECK(K::sum(x, -1L).shape() == Shape{2});
  CHECK(K::sum(x, std::vector<long>{0, 1}).shape() == Shape{});
  CHECK_THROWS_AS(K::sum(x, std::int64_t(1) << 32), ValueError);
  CHECK_THROWS_AS(K::sum(x, std::vector<std::int64_t>{std::int64_t(1) << 32}), ValueError);
  CHECK_FALSE(std::is_convertible_v<bool, Axes>);
}

TEST_CASE("a copy of a Callable refers to what the other did, not to the other", "[arguments]") {
  auto seven = [] { return 7; };
  auto eight = [] { return 8; };
  std::optional<Callable<int()>> first(seven);
  Callable<int()> second(*first);
  first.emplace(eight);
  CHECK(second() == 7);
}
