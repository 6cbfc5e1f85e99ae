// ops/convolution/resize_simd.cpp - the inner loops of bilinear enlargement; compiled once per CPU level.
#include "ops/elementwise/simd.h"

#include "ops/convolution/resize_loops.h"

namespace kassette::ops {
namespace {

template <class T>
void blend(const T* a, const T* b, T t, std::int64_t n, T* to, bool stream) {
  const typename Vec<T>::V by(t);
  stream = stream && reinterpret_cast<std::uintptr_t>(to) % sizeof(by) == 0;
  each_vector<T>(n, [&](std::int64_t i, const Part<T>& part) {
    const auto v = part.load(a + i);
    part.store(to + i, v + (part.load(b + i) - v) * by, stream);
  });
#if defined(__SSE2__)
  if (stream) _mm_sfence();
#endif
}
template <class T>
void add_scaled(const T* x, T t, std::int64_t n, T* to) {
  const typename Vec<T>::V by(t);
  each_vector<T>(
      n, [&](std::int64_t i, const Part<T>& part) { part.store(to + i, part.load(to + i) + part.load(x + i) * by); });
}

template <class T>
constexpr ResizeLoops<T> loops{blend<T>, add_scaled<T>};

}  // namespace

constinit const ResizeTable KASSETTE_LEVEL_NAME(resize_table) = {loops<float>, loops<double>};

}  // namespace kassette::ops
