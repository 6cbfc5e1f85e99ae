// ops/product/zero_terms.cpp - finds what is not finite in the factors and results of products with a cotangent.
#include "ops/product/zero_terms.h"

#include <atomic>

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrain = 1 << 16, kBlock = 1 << 12;  // elements for a thread; elements between two looks

/// The bits of a float type: an integer type of its size, and infinity.
template <class Bits, Bits kInfinity>
struct Format {
  static constexpr Bits kSize = static_cast<Bits>(static_cast<Bits>(-1) >> 1);  // all but the sign
  static bool any_nan(const void* x, std::int64_t n) { return any_from(kInfinity + 1, x, n); }
  static bool all_finite(const void* x, std::int64_t n) { return !any_from(kInfinity, x, n); }

 private:
  /// Whether an element, without its sign, has bits of at least `least`: then a sum with 2^(bits - 1) - least has its
  /// top bit set. A block is read to its end, which compiles to vectors.
  static bool any_from(Bits least, const void* x, std::int64_t n) {
    const auto* v = static_cast<const Bits*>(x);
    const Bits offset = static_cast<Bits>(kSize + 1 - least);
    std::atomic<bool> found{false};
    devices::parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end && !found.load(std::memory_order_relaxed); at += kBlock) {
        const std::int64_t last = at + kBlock < end ? at + kBlock : end;
        Bits sums = 0;
        for (std::int64_t i = at; i < last; ++i) sums |= static_cast<Bits>((v[i] & kSize) + offset);
        if (sums > kSize) found.store(true, std::memory_order_relaxed);
      }
    });
    return found.load(std::memory_order_relaxed);
  }
};
template <class F>
bool in_format(DType dtype, F f) {
  if (dtype == float64) return f(Format<std::uint64_t, 0x7ff0000000000000u>());
  if (dtype == float32) return f(Format<std::uint32_t, 0x7f800000u>());
  if (dtype == float16) return f(Format<std::uint16_t, 0x7c00u>());
  return f(Format<std::uint16_t, 0x7f80u>());  // bfloat16
}

}  // namespace

bool all_finite(DType dtype, const void* x, std::int64_t n) {
  return in_format(dtype, [&](auto format) { return format.all_finite(x, n); });
}
bool may_meet(DType dtype, const void* other, std::int64_t n_other, const void* out, std::int64_t n_out) {
  return in_format(dtype, [&](auto format) {
    if (n_other <= n_out && format.all_finite(other, n_other)) return false;
    return format.any_nan(out, n_out);
  });
}

template <class T>
void respect_zeros(const OpCall& call, const std::byte* a, const std::byte* b, T* out) {
  if constexpr (std::is_floating_point_v<T>) {
    const Cotangent which = call.attrs.as<ContractionForm>().origin.cotangent;
    if (which == Cotangent::neither) return;
    const bool a_is = which == Cotangent::a;
    const std::int64_t n = call.out[0]->numel();
    if (!may_meet(dtype_of(out), a_is ? b : a, call.spec(a_is).numel(), out, n)) return;
    const ContractionTerms terms(call);
    const T *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
    replace_nans(out, n, [&](std::int64_t i) {
      return terms.element(x, y, i, [](const T* p, std::int64_t at) { return static_cast<double>(p[at]); });
    });
  }
}
#define KASSETTE_INSTANCE(constant, code, T, name) \
  template void respect_zeros(const OpCall&, const std::byte*, const std::byte*, T*);
KASSETTE_INTEGER_DTYPES(KASSETTE_INSTANCE)
#undef KASSETTE_INSTANCE
template void respect_zeros(const OpCall&, const std::byte*, const std::byte*, float*);
template void respect_zeros(const OpCall&, const std::byte*, const std::byte*, double*);

bool zeros_may_matter(const OpCall& call, const TensorSpec& sum) {
  const Cotangent which = call.attrs.as<ContractionForm>().origin.cotangent;
  if (which == Cotangent::neither) return false;
  const InputView& other = call.in[which == Cotangent::a];
  const std::int64_t n = other.desc->numel();
  return n > sum.numel() || !all_finite(sum.dtype, other.data, n);
}

}  // namespace kassette::ops
