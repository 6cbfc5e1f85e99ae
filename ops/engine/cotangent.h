// ops/engine/cotangent.h - zeros of cotangents, and which factor of a product is one.
#pragma once
#include <cstdint>

namespace kassette::ops {

// Note [Zero cotangents]
// Where the cotangent of a result is 0, the result adds 0 to every gradient, even if its derivatives are infinite or
// NaN. So what `where`, `switch_`, a mask or a product with 0 has chosen away does not spoil the gradients of the rest:
// a row of attention that is -inf throughout, a logarithm of 0, a sample of NaN. It holds for every op and every order:
// - Adjoints written in tensors multiply a cotangent by mul_no_nan and divide it by div_no_nan, never by * and /.
// - Kernels do the same, or look at the cotangent again where a sum has become NaN, which costs nothing as long as none
//   has.
// - Products that a library or blocked loops sum, of matrices and convolutions, carry a mark which factor is a
// cotangent
//   (Cotangent, below). If the other factor is not finite, the results that are NaN are summed again without the terms
//   whose cotangent is 0 (ops/product/zero_terms.h).
// tests/sweeps/zero_cotangent_test.cpp holds every op to it.

/// The factor of a product that is a cotangent: its zeros count as zeros whatever they are multiplied by: Note [Zero
/// cotangents].
enum class Cotangent : std::uint8_t { neither, a, b };

}  // namespace kassette::ops
