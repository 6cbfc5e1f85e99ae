// ops/product/zero_terms.h - products with a cotangent, in which its zeros have to count as zeros: Note [Zero
// cotangents]. A kernel computes the product as usual. Only where that has given NaN, elements are computed again, term
// by term. Read by g++ and nvcc.
#pragma once
#include <cstdint>

#include "ops/product/contraction.h"
#include "ops/math/math.h"
#ifndef KASSETTE_DEVICE_CODE
#include "core/convert.h"
#include "devices/cpu/threads.h"
#endif

namespace kassette::ops {

/// The sum of a product's terms, each added as add(cotangent, other). Once it is NaN it stays NaN.
struct TermSum {
  double value = 0;
  KASSETTE_FN bool add(double cotangent, double other) {
    value += m::mul_no_nan(cotangent, other);
    return !m::is_nan(value);
  }
};

/// The terms of each element of a contraction. It has no padding bytes, since a CUDA graph compares it by bytes.
struct ContractionTerms {
  struct Axes {
    std::int64_t rank = 0;
    std::int64_t dims[kLabels] = {}, a[kLabels] = {}, b[kLabels] = {};  // sizes, and strides in the two factors
    void push(std::int64_t n, std::int64_t of_a, std::int64_t of_b) {
      dims[rank] = n, a[rank] = of_a, b[rank] = of_b;
      ++rank;
    }
    KASSETTE_FN void move(std::int64_t i, std::int64_t& at_a, std::int64_t& at_b) const {
      for (std::int64_t d = rank - 1; d >= 0; --d) {
        const std::int64_t rest = i / dims[d], own = i - rest * dims[d];
        at_a += own * a[d];
        at_b += own * b[d];
        i = rest;
      }
    }
  };
  Axes kept, summed;
  std::int64_t terms = 1, a_is_cotangent;

  explicit ContractionTerms(const OpCall& call);
  /// Element i of the result, from elements of the factors that read(factor, index) returns as doubles.
  template <class T, class Read>
  KASSETTE_FN double element(const T* a, const T* b, std::int64_t i, Read read) const {
    std::int64_t first_a = 0, first_b = 0;
    kept.move(i, first_a, first_b);
    TermSum sum;
    for (std::int64_t t = 0; t < terms; ++t) {
      std::int64_t at_a = first_a, at_b = first_b;
      summed.move(t, at_a, at_b);
      const double x = read(a, at_a), y = read(b, at_b);
      if (!(a_is_cotangent ? sum.add(x, y) : sum.add(y, x))) break;
    }
    return sum.value;
  }
};

#ifndef KASSETTE_DEVICE_CODE
/// Whether zeros of the cotangent may have met something that is not finite. It reads the smaller one of the other
/// factor and the result, which costs little beside a product.
bool may_meet(DType dtype, const void* other, std::int64_t n_other, const void* out, std::int64_t n_out);
/// Whether all elements are finite.
bool all_finite(DType dtype, const void* x, std::int64_t n);

/// Lets zeros of a cotangent count as zeros in a contraction of a and b whose result, `out`, has been computed.
template <class T>
void respect_zeros(const OpCall& call, const std::byte* a, const std::byte* b, T* out);
/// Whether zeros of a cotangent may meet what is not finite in a contraction, or whether that costs too much to find
/// out before its result, which is like `sum`, is known.
bool zeros_may_matter(const OpCall& call, const TensorSpec& sum);

/// Computes the elements of `out` that are NaN again, each as element(index).
template <class T, class Element>
void replace_nans(T* out, std::int64_t n, Element element) {
  devices::parallel_for(n, 1 << 10, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      if (m::is_nan(convert_one<double>(out[i]))) out[i] = convert_one<T>(element(i));
  });
}
#endif

}  // namespace kassette::ops
