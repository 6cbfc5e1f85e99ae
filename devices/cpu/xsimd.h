// devices/cpu/xsimd.h - xsimd, and on ARM64 the division that it lacks. Only *_simd.cpp files include it.
#pragma once
#include <xsimd/xsimd.hpp>

#if defined(__aarch64__)
// Note [Division on ARM64]
// xsimd (8.1 to 13) divides floats by an estimate and two Newton steps, as 32-bit ARM has to: 40 % of the quotients are
// off by up to 2 ULP, a / a need not be 1, and a subnormal divisor gives -inf. Its square root is an estimate as well,
// NaN of infinity: m::sqrt (ops/elementwise/simd.h) takes the instruction.
template <>
inline xsimd::batch<float, xsimd::neon64>& xsimd::batch<float, xsimd::neon64>::operator/=(
    const xsimd::batch<float, xsimd::neon64>& other) noexcept {
  return *this = vdivq_f32(*this, other);
}
#endif
