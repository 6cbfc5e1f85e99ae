// ops/random/integer_range.h - the range from which random_integers draws.
#pragma once
#include <cstdint>

#include "core/text.h"
#include "ops/random/random_attrs.h"

namespace kassette::ops {

/// The lowest integer and the number of integers, modulo 2^64.
struct IntegerRange {
  std::uint64_t low, size;
};
/// Throws ValueError unless low < high.
inline void check_range(const char* op, std::int64_t low, std::int64_t high, DType dtype) {
  auto check = [&](auto a, auto b) {
    if (a >= b) fail<ValueError>({op}, "minval ", a, " is not below maxval ", b);
  };
  if (dtype == uint64) check(static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high));
  else check(low, high);
}
/// Reads the bounds from the third and fourth input if there are any, and throws ValueError if they enclose nothing;
/// else from the attributes. Those of uint64 are uint64, all others int64.
inline IntegerRange integer_range(const OpCall& call) {
  auto [low, high, placement] = call.attrs.as<IntegersAttrs>();
  if (call.n_in > 2) {
    low = *call.in[2].as<std::int64_t>();
    high = *call.in[3].as<std::int64_t>();
    check_range(call.op.name, low, high, call.out[0]->dtype);
  }
  return {static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)};
}

}  // namespace kassette::ops
