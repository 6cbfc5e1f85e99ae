// autograd/loops/loop_chain.cpp - finding chains among the instructions of a loop. See Note [Column slices].
#include "autograd/loops/loop_chain.h"

#include <algorithm>

#include "core/fast_paths.h"

namespace kassette::autograd {

LoopChains::LoopChains(const Program& program, const std::vector<TensorDesc>& descs, const std::vector<char>& may_fuse,
                       std::vector<char> live_out, const std::vector<LoopGroup>& groups)
    : program_(program), descs_(descs), may_fuse_(may_fuse), live_out_(std::move(live_out)), groups_(groups),
      totals_(descs.size()), slots_(descs.size()), excluded_(groups.size()) {
  for (const LoopGroup& group : groups)
    for (int k : {group.instruction, group.add}) {
      if (k < 0) continue;
      const Instruction& s = program.instruction(k);
      for (int i = 0; i < s.n_in; ++i) totals_[in(s, i)] += reads(s, i);
    }
}

std::vector<LoopGroup> LoopChains::find(std::vector<std::unique_ptr<LoopChain>>& chains) {
  std::vector<LoopGroup> found;
  for (std::size_t begin = 0; begin < groups_.size();) {
    std::size_t end = begin;
    while ((end = extend(begin)) > begin + 1) {
      std::ptrdiff_t bad = first_unfusible(begin, end);
      if (bad < 0) {
        auto to = std::unique_ptr<LoopChain>(new LoopChain);
        to->chain.begin(dtype_, shape_, device_, shape_.width);
        bad = emit(begin, end, *to);
        if (bad < 0) {
          for (std::size_t i = begin; i < end; ++i) to->instructions.push_back(groups_[i].instruction);
          chains.push_back(std::move(to));
          break;
        }
      }
      excluded_[bad] = 1;
      clear(begin, end);
    }
    clear(begin, end);
    if (end > begin + 1) {
      found.push_back({.chain = static_cast<int>(chains.size()) - 1});
      begin = end;
    } else {
      found.push_back(groups_[begin++]);
    }
  }
  return found;
}

void LoopChains::clear(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) slot(at(i).out) = Slot();
}

/// The end of the longest run of instructions from `begin` on that may be one chain.
std::size_t LoopChains::extend(std::size_t begin) {
  shape_ = {.rows = 0, .width = 0};
  dtype_ = DType();
  before_shape_.clear();
  std::size_t end = begin;
  while (end < groups_.size() && !excluded_[end] && groups_[end].sum < 0 && try_add(end)) ++end;
  if (shape_.rows || end == begin) return end;
  // No slices: the instructions whose results have as many elements as the first.
  shape_ = {.rows = 1, .width = desc(at(begin).out).numel()};
  std::size_t same = begin;
  while (same < end && desc(at(same).out).numel() == shape_.width) ++same;
  for (std::size_t i = begin; i < same; ++i)  // the length of an operand that each row reads again is the width
    for (int k = 0; k < at(i).n_in; ++k)
      if (std::int64_t n = desc(in(at(i), k)).numel(); n != 1 && n != shape_.numel()) {
        if (shape_.rows == 1) shape_ = {.rows = shape_.width / n, .width = n};
        else if (shape_.width != n) same = std::min(same, i);
      }
  if (is_small(shape_.rows, shape_.width)) same = begin;
  clear(same, end);
  return same;
}

/// True if a chain of that shape costs more than it saves. On an accelerator it saves launches, whatever its size.
bool LoopChains::is_small(std::int64_t rows, std::int64_t width) const {
  const FastPathThresholds& t = fast_path_thresholds;
  return device_ == cpu && (width * dtype_.size() < t.loop_chain_row || rows * width * dtype_.size() < t.loop_chain);
}

bool LoopChains::try_add(std::size_t i) {
  const Instruction& s = at(i);
  if (!may_fuse_[groups_[i].instruction] || s.n_out != 1) return false;
  const TensorDesc& out = desc(s.out);
  if ((out.dtype != float32 && out.dtype != float64) || out.numel() == 0 ||
      (dtype_.given() && (out.dtype != dtype_ || out.device != device_)))
    return false;
  const ChainShape before = shape_;
  dtype_ = out.dtype;
  device_ = out.device;
  const bool slices = s.op->pattern == Pattern::slice || s.op->pattern == Pattern::padded_slice;
  const bool taken = slices ? try_add_slice(s) : s.fusible && try_add_elements(s);
  if (!taken) {
    shape_ = before;
    return false;
  }
  slot(s.out).instruction = groups_[i].instruction;
  return true;
}

bool LoopChains::try_add_elements(const Instruction& s) {
  std::int64_t n = desc(s.out).numel();
  int padded = 0;
  for (int i = 0; i < s.n_in; ++i) {
    int q = in(s, i);
    const TensorDesc& b = desc(q);
    if (b.dtype != dtype_ || b.device != device_) return false;
    padded += slot(q).role == kPaddedSlices;
    if (b.numel() == n) continue;
    if (slot(q).role != kOutside || (b.numel() != 1 && !repeats_rows(b, desc(s.out)))) return false;
    if (b.numel() != 1 && shape_.rows && b.numel() != n / shape_.rows) return false;
  }
  Slot& made = slot(s.out);
  if (padded) {
    if (padded != 2 || s.op->pattern != Pattern::add || in(s, 0) == in(s, 1)) return false;
    const Slot &a = slot(in(s, 0)), &b = slot(in(s, 1));
    made.slices = a.slices;
    made.slices.insert(made.slices.end(), b.slices.begin(), b.slices.end());
    made.role = kPaddedSlices;
    return true;
  }
  if (shape_.rows && n % shape_.rows) return false;
  if (!shape_.rows) before_shape_.push_back(s.out);
  made.role = kElements;
  return true;
}

/// True if a slice has the shape of the chain. The first slice sets that shape.
bool LoopChains::fits(const ColumnSlice& w) {
  if (w.width == w.whole || w.width == 0 || w.rows == 0) return false;
  if (shape_.rows) return w.rows == shape_.rows && w.width == shape_.width;
  if (is_small(w.rows, w.width)) return false;
  for (int s : before_shape_) {
    std::int64_t n = desc(s).numel();
    if (n % w.rows) return false;
    const Instruction& made_by = program_.instruction(slot(s).instruction);
    for (int in : program_.reads(made_by))
      if (std::int64_t m = desc(in).numel(); m != 1 && m != n && m != n / w.rows) return false;
  }
  shape_ = {.rows = w.rows, .width = w.width};
  return true;
}

/// True if instruction s, a slice or a padded slice, may be in the chain.
bool LoopChains::try_add_slice(const Instruction& s) {
  const bool slices = s.op->pattern == Pattern::slice;
  const int from = in(s, 0);
  const Role role = slot(from).role;
  ColumnSlice w;
  if (role == kPaddedSlices || (slices && role == kSlice) || !column_slice_of(s.attrs, desc(slices ? from : s.out), &w))
    return false;
  if (!fits(w) || (slices ? role == kElements && !wide(from) : desc(from).numel() != shape_.numel())) return false;
  slot(s.out).role = slices ? kSlice : kPaddedSlices;
  slot(s.out).slices = {w};
  return true;
}

/// True if the slices cover the whole, each element once.
bool LoopChains::tiles(const Slot& s) const {
  std::vector<ColumnSlice> sorted = s.slices;
  std::ranges::sort(sorted, {}, &ColumnSlice::first);
  std::int64_t end = 0;
  for (const ColumnSlice& w : sorted) {
    if (w.first != end) return false;
    end += w.width;
  }
  return end == sorted.front().whole;
}

/// The first entry that cannot be in this chain because of how its result is used, or -1.
std::ptrdiff_t LoopChains::first_unfusible(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i)
    for (int k = 0; k < at(i).n_in; ++k)
      if (reads(at(i), k) && slot(in(at(i), k)).role != kOutside) ++slot(in(at(i), k)).uses;
  for (std::size_t i = begin; i < end; ++i) {
    int s = at(i).out;
    const Slot& made = slot(s);
    if (made.role == kSlice || (made.role == kElements && wide(s))) {
      if (must_store(s)) return static_cast<std::ptrdiff_t>(i);
    } else if (made.role == kPaddedSlices) {
      if (made.uses == 0 ? !tiles(made) : made.uses != 1 || must_store(s))
        for (std::size_t k = begin; k < end; ++k)  // its first padded slice is left out
          if (at(k).op->pattern == Pattern::padded_slice &&
              (k == i || made.slices.front().first == slot(at(k).out).slices.front().first))
            return static_cast<std::ptrdiff_t>(k);
    }
  }
  return -1;
}

/// Where the value of a slot is. `whole` > 0: its rows are that many elements apart, and are read from element `first`
/// on.
ChainOperand LoopChains::place(int s, LoopChain& to, std::int64_t first, std::int64_t whole) {
  if (slot(s).chunk >= 0) return {.chunk = slot(s).chunk};
  std::int64_t n = desc(s).numel(), size = dtype_.size(), width = shape_.width;
  if (n == 1 && shape_.numel() != 1) return to.chain.repeated(nullptr, s);
  std::int64_t apart = n == shape_.rows * std::max(whole, width) ? std::max(whole, width) : 0;
  return Chain::in_buffer(s, first * size, shape_.rows > 1 ? (apart - width) * size : 0);
}

/// Loads or computes columns [first, first + width) of slot s into registers.
void LoopChains::slice_of(int s, std::int64_t first, LoopChain& to) {
  std::int64_t whole = slot(s).role == kOutside ? 0 : desc(s).numel() / shape_.rows;
  const Instruction& by = program_.instruction(slot(s).instruction);
  auto outside = [&](int i) { return slot(in(by, i)).role == kOutside; };
  auto operand = [&](int i) { return place(in(by, i), to, desc(in(by, i)).numel() == 1 ? 0 : first, whole); };
  auto bring = [&](int i) {  // false: there is no room for it and what follows
    if (!outside(i)) slice_of(in(by, i), first, to);
    full_ = full_ || !to.chain.has_room();
    if (!full_ && outside(i)) to.chain.load(operand(i));
    return !full_;
  };
  if (by.n_in == 1) {
    if (bring(0)) to.chain.unary(*by.op, by.attrs);
  } else if (outside(1)) {
    if (bring(0)) to.chain.binary(*by.op, by.attrs, operand(1), /*reversed=*/false);
  } else if (outside(0)) {
    if (bring(1)) to.chain.binary(*by.op, by.attrs, operand(0), /*reversed=*/true);
  } else if (bring(1)) {
    const ChainOperand second = to.chain.new_chunk();
    to.chain.store(second);
    if (bring(0)) to.chain.binary(*by.op, by.attrs, second, /*reversed=*/false);
  }
}

/// The slot of the sum of padded slices that slot s is finally a part of.
int LoopChains::sum_of(int s, std::size_t begin, std::size_t end) {
  while (slot(s).uses)
    for (std::size_t i = begin; i < end; ++i)
      if (at(i).n_in == 2 && slot(at(i).out).role == kPaddedSlices && at(i).op->pattern != Pattern::padded_slice &&
          (in(at(i), 0) == s || in(at(i), 1) == s)) {
        s = at(i).out;
        break;
      }
  return s;
}

/// Stores the registers, which hold the input of `s`, at its columns of `whole`. Returns true if they still hold it.
bool LoopChains::store_padded_slice(const Instruction& s, int whole, LoopChain& to) {
  const ColumnSlice& w = slot(s.out).slices.front();
  const bool sums = slot(whole).slices.size() > 1;
  if (sums) to.chain.binary(add_op(), s.attrs, to.chain.repeated(Chain::kZero), /*reversed=*/false);
  to.chain.store(Chain::in_buffer(whole, w.first * dtype_.size(), (w.whole - w.width) * dtype_.size()));
  return !sums;
}

/// Writes the code of the chain and returns -1; or returns the entry to leave out, if there is no room for it or the
/// chain has fewer than two instructions.
std::ptrdiff_t LoopChains::emit(std::size_t begin, std::size_t end, LoopChain& to) {
  full_ = false;
  Chain& chain = to.chain;
  std::vector<std::size_t> order;  // the entries that have instructions
  for (std::size_t i = begin; i < end; ++i) {
    const Slot& made = slot(at(i).out);
    if (made.role == kElements ? !wide(at(i).out)
                               : at(i).op->pattern == Pattern::slice || at(i).op->pattern == Pattern::padded_slice)
      order.push_back(i);
    if (made.role == kPaddedSlices && made.uses == 0) to.made.push_back(at(i).out);
  }
  int acc = -1;  // the slot whose value is in registers
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Instruction& s = at(order[k]);
    Slot& made = slot(s.out);
    if (!chain.has_room()) full_ = true;
    if (full_) return static_cast<std::ptrdiff_t>(order[k]);
    if (made.role == kPaddedSlices) {
      const int from = in(s, 0);
      if (acc != from) chain.load(place(from, to));
      acc = store_padded_slice(s, sum_of(s.out, begin, end), to) ? from : -1;
      continue;
    }
    if (made.role == kSlice) {
      int from = in(s, 0);
      const ColumnSlice& w = made.slices.front();
      if (slot(from).role == kOutside) chain.load(place(from, to, w.first, w.whole));
      else slice_of(from, w.first, to);
      if (full_) return static_cast<std::ptrdiff_t>(order[k]);
    } else {
      chain.add_op(s, program_.reads(s), acc, [&](int slot) { return place(slot, to); });
    }
    acc = s.out;
    if (must_store(s.out)) {
      to.made.push_back(s.out);
      chain.store(place(s.out, to));
      continue;
    }
    bool next_alone = false;
    if (made.uses == 1 && k + 1 < order.size()) {
      const Instruction& next = at(order[k + 1]);
      for (int i = 0; i < next.n_in; ++i) next_alone = next_alone || (reads(next, i) && in(next, i) == s.out);
    }
    if (made.uses > 0 && !next_alone) {
      ChainOperand chunk = chain.new_chunk();
      made.chunk = chunk.chunk;
      chain.store(chunk);
    }
  }
  if (order.size() < 2) return static_cast<std::ptrdiff_t>(begin);
  chain.finish();
  return -1;
}

}  // namespace kassette::autograd
