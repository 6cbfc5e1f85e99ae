// tests/fuzz/calls.cpp - the random calls: the arguments, and a call that is made of them.
#include "tests/fuzz/calls.h"

#include <climits>
#include <cmath>

namespace kassette::test {

namespace K = kassette::backend;

namespace {

constexpr std::int64_t kMaxElements = 3000;

std::int64_t elements(const Shape& s) {
  std::int64_t n = 1;
  for (std::int64_t d : s) {
    if (d == 0) return 0;
    n = n > kMaxElements ? n : n * std::min<std::int64_t>(d, kMaxElements + 1);
  }
  return n;
}

/// Sizes beside a 0 have to fit too.
bool addressable(const std::int64_t* dims, int rank) {
  double n = 8;
  for (int i = 0; i < rank; ++i) n *= dims[i] ? static_cast<double>(dims[i]) : 1;
  return n < 0x1p56;
}

}  // namespace

DType Arguments::dtype() {
  if (random.one_in(3)) return random.of<DType>({float32, float32, float64});
  return DType(static_cast<DType::Code>(DType::kBool + random.below(DType::kCount - DType::kBool)));
}
DType Arguments::float_dtype() { return random.of<DType>({float32, float32, float64, float16, bfloat16}); }

Shape Arguments::shape() {
  std::int64_t dims[8];
  int rank = random.one_in(4) ? random.below(9) : random.below(4);
  for (int i = 0; i < rank; ++i)
    dims[i] = random.one_in(60) && long_axes
                  ? random.of<std::int64_t>({std::int64_t(1) << 40, (std::int64_t(1) << 31) - 1, 100'000})
                  : random.of<std::int64_t>({1, 1, 2, 2, 3, 3, 4, 5, 0});
  while (rank > 0 && (elements(Shape(dims, rank)) > kMaxElements || !addressable(dims, rank)))
    dims[random.below(rank)] = random.below(2);
  return Shape(dims, rank);
}

double Arguments::number() {
  if (random.one_in(12))
    return random.of<double>({NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-300, -0.0, 3e38, 70000, -9e18, 1.9e19});
  if (random.one_in(3)) return random.below(7) - 3;
  return random.unit() * 6 - 3;
}

Tensor Arguments::filled(const Shape& shape, DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(elements(shape)));
  bool wild = random.one_in(6);
  for (double& v : values) v = wild ? number() : random.one_in(2) ? random.below(7) - 2 : random.unit() * 4 - 2;
  if (values.empty()) return K::zeros(shape, dtype);
  Tensor x = K::reshape(K::cast(K::constant(values, "float64"), dtype), shape);
  switch (random.below(8)) {  // a view of something larger, or a copy that nobody shares
    case 0: return shape.rank() < 8 && values.size() > 1 ? Tensor(K::stack({x, x})[1]) : x;
    case 1: return K::transpose(K::get_value(K::transpose(x)));
    default: return x;
  }
}

int Arguments::with(const Shape& asked, DType dtype) {
  const Shape shape = elements(asked) > kMaxElements ? Shape{} : asked;
  return add(filled(shape, dtype));
}
int Arguments::between(const Shape& asked, DType dtype, double low, double high) {
  const Shape shape = elements(asked) > kMaxElements ? Shape{} : asked;
  std::vector<double> values(static_cast<std::size_t>(elements(shape)));
  for (double& v : values)
    v = dtype.is_float() ? low + random.unit() * (high - low) : low + random.below(std::max(1, int(high - low) + 1));
  if (values.empty()) return add(K::zeros(shape, dtype));
  return add(K::reshape(K::cast(K::constant(values, "float64"), dtype), shape));
}
int Arguments::add(const Tensor& x) {
  call_.in.push_back(x);
  shapes_.push_back(x.shape());
  const int place = static_cast<int>(call_.in.size()) - 1;
  call_.text += (place ? ", " : "") + words(x.dtype()) + words(x.shape());
  return place;
}
int Arguments::any() {
  int n = static_cast<int>(call_.in.size());
  if (n && random.one_in(4)) return like(random.below(n));
  return with(shape(), dtype());
}
/// Of the same shape, or of one that broadcasts, or nearly so; or the very same tensor.
int Arguments::like(int other) {
  Shape s = shape_of(other);
  DType d = random.one_in(8) ? dtype() : call_.in[other].dtype();
  if (random.one_in(8)) {
    call_.in.push_back(call_.in[other]);
    shapes_.push_back(s);
    call_.text += ", the same";
    return static_cast<int>(call_.in.size()) - 1;
  }
  std::int64_t dims[8];
  int rank = 0, skip = random.one_in(6) && s.rank() > 0 ? 1 + random.below(s.rank()) : 0;
  for (std::int64_t n : s)
    if (skip-- <= 0) dims[rank++] = random.one_in(8) ? 1 : random.one_in(20) ? random.below(4) : n;
  Shape found(dims, rank);
  return with(elements(found) > kMaxElements ? s : found, d);
}
int Arguments::ints(int below) {
  int place = random.one_in(3) ? with(shape(), random.of<DType>({int32, int64, int32, uint8}))
                               : with({random.below(4)}, random.of<DType>({int32, int64}));
  if (!random.one_in(4) && elements(shape_of(place)) > 0)
    call_.in[place] = K::cast(K::constant(0, "int32") + K::cast(call_.in[place], "int32") % std::max(1, below),
                              call_.in[place].dtype());
  return place;
}
int Arguments::shape_tensor() {
  std::vector<std::int64_t> n = random.one_in(8) ? sizes() : std::vector<std::int64_t>();
  if (n.empty())
    for (int i = random.below(5); i > 0; --i) n.push_back(random.below(5) - (random.one_in(8) ? 2 : 0));
  DType d = random.of<DType>({int32, int64, int64, uint8, float32});
  Tensor t = n.empty() ? K::zeros({0}, d) : K::cast(K::constant(n, "int64"), d);
  if (random.one_in(12)) t = K::expand_dims(t, 0);
  call_.in.push_back(t);
  shapes_.push_back(t.shape());
  call_.text += ", " + words(d) + " sizes " + words(n);
  return static_cast<int>(call_.in.size()) - 1;
}
int Arguments::condition() {
  return random.one_in(3)
             ? any()
             : with(random.one_in(2) ? Shape{} : Shape{random.below(4)}, random.one_in(4) ? dtype() : bool_);
}
int Arguments::matrix_beside(int other) {
  Shape s = shape_of(other);
  if (s.rank() < 1 || random.one_in(5)) return like(other);
  std::int64_t inner = s[-1];
  std::int64_t dims[8];
  int rank = 1 + random.below(random.one_in(4) ? 8 : 3);
  for (int i = 0; i < rank; ++i) dims[i] = random.below(4);
  dims[std::max(0, rank - 2)] = random.one_in(10) ? random.below(4) : inner;
  if (rank > 2 && random.one_in(2)) dims[0] = s[0];
  Shape found(dims, rank);
  return with(elements(found) > kMaxElements ? s : found, random.one_in(8) ? dtype() : call_.in[other].dtype());
}
int Arguments::axis() {
  if (random.one_in(12)) return random.of<int>({INT_MIN, INT_MAX, -9, 8, 9, -10, 127, 128, -128, -129, 255, 256});
  int rank = shapes_.empty() ? 3 : shapes_[0].rank();
  return rank == 0 ? random.below(3) - 1 : random.below(2 * rank) - rank;
}
std::vector<int> Arguments::axes() {
  std::vector<int> list;
  for (int n = random.one_in(20) ? random.below(12) : random.below(4); n > 0; --n) list.push_back(axis());
  return list;
}
std::vector<std::int64_t> Arguments::sizes() {
  std::vector<std::int64_t> list;
  if (!shapes_.empty() && random.one_in(2)) {  // what may fit
    list.assign(shapes_[0].begin(), shapes_[0].end());
    if (!list.empty() && random.one_in(2))
      list[static_cast<std::size_t>(random.below(static_cast<int>(list.size())))] = -1;
    if (random.one_in(3) && list.size() < 9)
      list.insert(list.begin() + random.below(static_cast<int>(list.size()) + 1), 1);
    return list;
  }
  for (int n = random.one_in(10) ? random.below(12) : random.below(5); n > 0; --n)
    list.push_back(random.one_in(12)
                       ? random.of<std::int64_t>({INT64_MIN, INT64_MIN + 1, INT64_MAX, -1, -2, std::int64_t(1) << 40,
                                                  std::int64_t(1) << 32, std::int64_t(1) << 62})
                       : random.below(5));
  return list;
}
int Arguments::count() {
  return random.one_in(12) ? random.of<int>({INT_MIN, INT_MAX, -1, 1 << 30, 0}) : random.below(5);
}

Call random_call(std::uint64_t seed) {
  Random r(seed);
  const Kind& kind = kinds()[static_cast<std::size_t>(r.below(static_cast<int>(kinds().size())))];
  Call call;
  call.text = std::string(kind.name) + "(";
  Arguments arguments(r, call);
  kind.make(arguments, call);
  const int limit = r.one_in(10) ? 1 + r.below(4) : -1;
  if (limit > 0) call.text += ", callables throw at " + words(limit);
  call.run = [run = std::move(call.run), limit](const Tensors& in) {
    fuse = limit;
    return run(in);
  };
  if (!call.only_eager && r.one_in(3)) {  // and what is differentiated by its float inputs
    call.text += ", with gradients";
    call.run = [run = std::move(call.run)](const Tensors& in) {
      Tensors out = run(in), floats;
      Tensor loss;
      for (const Tensor& y : out)
        if (y.dtype().is_float()) loss = loss.defined() ? loss + K::cast(K::sum(y), loss.dtype()) : K::sum(y);
      for (const Tensor& x : in)
        if (x.dtype().is_float()) floats.push_back(x);
      if (!loss.defined() || floats.empty()) return out;
      for (const Tensor& g : K::gradients(loss, floats)) out.push_back(g);
      return out;
    };
  }
  call.text += ")";
  return call;
}

}  // namespace kassette::test
