// tests/fuzz/kinds_samples.cpp - the random calls of np and nn: each row of their samples is a kind, called with other
// shapes, dtypes and values than the sweeps give it.
#include <algorithm>

#include "tests/fuzz/calls.h"
#include "tests/sweeps/sample.h"

namespace kassette::test {
namespace {

/// A case of the sample, mostly with one size exchanged for another throughout, at times with inputs of any shape.
Shapes shapes_for(const Sample& s, Arguments& a) {
  const std::vector<Shapes> cases = cases_of(s, a.random.one_in(8) && *s.bad_shapes ? s.bad_shapes : s.cases);
  Shapes shapes = cases[static_cast<std::size_t>(a.random.below(static_cast<int>(cases.size())))];
  const std::int64_t from = 1 + a.random.below(4), to = a.random.of<std::int64_t>({0, 1, 2, 3, 4, 5, 7, 17, 33});
  const bool exchange = a.random.one_in(2);
  for (Shape& shape : shapes) {
    if (a.random.one_in(16)) {
      shape = a.shape();
      continue;
    }
    std::int64_t dims[kMaxRank];
    std::copy(shape.begin(), shape.end(), dims);
    for (int i = 0; i < shape.rank(); ++i)
      if (exchange && dims[i] == from) dims[i] = to;
    shape = Shape(dims, shape.rank());
  }
  return shapes;
}

void make(const Sample& s, Arguments& a, Call& call) {
  const std::vector<DType> dtypes = dtypes_of(s.takes);
  const DType common =
      a.random.one_in(16) ? a.dtype()
      : a.random.one_in(2) && s.takes != Takes::integers && s.takes != Takes::bits && s.takes != Takes::bools
          ? float32
          : dtypes[static_cast<std::size_t>(a.random.below(static_cast<int>(dtypes.size())))];
  int places[kMaxInputs] = {}, n = 0;
  for (const Shape& shape : shapes_for(s, a)) {
    const Input& input = s.in[n];
    const DType dtype = a.random.one_in(16) ? a.dtype() : input.dtype.given() ? input.dtype : common;
    places[n++] = input.optional && a.random.one_in(8)    ? -1
                  : a.random.one_in(4) || dtype.is_bool() ? a.with(shape, dtype)
                                                          : a.between(shape, dtype, input.low, input.high);
  }
  a.say(std::string(", ") + s.expression);
  call.draws = s.traits.draws;
  call.run = [&s, places, n](const Tensors& in) {
    Tensor arguments[kMaxInputs];
    for (int i = 0; i < n; ++i)
      if (places[i] >= 0) arguments[i] = in[places[i]];
    return s.call(arguments);
  };
}

}  // namespace

void add_samples(std::vector<Kind>& kinds) {
  for (const Sample& s : op_samples())
    if (s.traits.np || s.traits.nn) kinds.push_back({s.name, [&s](Arguments& a, Call& call) { make(s, a, call); }});
}

}  // namespace kassette::test
