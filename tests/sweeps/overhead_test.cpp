// tests/sweeps/overhead_test.cpp - every sample on its smallest case, between marks, so that tests/scripts/overhead.sh
// can count the instructions. Hidden: it checks nothing by itself.
#include <cstdio>

#include "tests/catch.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::test;

/// Callgrind writes its counts and resets them before each call of this.
extern "C" __attribute__((noinline)) void kassette_overhead_mark() { __asm__ volatile(""); }

TEST_CASE("every sample between marks, ten times", "[.overhead]") {
  for (const Sample& s : op_samples()) {
    if (!s.traits.k) continue;
    DType dtype = s.takes == Takes::bools ? bool_ : takes_integers(s) ? int32 : float32;
    Shapes shapes = cases_of(s)[0];
    Tensors in = make_inputs(s, shapes, dtype);
    std::size_t n = shapes.size();
    Tensor args[kMaxInputs];
    for (std::size_t i = 0; i < n; ++i) args[i] = in[static_cast<std::int64_t>(i)];
    for (int warm = 0; warm < 3; ++warm) s.call(args);
    kassette_overhead_mark();
    for (int k = 0; k < 10; ++k) s.call(args);
    kassette_overhead_mark();
    std::printf("sample %s\n", title(s, shapes, dtype).c_str());
  }
}
