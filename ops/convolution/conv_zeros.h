// ops/convolution/conv_zeros.h - on the CPU, convolutions with a cotangent, whose zeros count as zeros: Note [Zero
// cotangents].
#pragma once
#include "ops/convolution/conv.h"

namespace kassette::ops {

/// What a kernel has computed: the results of a convolution, the gradient of its input, or that of its kernel.
enum class ConvResult : std::uint8_t { y, x, w };

/// If an operand of the call is a cotangent: computes again what is NaN since a zero of it met what is not finite.
void respect_zeros(const OpCall& call, const ConvShape& s, ConvResult result);

}  // namespace kassette::ops
