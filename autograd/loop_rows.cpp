// autograd/loop_rows.cpp - the steps of a loop over a part of the rows. See Note [Rows by themselves].
#include "autograd/loop_rows.h"

#include <algorithm>

#include "core/check_interrupt.h"
#include "devices/cpu/threads.h"

namespace kassette {

/// Blocks are the largest tiles' rows, in which the others have to go.
bool LoopRows::find_blocks() {
  for (const Multiplication& m : products_) {
    if (rows_ && m.product.p.m != rows_) return false;
    rows_ = m.product.p.m;
    block_ = std::max(block_, rows_of_tile(m.product.p));
  }
  for (const Multiplication& m : products_)
    if (block_ % rows_of_tile(m.product.p)) return false;
  return block_ < rows_;
}

bool LoopRows::fits(const std::vector<Body>& bodies, const std::vector<char>& varies, const std::vector<int>& carried) {
  if (!find_blocks()) return false;
  std::vector<char> changes(bodies.size(), 0);   // made by these steps
  for (int slot : carried) changes[slot] = 1;
  for (const Multiplication& m : products_) changes[m.out] = 1;
  for (const Item& item : steps_)
    if (item.chain)
      for (int slot : item.chain->made) changes[slot] = 1;
  for (const Multiplication& m : products_)
    if (m.product.p.ta || varies[m.columns]) return false;
  return std::all_of(steps_.begin(), steps_.end(), [&](const Item& item) { return !item.chain || fits(*item.chain, bodies, changes); });
}

/// Whether the rows of a chain are so many each of ours: what is read for all of them does not come out of another row.
bool LoopRows::fits(const LoopChain& c, const std::vector<Body>& bodies, const std::vector<char>& changes) const {
  const ChainShape& shape = c.chain.shape();
  bool good = (shape.rows > 1 ? shape.rows : shape.width) % rows_ == 0;
  auto changing = [&](int slot) { return changes[slot] != 0; };
  c.chain.for_each_source(
      [&](const Place& p) {
        const Body& b = bodies[p.source];
        const bool repeats = shape.rows > 1 && p.skip == -shape.width * b.dtype.size();
        if (repeats) good = good && !changing(p.source);
        else good = good && (shape.rows > 1 || (p.first == 0 && b.numel() == shape.width));
      },
      [&](int slot) { good = good && !changing(slot); });
  return good;
}

bool LoopRows::sums_last(const std::vector<Track>& tracks) const {
  auto stays = [&](int slot) {
    const Track& t = tracks[slot];
    return t.at[0] && t.at[0] == t.at[1] && t.next != 0;
  };
  auto alone = [&](int slot) {   // shares of two products take turns
    return std::count_if(sums_.begin(), sums_.end(), [&](const Multiplication& m) { return m.out == slot; }) == 1;
  };
  return std::all_of(sums_.begin(), sums_.end(), [&](const Multiplication& m) {
    return stays(m.rows) && stays(m.columns) && alone(m.out) && adds_products(m.product.p);
  });
}

void LoopRows::run(std::int64_t steps, const std::vector<Track>& tracks, const std::vector<Body>& bodies) const {
  parallel_for((rows_ + block_ - 1) / block_, 1, [&](std::int64_t begin, std::int64_t end) {
    run_block(begin * block_, std::min(rows_, end * block_), steps, tracks);
  });
  for (const Multiplication& m : sums_) {
    const Track &a = tracks[m.rows], &b = tracks[m.columns];
    m.product.add_to(const_cast<std::byte*>(bodies[m.out].data()), steps, a(0), a.next, b(0), b.next);
  }
}

void LoopRows::run_block(std::int64_t begin, std::int64_t end, std::int64_t steps, const std::vector<Track>& tracks) const {
  std::vector<std::unique_ptr<ChainRows>> parts;
  for (const Item& item : steps_) {
    if (!item.chain) continue;
    const Chain& chain = item.chain->chain;
    const std::int64_t each = (chain.shape().rows > 1 ? chain.shape().rows : chain.shape().width) / rows_;
    parts.push_back(std::make_unique<ChainRows>(chain, begin * each, end * each));
  }
  for (std::int64_t u = 0; u < steps; ++u) {
    check_interrupt();
    auto base_of = [&](int slot) { return tracks[slot](u); };
    auto part = parts.begin();
    for (const Item& item : steps_) {
      if (item.chain) {
        (*part)->place_sources(base_of);
        (*part++)->run();
      } else {
        const Multiplication& m = products_[item.product];
        m.product.run_rows(begin, end, base_of(m.rows), base_of(m.columns), base_of(m.out));
      }
    }
  }
}

}  // namespace kassette
