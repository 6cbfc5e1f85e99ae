// autograd/fuse.cpp - chains of elementwise steps of a plan in one pass. See Note [Chains].
#include <algorithm>

#include "autograd/chain.h"
#include "autograd/frame.h"
#include "devices/cpu/threads.h"
#include "ops/binary.h"
#include "ops/conv.h"
#include "ops/conv_kernels.h"
#include "ops/fold.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/unary.h"

namespace kassette {
namespace {

constexpr std::int64_t kPartBytes = 32768;   // of one operand, worth a thread
constexpr std::int64_t kLarge = 1 << 14;      // elements: chunks are of eight vectors, since few are left over
constexpr std::int64_t kUpdateGrain = 2 * kFoldRow;   // elements of a sum beside an update

// A result that no cache will hold is written past them: a plain store reads the line first. Not where it replaces a
// variable, whose line was read just now.
constexpr std::int64_t kStreamed = 16 << 20;

const ChainTable& table_for(std::int64_t n) {
  const ChainTables& tables = KASSETTE_PICK(chain_tables);
  return n < kLarge ? tables.usual : tables.large;
}

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

/// Step k, a product or a convolution, and step k + 1, which alone reads its value and adds a bias to its rows, in one pass, with a relu behind that of a
/// convolution. The number of steps, 0 and nothing done where they are not that. What is not made has its shape, which adjoints read.
int Plan::run_onto_row(Frame& f, int k, int end) const {
  const Step& product = step(k);
  const bool convolves = product.op == &convolution_row;
  if (k + 1 >= end || (!convolves && product.op != &matmul_row)) return 0;
  const Step& sum = step(k + 1);
  if (sum.op != &binary_row<Add>() || product.need != 2 || sum.need != 2 || sum.tail || stays(product.out, k + 2)) return 0;
  const int other = input(sum, input(sum, 0) == product.out);
  if (other == product.out || f.thin[static_cast<std::size_t>(other)]) return 0;
  const Body& row = *f.at[static_cast<std::size_t>(other)];
  Body &made = f.own[static_cast<std::size_t>(product.out)], &summed = f.own[static_cast<std::size_t>(sum.out)];
  if (f.device != cpu || row.device != cpu || !row.storage || summed.storage) return 0;
  for (int i = 0; i + 1 < row.rank; ++i)
    if (row.dims[i] != 1) return 0;
  bool bends = false;
  if (convolves && k + 2 < end) {
    const Step& bend = step(k + 2);
    bends = bend.op == &unary_row<Relu>() && bend.need == 2 && !bend.tail && input(bend, 0) == sum.out && !stays(sum.out, k + 3) &&
            !f.own[static_cast<std::size_t>(bend.out)].storage;
  }
  Body& out = bends ? f.own[static_cast<std::size_t>(step(k + 2).out)] : summed;
  prepare(f, product);
  made.device = out.device = f.device;
  Body* to = &out;
  const Call call{*product.op, product.attrs, f.arrays.data(), product.n_in, &to, 1, f.device};
  product.op->rule(call, &made);
  if (row.rank > made.rank) return 0;
  summed.set(made);
  summed.device = f.device;
  out.set(made);
  out.offset = 0;
  if (!(convolves ? convolve_onto_row(call, row, bends) : multiply_onto_row(call, row))) return 0;
  return bends ? 3 : 2;
}

namespace {

/// Of each row of what the chain makes the sum, to `partial`; the rows go out of the first-level cache.
template <class T>
void sum_rows(const Chain& chain, std::int64_t n, std::int64_t grain, T* partial) {
  parallel_for((n + kFoldRow - 1) / kFoldRow, grain / kFoldRow, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) T block[kFoldRow];
    chain.run_blocks(begin * kFoldRow, std::min(end * kFoldRow, n), kFoldRow, reinterpret_cast<std::byte*>(block),
                     [&](std::int64_t at, std::int64_t m) { fold_loops<T>(Fold::sum).rows(block, partial + at / kFoldRow, 1, m); });
  });
}
/// What sum_rows left, and how fold_blocks goes on; but `partial` has room for all, so that nothing can fail.
template <class T>
void join_sums(T* partial, std::int64_t n, bool mean, T* out) {
  std::int64_t m = (n + kFoldRow - 1) / kFoldRow;
  for (; m > 1; m = (m + kFoldRow - 1) / kFoldRow) {
    T* next = partial + m;
    for (std::int64_t at = 0; at < m; at += kFoldRow) fold_loops<T>(Fold::sum).rows(partial + at, next + at / kFoldRow, 1, std::min(kFoldRow, m - at));
    partial = next;
  }
  *out = mean ? *partial / static_cast<T>(n) : *partial;
}

}  // namespace

std::int64_t partial_bytes(std::int64_t n) {
  std::int64_t sums = 0;
  for (std::int64_t m = n; m > 1;) sums += m = (m + kFoldRow - 1) / kFoldRow;
  return sums * static_cast<std::int64_t>(sizeof(double));
}

void Plan::fetch_operands(Chain& chain, const Frame& f, const Item& item) const {
  for (int k = item.begin; k < item.chain_end(); ++k)
    for (int i = 0; i < step(k).n_in; ++i) {
      const auto slot = static_cast<std::size_t>(input(step(k), i));
      const Body& b = *f.at[slot];
      if (b.storage && !f.thin[slot] && (b.numel() != 1 || item.n == 1)) chain.fetch(chain.memory(b.data()));
    }
}

void Plan::add_steps(Chain& chain, const Frame& f, const Item& item) const {
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
  int acc = -1;   // the slot whose value is in registers
  for (int k = item.begin; k < chain_end; ++k) {
    const Step& s = step(k);
    int in = input(s, 0), other = s.n_in > 1 ? input(s, 1) : -1;
    bool turned = s.n_in > 1 && acc != in && acc == other;
    if (acc != in && !turned) chain.load(place(in));
    if (s.n_in == 1) chain.unary(*s.op, s.attrs);
    else chain.binary(*s.op, s.attrs, place(turned ? in : other), turned);
    acc = s.out;
    const Body& out = f.own[static_cast<std::size_t>(s.out)];
    int last = last_value_use_[static_cast<std::size_t>(s.out)];
    if (!out.storage) {
      bool next_alone = last == k + 1 && (step(k + 1).n_in == 1 || input(step(k + 1), 0) != input(step(k + 1), 1));
      if (!next_alone && last > k) chain.store(kept[k - item.begin] = chain.new_chunk());
      continue;
    }
    bool read_here = last > k && last < item.end, alone = out.storage->count.load(std::memory_order_relaxed) == 1;
    bool streams = alone && !read_here && last < item.end && item.n * out.dtype.size() >= kStreamed &&
                   reinterpret_cast<std::uintptr_t>(out.data()) % 64 == 0;
    if (streams) chain.stream(chain.memory(out.data()));
    else chain.store(chain.memory(out.data()));
  }
  if (item.sums) chain.store(Chain::of_source(0));
}

void Plan::run_fused(Frame& f, const Item& item) const {
  if (item.sums) {
    const Ref<Storage> partial = Storage::allocate(partial_bytes(item.n), cpu);
    run_summed(f, item, nullptr, partial->data);
    return;
  }
  const DType dtype = f.own[static_cast<std::size_t>(step(item.begin).out)].dtype;
  Chain chain(dtype, {.width = item.n}, table_for(item.n));
  fetch_operands(chain, f, item);
  add_steps(chain, f, item);
  chain.finish();
  parallel_for(item.n, kPartBytes / dtype.size(), [&](std::int64_t begin, std::int64_t end) { chain.run(begin, end); });
}

/// A chain that is summed and, in the same pass, another one.
void Plan::run_summed(Frame& f, const Item& item, const Item* beside, void* partial) const {
  const DType dtype = f.own[static_cast<std::size_t>(step(item.begin).out)].dtype;
  Chain chain(dtype, {.width = item.n}, table_for(item.n));
  fetch_operands(chain, f, item);
  if (beside) fetch_operands(chain, f, *beside);
  add_steps(chain, f, item);
  if (beside) add_steps(chain, f, *beside);
  chain.finish();
  const int last = item.chain_end();
  std::byte* out = f.own[static_cast<std::size_t>(step(last).out)].data();
  auto run = [&](auto zero) {
    using T = decltype(zero);
    auto* sums = static_cast<T*>(partial);
    sum_rows(chain, item.n, beside ? kUpdateGrain : kFoldGrain, sums);
    join_sums(sums, item.n, step(last).op == &mean_row, reinterpret_cast<T*>(out));
  };
  if (dtype == float32) run(0.f);
  else run(0.);
}

// Note [Sums beside updates]
// An optimiser's step reads a variable for the loss and again for its update, and of a large one nothing is in the caches by then. So
// a sum of a chain that nothing reads but the caller waits for the tail, one in a call: where an item of it goes over the same
// elements, both are one program, the sum's part first, and the variable is read once. With Adam on 10^7 floats memory moves six times
// 40 MB instead of seven.

bool Plan::may_wait(const Frame& f, const Item& item) const {
  if (!item.sums || effects_.empty() || last_use_[static_cast<std::size_t>(step(item.chain_end()).out)] >= 0) return false;
  for (int k = item.begin; k < item.chain_end(); ++k)   // what is there until the tail has run, and not for this sum alone
    for (int i = 0; i < step(k).n_in; ++i) {
      const auto slot = static_cast<std::size_t>(input(step(k), i));
      const bool own = f.at[slot] == &f.own[slot], until_then = last_value_use_[slot] >= first_tail_ || root_[slot];
      if (own && f.own[slot].storage && !until_then) return false;
    }
  return !f.waiting.sums;
}

/// The item of the tail that the waiting sum may run with, -1 where there is none.
int Plan::joined_item(const Frame& f, const std::vector<Item>& items) const {
  const Item& sum = f.waiting;
  if (!sum.sums) return -1;
  auto reads = [&](const Item& item, const Storage* s, std::int64_t least) {
    for (int k = item.begin; k < item.chain_end(); ++k)
      for (int i = 0; i < step(k).n_in; ++i) {
        const Body& b = *f.at[static_cast<std::size_t>(input(step(k), i))];
        if (b.storage.get() == s && b.numel() >= least) return true;
      }
    return false;
  };
  const DType dtype = f.own[static_cast<std::size_t>(step(sum.begin).out)].dtype;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    if (item.fused && item.n == sum.n && item.end - item.begin + sum.end - sum.begin <= Chain::kMaxSteps &&
        f.own[static_cast<std::size_t>(step(item.begin).out)].dtype == dtype)
      for (int k = sum.begin; k < sum.chain_end(); ++k)
        for (int j = 0; j < step(k).n_in; ++j) {
          const Body& b = *f.at[static_cast<std::size_t>(input(step(k), j))];
          if (b.storage && b.numel() == sum.n && reads(item, b.storage.get(), sum.n)) return static_cast<int>(i);
        }
    for (int k = item.begin; k < item.end; ++k) {   // a variable that is overwritten before
      const Body& out = f.own[static_cast<std::size_t>(step(k).out)];
      if (out.storage && reads(sum, out.storage.get(), 0)) return -1;
    }
  }
  return -1;
}

}  // namespace kassette
