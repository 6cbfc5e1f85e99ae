// core/ceil_div.h - how many parts of a size cover a range.
#pragma once
#include <cstdint>

namespace kassette {

/// a / b rounded up, of numbers that are not negative.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace kassette
