// autograd/fuse.cpp - chains of elementwise steps of a plan in one pass. See Note [Chains].
#include <algorithm>

#include "autograd/chain.h"
#include "autograd/frame.h"
#include "devices/cpu/threads.h"
#include "ops/fold.h"
#include "ops/reduce.h"

namespace kassette {
namespace {

constexpr std::int64_t kPartBytes = 32768;   // of one operand, worth a thread

// A result that no cache will hold is written past them: a plain store reads the line first. Not where it replaces a
// variable, whose line was read just now.
constexpr std::int64_t kStreamed = 16 << 20;

}  // namespace

/// As many steps from `begin` on as go over the same number of elements of the same float dtype. Runs their rules, so that
/// the slots have their shapes. One step alone is an item that is not fused, unless it reads thin results.
Plan::Item Plan::gather(Frame& f, int begin, int end) const {
  Item item{begin, begin, 0, false, false};
  DType dtype;
  bool thins = false;
  for (int k = begin; k < end && k - begin < Chain::kMaxSteps; ++k) {
    const Step& s = step(k);
    if (!s.fusible || s.need != 2) break;
    prepare(f, s);
    if (k > begin && f.device != cpu) break;
    Body& out = f.own[static_cast<std::size_t>(s.out)];
    out.device = f.device;
    s.op->rule(Call{*s.op, s.attrs, f.arrays.data(), s.n_in, nullptr, 1, f.device}, &out);
    if (k == begin) {
      item.n = out.numel();
      dtype = out.dtype;
      if (f.device != cpu || (dtype != float32 && dtype != float64) || item.n == 0) break;
    }
    if (out.numel() != item.n || out.dtype != dtype) break;
    bool fits = true;
    for (int i = 0; i < s.n_in; ++i) {
      const Body& b = *f.at[static_cast<std::size_t>(input(s, i))];
      std::int64_t m = b.numel();
      bool thin = f.thin[static_cast<std::size_t>(input(s, i))];
      fits = fits && b.dtype == dtype && (m == item.n || m == 1 || thin);
      thins = thins || thin;
    }
    if (!fits) break;
    item.end = k + 1;
  }
  if (item.end == begin) {
    thicken(f, step(begin));
    item.end = begin + 1;
  } else {
    item.sums = item.end < end && sums_chain(f, item);
    item.fused = item.end > begin + 1 || thins || item.sums;
    item.end += item.sums;
  }
  return item;
}

// Note [Sums of chains]
// A loss is a sum or a mean of what elementwise steps make. Where nothing else reads that, each block of the sum (Note [Blocks of
// reductions]) is summed as soon as the chain has made it, out of the first-level cache: what is summed is never in memory.

/// Whether the step behind the item sums all of its last result, of which there is much, for itself alone.
bool Plan::sums_chain(Frame& f, const Item& item) const {
  const Step& s = step(item.end);
  const int from = step(item.end - 1).out;
  if (!sums(s) || s.need != 2 || s.tail || input(s, 0) != from || stays(from, item.end + 1) || item.n <= kFoldRow) return false;
  prepare(f, s);
  Body& out = f.own[static_cast<std::size_t>(s.out)];
  out.device = f.device;
  s.op->rule(Call{*s.op, s.attrs, f.arrays.data(), s.n_in, nullptr, 1, f.device}, &out);
  return out.numel() == 1;
}

/// Storage for what outlives the item. A slot that has storage already keeps it: the variable itself.
void Plan::allocate(Frame& f, const Item& item) const {
  for (int k = item.begin; k < item.end; ++k) {
    Body& out = f.own[static_cast<std::size_t>(step(k).out)];
    if (out.storage || (item.fused && !stays(step(k).out, item.end))) continue;
    out.storage = Storage::allocate(out.checked_bytes(step(k).op->name), out.device);
    out.offset = 0;
  }
}

void Plan::run_item(Frame& f, const Item& item) const {
  if (item.fused) {
    run_fused(f, item);
    return;
  }
  const Step& s = step(item.begin);
  prepare(f, s);
  Body* out = &f.own[static_cast<std::size_t>(s.out)];
  Call call{*s.op, s.attrs, f.arrays.data(), s.n_in, &out, 1, f.device};
  (f.device == cpu ? s.op->cpu : s.op->cuda)(call);
}

namespace {

template <class T>
void sum_chain(const Chain& chain, std::int64_t n, bool mean, T* out) {
  const FoldLoops<T>& loops = fold_loops<T>(Fold::sum);
  auto rows = [&](std::int64_t, std::int64_t at, T* to, std::int64_t, std::int64_t m) {
    alignas(64) T block[kFoldRow];
    chain.run(at, at + m, reinterpret_cast<std::byte*>(block));
    loops.rows(block, to, 1, m);
  };
  auto columns = [](std::int64_t, std::int64_t, std::int64_t, T*, std::int64_t, std::int64_t) {};
  fold_blocks(loops, rows, columns, out, 1, n, 1);
  if (mean) *out /= static_cast<T>(n);
}

}  // namespace

void Plan::run_fused(Frame& f, const Item& item) const {
  const DType dtype = f.own[static_cast<std::size_t>(step(item.begin).out)].dtype;
  Chain chain(dtype, {.width = item.n}, KASSETTE_PICK(chain_table));
  const int chain_end = item.chain_end();
  Place kept[Chain::kMaxSteps];   // results that are read again
  auto place = [&](int slot) {
    const Body& b = *f.at[static_cast<std::size_t>(slot)];
    bool one = f.thin[static_cast<std::size_t>(slot)] || (b.numel() == 1 && item.n != 1);
    if (b.storage) return one ? chain.repeated(b.data()) : chain.memory(b.data());
    int j = item.begin;
    while (step(j).out != slot) ++j;
    return kept[j - item.begin];
  };
  for (int k = item.begin; k < chain_end; ++k)
    for (int i = 0; i < step(k).n_in; ++i)
      if (f.at[static_cast<std::size_t>(input(step(k), i))]->storage) chain.fetch(place(input(step(k), i)));
  int acc = -1;   // the slot whose value is in registers
  for (int k = item.begin; k < chain_end; ++k) {
    const Step& s = step(k);
    int in = input(s, 0), other = s.n_in > 1 ? input(s, 1) : -1;
    bool turned = s.n_in > 1 && acc != in && acc == other;
    if (acc != in && !turned) chain.load(place(in));
    if (s.n_in == 1) chain.unary(*s.op, s.attrs);
    else chain.binary(*s.op, s.attrs, place(turned ? in : other), turned);
    acc = s.out;
    Body& out = f.own[static_cast<std::size_t>(s.out)];
    int last = last_use_[static_cast<std::size_t>(s.out)];
    if (!out.storage) {
      bool next_alone = last == k + 1 && (step(k + 1).n_in == 1 || input(step(k + 1), 0) != input(step(k + 1), 1));
      if (!next_alone && last > k) chain.store(kept[k - item.begin] = chain.new_chunk());
      continue;
    }
    bool read_here = last > k && last < item.end, alone = out.storage->count.load(std::memory_order_relaxed) == 1;
    bool streams = alone && !read_here && last < item.end && item.n * dtype.size() >= kStreamed &&
                   reinterpret_cast<std::uintptr_t>(out.data()) % 64 == 0;
    if (streams) chain.stream(chain.memory(out.data()));
    else chain.store(chain.memory(out.data()));
  }
  if (item.sums) chain.store(Chain::of_source(0));
  chain.finish();
  if (item.sums) {
    std::byte* out = f.own[static_cast<std::size_t>(step(chain_end).out)].data();
    const bool mean = step(chain_end).op == &mean_row;
    if (dtype == float32) sum_chain(chain, item.n, mean, reinterpret_cast<float*>(out));
    else sum_chain(chain, item.n, mean, reinterpret_cast<double*>(out));
    return;
  }
  parallel_for(item.n, kPartBytes / dtype.size(), [&](std::int64_t begin, std::int64_t end) { chain.run(begin, end); });
}

}  // namespace kassette
