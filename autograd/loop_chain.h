// autograd/loop_chain.h - elementwise steps of a loop in one pass, with the slices between them.
#pragma once
#include <memory>
#include <vector>

#include "autograd/chain.h"
#include "autograd/plan.h"
#include "ops/index.h"

namespace kassette {

// Note [Windows]
// A recurrent cell slices one product into its gates, and the adjoint of that is a sum of gates embedded in zeros. A chain
// of a loop's steps goes over rows, and a slice of it is a load at a distance. What is sliced need not exist: where it is
// the result of elementwise steps that slices alone read, they are computed on the slice. Embedded slices that tile a tensor
// are stored where they belong. A sum of them adds zeros to each, so one zero is added here: it makes 0 of -0. Same bits.

/// What runs at one place of a step's list.
struct LoopGroup {
  int step = -1;  // of the plan
  int sum = -1;   // the slot that `step`, a product, is added to; by the step `add` of the plan
  int add = -1;
  int chain = -1;  // or a chain, by index
  bool operator==(const LoopGroup&) const = default;
};

/// Elementwise steps of a loop fused into one pass over rows, slices of operands and padded results among them.
struct LoopChain {
  Chain chain;
  int first;              // a step, for messages
  std::vector<int> made;  // slots that it writes
};

/// The fuser of loops: groups the elementwise steps, slices and embeddings of one list of steps, and emits a chain for each group.
class LoopChains {
 public:
  /// `rooted`: slots that are read elsewhere. `plain`: per step of the plan, whether shapes are known and it runs on the CPU.
  LoopChains(const Program& plan, const std::vector<Body>& bodies, const std::vector<char>& plain,
             std::vector<char> rooted, const std::vector<LoopGroup>& groups);
  std::vector<LoopGroup> find(std::vector<std::unique_ptr<LoopChain>>& chains);

 private:
  enum Role : std::uint8_t { kOutside, kElements, kSlice, kEmbedded };
  struct Slot {
    Role role = kOutside;
    int step = -1;  // that makes it
    int uses = 0;   // reads of its value in the group
    int chunk = -1;
    std::vector<ColumnSlice> windows;  // of a slice one, of what is embedded all
  };

  Slot& slot(int s) { return slots_[s]; }
  const Body& body(int s) const { return bodies_[s]; }
  const Step& at(std::size_t i) const { return plan_.step(items_[i].step); }
  int in(const Step& s, int i) const { return plan_.input(s, i); }
  bool reads(const Step& s, int i) const { return !has_bit(s.op->shape_only, i); }
  bool wide(int s) const { return shape_.rows && body(s).numel() != shape_.numel(); }
  bool stays(int s) { return rooted_[s] || totals_[s] > slot(s).uses; }

  std::size_t extend(std::size_t begin);
  bool takes(std::size_t i);
  bool takes_elements(const Step& s);
  bool takes_window(const Step& s);
  bool fits(const ColumnSlice& w);
  bool tiles(const Slot& s) const;
  std::ptrdiff_t unfit(std::size_t begin, std::size_t end);
  std::ptrdiff_t emit(std::size_t begin, std::size_t end, LoopChain& to);
  int sum_of(int s, std::size_t begin, std::size_t end);
  bool store_embedded(const Step& s, int whole, LoopChain& to);
  Place place(int s, LoopChain& to, std::int64_t first = 0, std::int64_t whole = 0);
  void slice_of(int s, std::int64_t first, LoopChain& to);
  void clear(std::size_t begin, std::size_t end);

  const Program& plan_;
  const std::vector<Body>& bodies_;
  const std::vector<char>& plain_;
  const std::vector<char> rooted_;
  const std::vector<LoopGroup>& items_;
  std::vector<int> totals_;  // per slot: reads of its value in the list
  std::vector<Slot> slots_;
  std::vector<char> banned_;  // per item
  std::vector<int> early_;    // results of elementwise steps before the shape was known
  ChainShape shape_{.rows = 0, .width = 0};
  DType dtype_;
  bool full_ = false;
};

}  // namespace kassette
