// Hand-written kernels, once per CPU level: what the machine can do on warm, reused buffers.
#pragma once
#include <cstddef>

namespace limits {

/// c[lo, hi) from a and b; `stream` writes past the caches.
using Map = void (*)(const float* a, const float* b, float* c, std::size_t lo, std::size_t hi, bool stream);

struct Kernels {
  const char* level;
  Map add, mul, relu, exp, chain10, copy;
  /// One step of Adam on w, with a gradient of 2 w; returns the sum of the squares of w before it.
  float (*adam)(float* w, float* m, float* v, std::size_t lo, std::size_t hi, float rate);
  float (*sum)(const float* a, std::size_t n);
  double (*fma_loop)(long rounds);  // returns the floating-point operations done
};

const Kernels& sse2();
const Kernels& avx2();
const Kernels& avx512();
/// The best level this CPU and its operating system run.
const Kernels& best();

}  // namespace limits
