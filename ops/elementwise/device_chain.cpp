// ops/elementwise/device_chain.cpp - translates a chain's code to that of a device's kernel.
#include "ops/elementwise/device_chain_view.h"

#include <algorithm>
#include <array>

#include "core/text.h"
#include "devices/plugin.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

using D = DeviceChain;

ChainOpcode opcode_of(int number, bool reversed = false) {
  return {.handler = nullptr, .number = static_cast<std::uint8_t>(number), .reversed = reversed};
}
template <int n>
std::array<ChainOpcode, n> opcodes_from(int first, bool reversed = false) {
  std::array<ChainOpcode, n> opcodes;
  for (ChainOpcode& opcode : opcodes) opcode = opcode_of(first++, reversed);
  return opcodes;
}

bool is_unary(const ChainCode& c) { return c.opcode.number >= D::kUnary && c.opcode.number < D::kBinary; }

/// Allocates places for intermediate values that are stored. A place is free again after the last load of its value.
class KeptPlaces {
 public:
  KeptPlaces(const ChainView& chain, D& to) : chain_(chain), to_(to) {}
  int store(int at) { return place_of_[chain_.from[at].chunk] = take(); }
  int load(int at) {
    const int chunk = chain_.from[at].chunk, place = place_of_[chunk];
    int k = at + 1;
    while (k < to_.n_code && (chain_.from[k].chunk != chunk || is_unary(chain_.code[k]))) ++k;
    if (k == to_.n_code) used_[place] = false;
    return place;
  }

 private:
  int take() {
    int place = 0;
    while (used_[place]) ++place;
    used_[place] = true;
    to_.n_kept = std::max(to_.n_kept, place + 1);
    return place;
  }

  const ChainView& chain_;
  D& to_;
  int place_of_[256] = {};
  bool used_[D::kMaxKept] = {};
};

int operand_of(D& to, int& n, std::byte* base, std::int64_t row_gap) {
  for (int i = 0; i < n; ++i)
    if (to.operands[i].base == base && to.operands[i].row_gap == row_gap) return i;
  to.operands[n] = {base, row_gap};
  return n++;
}

}  // namespace

const ChainTable& device_chain_table() {
  static const auto unary = opcodes_from<UnaryOps::size>(D::kUnary);
  static const auto binary = opcodes_from<BinaryOps::size>(D::kBinary),
                    reversed = opcodes_from<BinaryOps::size>(D::kBinary, /*reversed=*/true);
  static const ChainOpcode load = opcode_of(D::kLoad), store = opcode_of(D::kStore), end = opcode_of(D::kEnd);
  static const ChainTable table{.chunk_bytes = 0,
                                .unary = {unary.data(), unary.data()},
                                .binary = {binary.data(), binary.data()},
                                .reversed = {reversed.data(), reversed.data()},
                                .call = {},
                                .load = {load, load},
                                .store = {store, store},
                                .stream = {store, store},
                                .prefetch = {},
                                .end = {end, end},
                                .run = {},
                                .pad = {},
                                .repeat = {}};
  return table;
}

void run_chain(Device device, const ChainView& chain) {
  D to{};
  to.is_double = chain.is_double != 0;
  to.n = chain.shape.numel();
  to.width = chain.shape.width;
  to.n_code = chain.n_code - 1;  // without the last one, `end`
  KeptPlaces kept(chain, to);
  int n_operands = 0, n_unary = 0;
  for (int i = 0; i < to.n_code; ++i) {
    const ChainCode& c = chain.code[i];
    const ChainOperand& from = chain.from[i];
    if (!c.opcode) fail<NotImplementedError>({"function"}, "an elementwise op of its chain has no kernel on ", device);
    D::Code& made = to.code[i];
    made = {.opcode = c.opcode.number, .where = D::kKept, .index = 0, .reversed = c.opcode.reversed};
    if (is_unary(c)) {
      to.attrs[n_unary] = c.attrs;
      made.index = static_cast<std::uint8_t>(n_unary++);
      continue;
    }
    const auto* one = std::find_if(chain.constants, chain.constants + chain.n_constants,
                                   [&](const ChainConstant& o) { return !c.advance_mask && o.chunk == from.chunk; });
    int index;
    if (c.advance_mask) {
      made.where = D::kMemory;
      index = operand_of(to, n_operands, c.operand, from.row_gap);
    } else if (one != chain.constants + chain.n_constants) {
      made.where = D::kOne;
      index = operand_of(to, n_operands, const_cast<std::byte*>(one->from), 0);
    } else {
      index = made.opcode == D::kStore ? kept.store(i) : kept.load(i);
    }
    made.index = static_cast<std::uint8_t>(index);
  }
  device_moves().run_chain(device, to);
}

}  // namespace kassette::ops
