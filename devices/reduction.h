// devices/reduction.h - the ways to combine elements into one.
#pragma once
#include <cstdint>

namespace kassette::devices {

/// How the elements of a tensor, or of all ranks, are combined. A function that is passed `mean` computes the sum; its
/// caller divides. The order is that of distributed::Reduction.
enum class Reduction : std::uint8_t { sum, mean, max, min, prod };
inline constexpr int kReductions = 5;

}  // namespace kassette::devices
