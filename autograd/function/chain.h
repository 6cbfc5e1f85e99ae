// autograd/function/chain.h - a chain: elementwise ops compiled to threaded code. See Note [Chains].
#pragma once
#include <algorithm>

#include "autograd/program/program.h"
#include "core/reused_list.h"
#include "devices/cpu/numbered_threads.h"
#include "ops/elementwise/device_chain_view.h"

namespace kassette::autograd {

// Note [Memory of chains]
// A chain is run by threads of the user's, whose stacks may be small, and each thread needs a copy of the code and
// memory for intermediate values: some KiB, and 150 at most. So that is no array on the stack, nor is it allocated when
// a chain runs: chains of updates run when nothing may fail anymore (commit). Who runs chains keeps the code and
// a ThreadScratch for the next ones.

/// Threaded code of fused elementwise ops, with intermediate values in registers. It can be run over parts of a range.
class Chain {
 public:
  static constexpr int kMaxOps = DeviceChain::kMaxOps;

  /// Begins a new chain. `at_once`: the number of elements that one thread processes on the CPU; it decides the chunk
  /// size.
  void begin(DType dtype, const ChainShape& shape, Device device, std::int64_t at_once);

  static ChainOperand memory(std::byte* base, std::int64_t row_gap = 0) { return {.base = base, .row_gap = row_gap}; }
  static ChainOperand in_buffer(int buffer, std::int64_t offset = 0, std::int64_t row_gap = 0) {
    return {.buffer = buffer, .offset = offset, .row_gap = row_gap};
  }
  ChainOperand new_chunk() { return {.chunk = n_chunks_++}; }
  static constexpr const std::byte* kZero = nullptr;
  /// A chunk filled with one element, which is read from `one` (kZero: 0) or, if that is not -1, from `buffer`.
  ChainOperand repeated(const std::byte* one, int buffer = -1);

  /// True if the operands are large enough to be prefetched.
  bool prefetches() const;
  void prefetch(const ChainOperand& p);
  void load(const ChainOperand& p) { add(table_->load[is_double_], p); }
  void store(const ChainOperand& p) { add(table_->store[is_double_], p); }
  /// Stores a result. If it is fresh, large and aligned, non-temporal stores write it past the caches: plain stores
  /// read each cache line before they overwrite it, and 2 * x + 1 over 10^7 floats takes 1.4 times as long. `fresh`:
  /// the memory is not that of an operand. An operand's lines have just been loaded, and non-temporal stores would have
  /// to evict them (an Adam step, which writes over its variables, takes 4 times as long).
  void store_result(std::byte* to, bool fresh);
  void unary(const OpDef& op, const Attrs& attrs);
  /// `reversed`: the value in registers is the second operand.
  void binary(const OpDef& op, const Attrs& attrs, const ChainOperand& other, bool reversed);
  /// Adds the code of an op of one or two inputs. `acc`: the slot whose value is in registers, which becomes
  /// the op's output; place(slot) returns where a slot's value is.
  template <class F>
  void add_op(const Instruction& s, std::span<const int> in, int& acc, F&& place) {
    const bool reversed = s.n_in > 1 && acc != in[0] && acc == in[1];
    if (acc != in[0] && !reversed) load(place(in[0]));
    if (s.n_in == 1) unary(*s.op, s.attrs);
    else binary(*s.op, s.attrs, place(in[!reversed]), reversed);
    acc = s.out;
  }
  void finish();
  /// True if there is room for another op, with as much to spare.
  bool has_room() const {
    if (device_ != cpu)
      return DeviceChain::has_room(n_code(), n_in_memory_ + constants_.size(), n_unary_, n_chunks_ - constants_.size());
    return n_code() + 2 * kOpCode < kMaxCode && n_chunks_ + n_in_memory_ + 2 * kOpChunks < kMaxChunks;
  }
  /// Of the finished chain: the fewest elements that are worth a thread, a multiple of 64, since non-temporal stores
  /// begin at a cache line.
  std::int64_t part() const { return part_; }
  /// Estimated cost per element, in machine instructions.
  int work() const { return n_code() + kCallWork * n_calls_; }
  const ChainShape& shape() const { return shape_; }

  Device device() const { return device_; }
  /// Enqueues the whole chain on its device, an accelerator.
  void enqueue() const {
    run_chain(device_,
              {is_double_, shape_, code_.data(), from_.data(), n_code(), constants_.data(), constants_.size()});
  }
  /// The memory that a thread needs to run the finished chain: `scratch` below, aligned to 64 bytes.
  std::int64_t scratch_bytes() const { return scratch_bytes_; }
  /// Runs elements [begin, end) of a chain of one row.
  void run(std::int64_t begin, std::int64_t end, std::byte* scratch) const;
  /// Runs [begin, end) in pieces of `size` elements. Buffers are at `block`, which every piece reuses; done(at, n) is
  /// called after each.
  template <class F>
  void run_blocks(std::int64_t begin, std::int64_t end, std::int64_t size, std::byte* block, std::byte* scratch,
                  F done) const {
    Running r(*this, scratch);
    for (std::int64_t n; begin < end; begin += n) {
      n = std::min(size, end - begin);
      r.run(begin, begin + n, block);
      done(begin, n);
    }
  }
  void run_rows(std::int64_t begin, std::int64_t end, std::byte* scratch) const;
  /// Sets the addresses of the buffers: base_of(number) returns each.
  template <class F>
  void place_buffers(F&& base_of) {
    for (int i = 0; i < n_code(); ++i)
      if (from_[i].buffer >= 0) code_[i].operand = base_of(from_[i].buffer) + from_[i].offset;
    for (ChainConstant& constant : constants_)
      if (constant.buffer >= 0) constant.from = base_of(constant.buffer);
  }

 private:
  static constexpr int kCallWork = 7;  // the extra cost of calling a loop (sigmoid, ...), in machine instructions
  // The most that an op takes. Code: two prefetches, a load, a call with its operands stored and loaded (5), a store;
  // chunks: two constants, two operands of a call, a result that is read again, and in run_rest() copies of two
  // operands and a result.
  static constexpr int kOpCode = 9, kOpChunks = 8;
  // The most in a chain. 4: in a loop an op is computed again for each slice of its result; 1: `end`
  static constexpr int kMaxCode = (kOpCode + 4) * kMaxOps + 1, kMaxChunks = kOpChunks * kMaxOps;

  /// A copy of the code with chunks of its own, for one thread.
  class Running {
   public:
    Running(const Chain& chain, std::byte* scratch);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    void run(std::int64_t begin, std::int64_t end, std::byte* block);
    void run_rows(std::int64_t begin, std::int64_t end);

   private:
    void run_rest(std::int64_t at, std::int64_t n);

    const Chain& chain_;
    std::byte* const chunks_;  // the chain's, then copies of operands
    ChainCode* const code_;
    ChainCode* const rest_;     // the code of run_rest()
    const std::byte** copied_;  // the operands that run_rest() has copied
    int *moving_, *skipping_;   // for run_rows()
  };

  ChainCode& add(ChainOpcode opcode, const ChainOperand& p);
  void call(const OpDef& op, const Attrs& attrs, const ChainOperand& pair);
  int n_code() const { return code_.size(); }
  std::int64_t chunk_bytes() const { return (n_chunks_ + n_in_memory_) * std::int64_t(table_->chunk_bytes); }

  Device device_;
  const ChainTable* table_ = nullptr;
  int is_double_ = 0;     // 1 for float64: the index in a ChainTable
  int element_size_ = 0;  // bytes
  ChainShape shape_;
  bool large_ = false;  // fresh results are stored past the caches
  std::int64_t scratch_bytes_ = 0, part_ = 0;
  int n_unary_ = 0, n_calls_ = 0, n_prefetch_ = 0, n_chunks_ = 0, n_in_memory_ = 0;
  ReusedList<ChainCode> code_;
  ReusedList<ChainOperand> from_;  // one for each of code_
  ReusedList<ChainConstant> constants_;
};

}  // namespace kassette::autograd
