// ops/integer_range.h - between which integers random_integers draws.
#pragma once
#include <cstdint>

#include "core/text.h"
#include "ops/random_attrs.h"

namespace kassette {

/// The lowest integer and how many there are, modulo 2^64: from the attributes, or from the third and fourth input.
struct IntegerRange {
  std::uint64_t low, size;
};
inline IntegerRange integer_range(const OpCall& call) {
  auto [low, high, placement] = call.attrs.as<IntegersAttrs>();
  if (call.n_in > 2) {
    low = *call.in[2].as<std::int64_t>();
    high = *call.in[3].as<std::int64_t>();
    if (low >= high) fail<ValueError>(call.op.name, ": minval ", low, " is not below maxval ", high);
  }
  return {static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)};
}

}  // namespace kassette
