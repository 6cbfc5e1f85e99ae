// autograd/function/fuse.cpp - fusion in plans: elementwise instructions as chains (Note [Chains]), and products with a
// bias.
#include <algorithm>

#include "autograd/function/chain.h"
#include "autograd/function/frame.h"
#include "autograd/tape/splat.h"
#include "core/fast_paths.h"
#include "devices/cpu/numbered_threads.h"
#include "ops/engine/apply.h"
#include "ops/reduce/reduce_runs.h"

namespace kassette::autograd {

/// Infers shape and device of the only output of an instruction.
void Plan::infer(Frame& f, const Instruction& s) const {
  TensorDesc* out = &f.own[s.out];
  if (!s.known) ops::infer(call_of(f, s, &out));
}

/// The group that begins at `begin`. Afterwards its slots have their shapes, and if it is not fused, splats among its
/// inputs are materialized.
FusionGroup Plan::form_group(Frame& f, int begin, int end) const {
  const FusionGroup group = f.groups.empty() || !f.groups[begin].end ? find_group(f, begin, end) : f.groups[begin];
  if (!group.fused)
    for (int slot : program_.reads(instruction(begin)))
      if (is_splat(*f.at[slot])) write_out(f.own[slot]);
  return group;
}

/// The longest group from `begin` on whose instructions go over the same number of elements of the same float dtype. A
/// single instruction is not fused, unless it reads splats or its result is summed.
FusionGroup Plan::find_group(Frame& f, int begin, int end) const {
  FusionGroup group{begin, begin, 0, 0, false, false};
  bool known = true;  // the group depends on shapes alone, and may be cached
  DType dtype;
  Device device;
  bool splats = false;
  for (int k = begin; k < end && k - begin < Chain::kMaxOps; ++k) {
    const Instruction& s = instruction(k);
    if (!s.fusible || s.need != kValue || (k > begin && !may_take(FastPath::chain))) break;
    TensorDesc& out = f.own[s.out];
    infer(f, s);
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
    for (int slot : program_.reads(s)) {
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
    known = known && (group.end == end || instruction(group.end).known);
    group.sums = group.end < end && sums_chain(f, group);
    group.fused = group.end > begin + 1 || splats || group.sums;
    group.end += group.sums;
  }
  if (known && !f.groups.empty()) f.groups[begin] = group;
  return group;
}

// Note [Sums of chains]
// A loss is a sum or a mean of the result of elementwise instructions. If only the sum reads that result, each block of
// it (Note [Blocks of reductions]) is summed as soon as the chain has computed it, from the first-level cache: the
// result is never stored as a whole.

/// True if the instruction after the group sums all elements of the group's last result, nothing else reads that, and
/// it is longer than one block.
bool Plan::sums_chain(Frame& f, const FusionGroup& group) const {
  const Instruction& s = instruction(group.end);
  const int from = instruction(group.end - 1).out;
  if (!may_take(FastPath::chain_summed) || !sums(s) || s.need != kValue || s.tail || input(s, 0) != from ||
      stays(from, group.end + 1) || group.n <= kReduceRow)
    return false;
  infer(f, s);
  return f.own[s.out].numel() == 1 && f.own[from].device == cpu;
}

/// Allocates the results that are read after the group. A slot that has storage keeps it: an update in place writes to
/// the variable's.
void Plan::allocate(Frame& f, const FusionGroup& group) const {
  for (int k = group.begin; k < group.end; ++k) {
    TensorDesc& out = f.own[instruction(k).out];
    if (out.storage || (group.fused && !stays(instruction(k).out, group.end))) continue;
    out.storage = Storage::allocate(out.checked_bytes(instruction(k).op->name), out.device);
    out.offset = 0;
  }
}

/// Runs an instruction whose results are allocated.
void Plan::run_unfused(Frame& f, const Instruction& s) const {
  TensorDesc* out = &f.own[s.out];
  const OpCall call = call_of(f, s, &out);
  (call.device == cpu ? s.op->cpu : s.op->cuda)(call);
}

/// Runs instruction k (an op that takes a bias), instruction k + 1 if it adds one to k's result, and on the CPU a relu
/// after that, as one kernel. Returns the number of instructions that it ran, or 0 if it did nothing. Results that are
/// skipped have their shape, which adjoints read.
int Plan::run_with_bias(Frame& f, int k, int end) const {
  const Instruction& product = instruction(k);
  const OpDef& op = *product.op;
  if (!may_take(FastPath::with_bias) || !(op.with_bias || op.cuda_with_bias) || product.need != kValue || k + 1 >= end)
    return 0;
  const Instruction& sum = instruction(k + 1);
  if (sum.op->pattern != Pattern::add || sum.need != kValue || sum.tail || stays(product.out, k + 2)) return 0;
  const int other = input(sum, input(sum, 0) == product.out);
  if (other == product.out) return 0;
  const TensorDesc& bias = *f.at[other];
  TensorDesc &made = f.own[product.out], &summed = f.own[sum.out];
  const Instruction* next = k + 2 < end ? &instruction(k + 2) : nullptr;
  // On a device the sum and an elementwise instruction after it are one kernel already: a chain.
  const bool on_cpu = bias.device == cpu,
             takes = on_cpu ? op.with_bias != nullptr : op.cuda_with_bias && !(next && next->fusible);
  if (!takes || !bias.storage || is_splat(bias) || summed.storage) return 0;
  TensorDesc* out = &summed;
  const OpCall call = call_of(f, product, &out);
  if (call.device != bias.device) return 0;
  if (!product.known) op.rule(call, &made);
  // The sum must have the product's shape: nothing infers its shape here.
  if (bias.rank > made.rank || !repeats_rows(bias, made)) return 0;
  summed.set(made);
  made.device = summed.device = bias.device;
  const bool relu = next && next->op->pattern == Pattern::relu && next->need == kValue && !next->tail &&
                    input(*next, 0) == sum.out && !stays(sum.out, k + 3) && !f.own[next->out].storage;
  if (relu) *(out = &f.own[next->out]) = make_desc(made, cpu);
  out->offset = 0;
  if (!(on_cpu ? op.with_bias(call, bias, relu) : op.cuda_with_bias(call, bias))) return 0;
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

}  // namespace

void Plan::prefetch_operands(Chain& chain, const Frame& f, const FusionGroup& group) const {
  if (!chain.prefetches()) return;
  for (int k = group.begin; k < group.chain_end(); ++k)
    for (int slot : program_.reads(instruction(k))) {
      const TensorDesc& b = *f.at[slot];
      if (b.storage && !is_splat(b) && (b.numel() != 1 || group.n == 1)) chain.prefetch(chain.memory(b.data()));
    }
}

void Plan::add_instructions(Chain& chain, const Frame& f, const FusionGroup& group) const {
  ChainOperand kept[Chain::kMaxOps];  // the chunks of results that are read again
  auto place = [&](int slot) {
    const TensorDesc& b = *f.at[slot];
    bool one = is_splat(b) || (b.numel() == 1 && group.n != 1);
    if (b.storage)
      return one ? chain.repeated(b.data()) : chain.memory(b.data(), b.numel() == group.n ? 0 : -b.bytes());
    int j = group.begin;
    while (instruction(j).out != slot) ++j;
    return kept[j - group.begin];
  };
  int acc = -1;  // the slot whose value is in registers
  for (int k = group.begin; k < group.chain_end(); ++k) {
    const Instruction& s = instruction(k);
    chain.add_op(s, program_.reads(s), acc, place);
    const TensorDesc& out = f.own[s.out];
    int last = program_.last_value_use[s.out];
    if (out.storage) {
      chain.store_result(out.data(), /*fresh=*/out.storage->count.load(std::memory_order_relaxed) == 1);
    } else if (last > k) {
      const Instruction* next = last == k + 1 ? &instruction(last) : nullptr;
      if (!next || (next->n_in > 1 && input(*next, 0) == input(*next, 1)))
        chain.store(kept[k - group.begin] = chain.new_chunk());
    }
  }
  if (group.sums) chain.store(Chain::in_buffer(0));
}

/// Builds the chain of a fused group whose results are allocated, and makes room for the threads that will run it.
void Plan::build_chain(Frame& f, const FusionGroup& group, Chain& chain) const {
  const TensorDesc& first = f.own[instruction(group.begin).out];
  chain.begin(first.dtype, {.rows = group.n / group.width, .width = group.width}, first.device, group.n);
  prefetch_operands(chain, f, group);
  add_instructions(chain, f, group);
  chain.finish();
  if (first.device == cpu) f.scratch.reserve(bytes_of(chain, group), devices::threads_for(group.n, chain.part()));
}

/// Runs a fused group: a chain, and the sum of its result if group.sums.
void Plan::run_chain(Frame& f, const FusionGroup& group, const Chain& chain) const {
  count_taken(group.sums                      ? FastPath::chain_summed
              : instruction(group.begin).tail ? FastPath::chain_of_update
                                              : FastPath::chain);
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
  const Instruction& sum = instruction(group.chain_end());
  auto run = [&](auto zero) {
    using T = decltype(zero);
    auto* sums = static_cast<T*>(partial->data);
    sum_rows(chain, group, f.scratch, sums);
    join_sums(sums, group.n, sum.op->pattern == Pattern::mean, reinterpret_cast<T*>(f.own[sum.out].data()));
  };
  if (f.own[instruction(group.begin).out].dtype == float32) run(0.f);
  else run(0.);
}

}  // namespace kassette::autograd
