// autograd/function/fuse.cpp - fusion in plans: elementwise instructions as chains (Note [Chains]), and products with a
// bias.
#include "autograd/function/fuse.h"

#include <algorithm>

#include "core/fast_paths.h"
#include "devices/cpu/numbered_threads.h"
#include "ops/engine/desc.h"
#include "ops/engine/observe.h"
#include "ops/reduce/reduce_runs.h"

namespace kassette::autograd {
namespace {

/// What is in the slots of a frame.
auto descs(const Frame& f) {
  return [&f](int slot) -> const TensorDesc& { return *f.at[slot]; };
}

// Note [Sums of chains]
// A loss is a sum or a mean of the result of elementwise instructions. If only the sum reads that result, each block of
// it (Note [Blocks of reductions]) is summed as soon as the chain has computed it, from the first-level cache: the
// result is never stored as a whole.

/// True if the instruction after the group sums all elements of the group's last result, nothing else reads that, and
/// it is longer than one block.
bool sums_chain(Frame& f, const FusionGroup& group) {
  const Instruction& s = f.instruction(group.end);
  const int from = f.instruction(group.end - 1).out;
  if (!may_take(FastPath::chain_summed) || !sums(s) || s.need != kValue || s.tail || f.input(s, 0) != from ||
      f.stays(from, group.end + 1) || group.n <= kReduceRow)
    return false;
  f.infer(s);
  return f.own[s.out].numel() == 1 && f.own[from].device == cpu;
}

/// The longest group from `begin` on whose instructions go over the same number of elements of the same float dtype. A
/// single instruction is not fused, unless it reads splats or its result is summed.
FusionGroup find_group(Frame& f, int begin, int end) {
  FusionGroup group{begin, begin, 0, 0, false, false};
  bool known = true;  // the group depends on shapes alone, and may be cached
  DType dtype;
  Device device;
  bool splats = false;
  for (int k = begin; k < end && k - begin < Chain::kMaxOps; ++k) {
    const Instruction& s = f.instruction(k);
    if (!s.fusible || s.need != kValue || (k > begin && !may_take(FastPath::chain))) break;
    TensorDesc& out = f.own[s.out];
    f.infer(s);
    known = known && s.known;
    if (k > begin && out.device != device) break;
    if (k == begin) {
      group.n = group.width = out.numel();
      dtype = out.dtype;
      device = out.device;
      if ((dtype != float32 && dtype != float64) || group.n == 0) break;
    }
    if (out.numel() != group.n || out.dtype != dtype) break;
    bool fits = true;
    for (int slot : f.program.reads(s)) {
      const TensorDesc& b = *f.at[slot];
      std::int64_t m = b.numel();
      bool splat = is_splat(b);
      if (device != cpu && m > 1 && group.width == group.n && repeats_rows(b, out)) group.width = m;
      fits =
          fits && b.dtype == dtype && (m == group.n || m == 1 || splat || (m == group.width && repeats_rows(b, out)));
      splats = splats || splat;
    }
    if (!fits) break;
    group.end = k + 1;
  }
  if (group.end == begin) {
    group.end = begin + 1;
  } else {
    known = known && (group.end == end || f.instruction(group.end).known);
    group.sums = group.end < end && sums_chain(f, group);
    group.fused = group.end > begin + 1 || splats || group.sums;
    group.end += group.sums;
  }
  if (known && !f.groups.empty()) f.groups[begin] = group;
  return group;
}

}  // namespace

FusionGroup form_group(Frame& f, int begin, int end) {
  const FusionGroup group = f.groups.empty() || !f.groups[begin].end ? find_group(f, begin, end) : f.groups[begin];
  if (!group.fused)
    for (int slot : f.program.reads(f.instruction(begin)))
      if (is_splat(*f.at[slot])) write_out(f.own[slot]);
  return group;
}

void allocate_results(Frame& f, const FusionGroup& group) {
  for (int k = group.begin; k < group.end; ++k) {
    TensorDesc& out = f.own[f.instruction(k).out];
    if (out.storage || (group.fused && !f.stays(f.instruction(k).out, group.end))) continue;
    out.storage = Storage::allocate(out.checked_bytes(f.instruction(k).op->name), out.device);
    out.offset = 0;
  }
}

void run_unfused(Frame& f, const Instruction& s) {
  TensorDesc* out = &f.own[s.out];
  const OpCall call = f.call_of(s, &out);
  run_kernel(call.device == cpu ? s.op->cpu : s.op->cuda, call, s.function);
}

int run_with_bias(Frame& f, int k, int end) {
  const Instruction& product = f.instruction(k);
  const OpDef& op = *product.op;
  if (!may_take(FastPath::with_bias) || !(op.with_bias || op.cuda_with_bias) || product.need != kValue || k + 1 >= end)
    return 0;
  const Instruction& sum = f.instruction(k + 1);
  if (sum.op->pattern != Pattern::add || sum.need != kValue || sum.tail || f.stays(product.out, k + 2)) return 0;
  const int other = f.input(sum, f.input(sum, 0) == product.out);
  if (other == product.out) return 0;
  const TensorDesc& bias = *f.at[other];
  TensorDesc &made = f.own[product.out], &summed = f.own[sum.out];
  const Instruction* next = k + 2 < end ? &f.instruction(k + 2) : nullptr;
  // On a device the sum and an elementwise instruction after it are one kernel already: a chain.
  const bool on_cpu = bias.device == cpu,
             takes = on_cpu ? op.with_bias != nullptr : op.cuda_with_bias && !(next && next->fusible);
  if (!takes || !bias.storage || is_splat(bias) || summed.storage) return 0;
  TensorDesc* out = &summed;
  const OpCall call = f.call_of(product, &out);
  if (call.device != bias.device) return 0;
  if (!product.known) op.rule(call, &made);
  // The sum must have the product's shape: nothing infers its shape here.
  if (bias.rank > made.rank || !repeats_rows(bias, made)) return 0;
  summed.set(made);
  made.device = summed.device = bias.device;
  const bool relu = next && next->op->pattern == Pattern::relu && next->need == kValue && !next->tail &&
                    f.input(*next, 0) == sum.out && !f.stays(sum.out, k + 3) && !f.own[next->out].storage;
  if (relu) *(out = &f.own[next->out]) = make_desc(made, cpu);
  out->offset = 0;
  FusedScope scope(f.program, IntRange{k, k + 2 + relu}, descs(f));
  if (!scope.done(on_cpu ? op.with_bias(call, bias, relu) : op.cuda_with_bias(call, bias))) return 0;
  count_taken(relu ? FastPath::with_bias_relu : FastPath::with_bias);
  return 2 + relu;
}

namespace {

/// The memory that a thread needs to run the chain of a group, which may be followed by a block whose sum is wanted.
std::int64_t bytes_of(const Chain& chain, const FusionGroup& group) {
  return chain.scratch_bytes() + (group.sums ? kReduceRow * std::int64_t(sizeof(double)) : 0);
}

/// Runs the chain over n elements and writes the sum of each block of kReduceRow to `partial`; blocks stay in the
/// first-level cache.
template <class T>
void sum_rows(const Chain& chain, const FusionGroup& group, const devices::ThreadScratch& scratch, T* partial) {
  const std::int64_t n = group.n, each = bytes_of(chain, group);
  devices::numbered_for((n + kReduceRow - 1) / kReduceRow, chain.part() / kReduceRow + 1, scratch.threads(each),
                        [&](std::int64_t begin, std::int64_t end, int thread) {
                          std::byte *const own = scratch.of(thread, each), *const block = own + chain.scratch_bytes();
                          const T* const values = reinterpret_cast<T*>(block);
                          chain.run_blocks(
                              begin * kReduceRow, std::min(end * kReduceRow, n), kReduceRow, block, own,
                              [&](std::int64_t at, std::int64_t m) {
                                reduce_loops<T>(Reduction::sum).rows(values, partial + at / kReduceRow, 1, m);
                              });
                        });
}
/// Bytes for the sums of the blocks of n elements, for the sums of the blocks of those, and so on.
std::int64_t partial_bytes(std::int64_t n) {
  std::int64_t sums = 0;
  for (std::int64_t m = n; m > 1;) sums += m = (m + kReduceRow - 1) / kReduceRow;
  return sums * sizeof(double);
}

/// Adds up the sums of the blocks, in the order of reduce_blocks; `partial` has partial_bytes(n).
template <class T>
void join_sums(T* partial, std::int64_t n, bool mean, T* out) {
  std::int64_t m = (n + kReduceRow - 1) / kReduceRow;
  for (; m > 1; m = (m + kReduceRow - 1) / kReduceRow) {
    T* next = partial + m;
    for (std::int64_t at = 0; at < m; at += kReduceRow)
      reduce_loops<T>(Reduction::sum).rows(partial + at, next + at / kReduceRow, 1, std::min(kReduceRow, m - at));
    partial = next;
  }
  *out = mean ? *partial / static_cast<T>(n) : *partial;
}

void prefetch_operands(Chain& chain, const Frame& f, const FusionGroup& group) {
  if (!chain.prefetches()) return;
  for (int k = group.begin; k < group.chain_end(); ++k)
    for (int slot : f.program.reads(f.instruction(k))) {
      const TensorDesc& b = *f.at[slot];
      if (b.storage && !is_splat(b) && (b.numel() != 1 || group.n == 1)) chain.prefetch(chain.memory(b.data()));
    }
}

void add_instructions(Chain& chain, const Frame& f, const FusionGroup& group) {
  ChainOperand kept[Chain::kMaxOps];  // the chunks of results that are read again
  auto place = [&](int slot) {
    const TensorDesc& b = *f.at[slot];
    bool one = is_splat(b) || (b.numel() == 1 && group.n != 1);
    if (b.storage)
      return one ? chain.repeated(b.data()) : chain.memory(b.data(), b.numel() == group.n ? 0 : -b.bytes());
    int j = group.begin;
    while (f.instruction(j).out != slot) ++j;
    return kept[j - group.begin];
  };
  int acc = -1;  // the slot whose value is in registers
  for (int k = group.begin; k < group.chain_end(); ++k) {
    const Instruction& s = f.instruction(k);
    chain.add_op(s, f.program.reads(s), acc, place);
    const TensorDesc& out = f.own[s.out];
    int last = f.program.last_value_use[s.out];
    if (out.storage) {
      chain.store_result(out.data(), /*fresh=*/out.storage->count.load(std::memory_order_relaxed) == 1);
    } else if (last > k) {
      const Instruction* next = last == k + 1 ? &f.instruction(last) : nullptr;
      if (!next || (next->n_in > 1 && f.input(*next, 0) == f.input(*next, 1)))
        chain.store(kept[k - group.begin] = chain.new_chunk());
    }
  }
  if (group.sums) chain.store(Chain::in_buffer(0));
}

}  // namespace

void build_chain(Frame& f, const FusionGroup& group, Chain& chain) {
  const TensorDesc& first = f.own[f.instruction(group.begin).out];
  chain.begin(first.dtype, {.rows = group.n / group.width, .width = group.width}, first.device, group.n);
  prefetch_operands(chain, f, group);
  add_instructions(chain, f, group);
  chain.finish();
  if (first.device == cpu) f.scratch.reserve(bytes_of(chain, group), devices::threads_for(group.n, chain.part()));
}

void run_group(Frame& f, const FusionGroup& group, const Chain& chain) {
  count_taken(group.sums                        ? FastPath::chain_summed
              : f.instruction(group.begin).tail ? FastPath::chain_of_update
                                                : FastPath::chain);
  const FusedScope scope(f.program, IntRange{group.begin, group.end}, descs(f));
  if (chain.device() != cpu) return chain.enqueue();
  if (!group.sums) {
    const std::int64_t each = bytes_of(chain, group);
    if (!devices::worth_sharing(group.n, chain.part())) return chain.run(0, group.n, f.scratch.of(0, each));
    devices::numbered_for(
        group.n, chain.part(), f.scratch.threads(each),
        [&](std::int64_t begin, std::int64_t end, int thread) { chain.run(begin, end, f.scratch.of(thread, each)); });
    return;
  }
  const Ref<Storage> partial = Storage::allocate(partial_bytes(group.n), cpu);
  const Instruction& sum = f.instruction(group.chain_end());
  auto run = [&](auto zero) {
    using T = decltype(zero);
    auto* sums = static_cast<T*>(partial->data);
    sum_rows(chain, group, f.scratch, sums);
    join_sums(sums, group.n, sum.op->pattern == Pattern::mean, reinterpret_cast<T*>(f.own[sum.out].data()));
  };
  if (f.own[f.instruction(group.begin).out].dtype == float32) run(0.f);
  else run(0.);
}

}  // namespace kassette::autograd
