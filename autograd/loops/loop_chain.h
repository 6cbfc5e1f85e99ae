// autograd/loops/loop_chain.h - the fusion of a loop's elementwise instructions, with the slices between them, into
// chains.
#pragma once
#include <memory>
#include <vector>

#include "autograd/function/chain.h"
#include "autograd/function/plan.h"
#include "ops/shape/index.h"

namespace kassette::autograd {

// Note [Column slices]
// A recurrent cell slices one product into its gates; the adjoint of the slices is a sum of gates that are padded with
// zeros. A chain in a loop goes over rows, so that a slice of columns is a load at an offset. The sliced tensor need
// not be in memory: if elementwise instructions compute it and only slices read it, those instructions are computed on
// each slice. Padded slices that tile a tensor are stored at their columns of the result, without the sum. That sum
// would add zeros to each element, which turns -0 into 0, so one zero is added here: the bits are the same.

/// One entry of a schedule: an instruction, a product that is accumulated, or a chain.
struct LoopGroup {
  int instruction = -1;  // of the program
  int sum = -1;          // if `instruction` is a product to accumulate: the slot that it is added to,
  int add = -1;          // and the instruction of the program that would add it
  int chain = -1;        // or else the index of a chain
  bool operator==(const LoopGroup&) const = default;
};

/// Elementwise instructions of a loop, slices and padded slices among them, fused into one pass over rows.
struct LoopChain {
  Chain chain;
  std::vector<int> instructions;  // errors name the first
  std::vector<int> made;          // the slots that it writes to memory
};

/// Fuses the instructions of a loop: groups the elementwise instructions, slices and padded slices of one list of
/// instructions, and emits a chain for each group.
class LoopChains {
 public:
  /// `live_out`: per slot, whether it is read outside of `groups`. `may_fuse`: per instruction of the program, whether
  /// it may be fused.
  LoopChains(const Program& program, const std::vector<TensorDesc>& descs, const std::vector<char>& may_fuse,
             std::vector<char> live_out, const std::vector<LoopGroup>& groups);
  /// The groups with fused instructions replaced by chains, which are appended to `chains`.
  std::vector<LoopGroup> find(std::vector<std::unique_ptr<LoopChain>>& chains);

 private:
  /// The kinds of values in a chain: read from outside of it, computed elementwise, a slice of columns, a sum of padded
  /// slices.
  enum Role : std::uint8_t { kOutside, kElements, kSlice, kPaddedSlices };
  /// A slot as the chain that is being built sees it.
  struct Slot {
    Role role = kOutside;
    int instruction = -1;             // the instruction that computes it
    int uses = 0;                     // how often the chain reads its value
    int chunk = -1;                   // the chunk that holds it in the chain, or -1
    std::vector<ColumnSlice> slices;  // the columns of a slice; of a sum of padded slices those of each
  };

  Slot& slot(int s) { return slots_[s]; }
  const TensorDesc& desc(int s) const { return descs_[s]; }
  const Instruction& at(std::size_t i) const { return program_.instruction(groups_[i].instruction); }
  int in(const Instruction& s, int i) const { return program_.input(s, i); }
  bool reads(const Instruction& s, int i) const { return !has_bit(s.op->shape_only, i); }
  bool is_small(std::int64_t rows, std::int64_t width) const;
  bool wide(int s) const { return shape_.rows && desc(s).numel() != shape_.numel(); }
  bool must_store(int s) { return live_out_[s] || totals_[s] > slot(s).uses; }

  std::size_t extend(std::size_t begin);
  bool try_add(std::size_t i);
  bool try_add_elements(const Instruction& s);
  bool try_add_slice(const Instruction& s);
  bool fits(const ColumnSlice& w);
  bool tiles(const Slot& s) const;
  std::ptrdiff_t first_unfusible(std::size_t begin, std::size_t end);
  std::ptrdiff_t emit(std::size_t begin, std::size_t end, LoopChain& to);
  int sum_of(int s, std::size_t begin, std::size_t end);
  bool store_padded_slice(const Instruction& s, int whole, LoopChain& to);
  ChainOperand place(int s, LoopChain& to, std::int64_t first = 0, std::int64_t whole = 0);
  void slice_of(int s, std::int64_t first, LoopChain& to);
  void clear(std::size_t begin, std::size_t end);

  const Program& program_;
  const std::vector<TensorDesc>& descs_;
  const std::vector<char>& may_fuse_;
  const std::vector<char> live_out_;
  const std::vector<LoopGroup>& groups_;
  std::vector<int> totals_;  // per slot: how often the whole list reads its value
  std::vector<Slot> slots_;
  std::vector<char> excluded_;     // per entry of groups_: cannot be in a chain
  std::vector<int> before_shape_;  // results of elementwise instructions before the first slice, which gave the shape
  ChainShape shape_{.rows = 0, .width = 0};
  DType dtype_;
  Device device_;
  bool full_ = false;
};

}  // namespace kassette::autograd
