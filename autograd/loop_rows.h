// autograd/loop_rows.h - the steps of a loop over a part of the rows, all of them by one thread.
#pragma once
#include <vector>

#include "autograd/loop_chain.h"
#include "ops/matmul.h"

namespace kassette {

// Note [Rows by themselves]
// Samples do not meet in a recurrent cell: a row of a product or of a chain is made of that row of what changes from step to
// step, and of weights that stay. So threads need not wait for each other at each step: each takes blocks of rows and goes
// through all steps with them, which stay in its cache. Blocks are the rows of the products' tiles, so the bits are those of
// step after step. What sums over rows, the shares of weights, is added afterwards: each tile of the sum, step after step.
//
// The first step, and on the way back the last too, run as others do: they give every slot its memory, and the rest of the
// addresses follows.

/// Where a slot is in step u of a run of steps: at[u % 2] + u * next.
struct Track {
  std::byte* at[2] = {nullptr, nullptr};
  std::int64_t next = 0;
  std::byte* operator()(std::int64_t u) const { return at[u & 1] + u * next; }
};

class LoopRows {
 public:
  struct Multiplication {
    MatrixProduct product;
    int rows, columns, out;   // slots
  };

  /// A step's product, or a chain; in their order. False, where it cannot be by rows.
  void add(const Multiplication& m) { steps_.push_back({static_cast<int>(products_.size()), nullptr}), products_.push_back(m); }
  void add(const LoopChain& chain) { steps_.push_back({-1, &chain}); }
  /// A product that is added to slot `m.out`.
  void add_sum(const Multiplication& m) { sums_.push_back(m); }
  /// Whether all of that is done row by row, in blocks; once. `bodies`: of the slots. `varies`: not the same in every step.
  bool fits(const std::vector<Body>& bodies, const std::vector<char>& varies, const std::vector<int>& carried);
  /// Whether the sums can be made afterwards: what they read is still there.
  bool sums_last(const std::vector<Track>& tracks) const;
  void run(std::int64_t steps, const std::vector<Track>& tracks, const std::vector<Body>& bodies) const;

 private:
  struct Item {
    int product;
    const LoopChain* chain;
  };
  bool find_blocks();
  bool fits(const LoopChain& chain, const std::vector<Body>& bodies, const std::vector<char>& changes) const;
  void run_block(std::int64_t begin, std::int64_t end, std::int64_t steps, const std::vector<Track>& tracks) const;

  std::vector<Item> steps_;
  std::vector<Multiplication> products_, sums_;
  std::int64_t rows_ = 0, block_ = 0;
};

}  // namespace kassette
