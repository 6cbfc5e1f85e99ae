// tests/fuzz/calls.h - random calls of K functions, and the random numbers from which they are made.
#pragma once
#include <kassette/backend.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

namespace kassette::test {

/// The same numbers for the same seed on every machine (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  template <class T>
  T of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

/// Thrown by the callables of a call at times; it has to reach the caller unchanged.
struct Thrown {};

/// A call that is made repeatedly: eagerly, and recorded with placeholders in place of its tensors.
struct Call {
  std::string text;  // as a user would write it
  Tensors in;
  std::function<Tensors(const Tensors& in)> run;
  bool draws = false;       // the values differ from call to call
  bool only_eager = false;  // it makes variables, or reads values
};

/// Makes the arguments of one call.
class Arguments {
 public:
  Arguments(Random& r, Call& call) : random(r), call_(call) {}
  /// Each adds a tensor to call.in and returns its index: one of any kind, one that often fits an earlier one,
  /// integers, or numbers for a shape.
  int any();
  int like(int other);
  int ints(int below);
  int shape_tensor();
  int condition();
  int matrix_beside(int other);  // for a product
  int with(const Shape& asked, DType dtype);
  int between(const Shape& asked, DType dtype, double low, double high);

  int axis();
  std::vector<int> axes();
  bool all_axes() { return random.one_in(4); }
  std::vector<std::int64_t> sizes();  // a shape argument: with -1, too many, too large, negative ones
  int count();
  double number();
  DType dtype();
  DType float_dtype();
  Shape shape();
  const Shape& shape_of(int place) const { return shapes_[static_cast<std::size_t>(place)]; }
  Random& random;
  bool long_axes = true;  // sizes of 2^40 beside a 0; loops would go over them
  void say(const std::string& words) { call_.text += words; }

 private:
  Tensor filled(const Shape& shape, DType dtype);
  int add(const Tensor& x);
  Call& call_;
  std::vector<Shape> shapes_;
};

/// A value as a user would write it.
template <class T>
std::string words(const T& x) {
  std::ostringstream os;
  os << x;
  return os.str();
}
template <class T>
std::string words(const std::vector<T>& list) {
  std::string s = "{";
  for (const T& x : list) s += (s.size() > 1 ? ", " : "") + words(x);
  return s + "}";
}

/// The number of the run of a callable that throws, counted down; not above 0: none throws. Set anew for each run of
/// the call.
inline thread_local int fuse = -1;
inline void burn() {
  if (fuse > 0 && --fuse == 0) throw Thrown();
}

/// What a call does, in a Kind's make.
#define RUN call.run = [=](const Tensors& in) -> Tensors

struct Kind {
  const char* name;  // of the function
  std::function<void(Arguments& a, Call& call)> make;
};
/// Every K function that takes or makes tensors, and every row of the samples of np and nn.
const std::vector<Kind>& kinds();
void add_convolutions(std::vector<Kind>& kinds);
void add_samples(std::vector<Kind>& kinds);

Call random_call(std::uint64_t seed);

}  // namespace kassette::test
