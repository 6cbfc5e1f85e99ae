// autograd/chain.h - a chain: elementwise ops compiled to threaded code. See Note [Chains].
#pragma once
#include <algorithm>
#include <type_traits>

#include "autograd/program.h"
#include "ops/device_chain_view.h"

namespace kassette::autograd {

/// An array of n objects of type T whose memory is not initialised, even if T has default values. A chain uses few of
/// them, and most chains are built again at each call.
template <class T, int n>
class UninitializedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  T& operator[](int i) { return *reinterpret_cast<T*>(bytes_ + i * sizeof(T)); }
  const T& operator[](int i) const { return *reinterpret_cast<const T*>(bytes_ + i * sizeof(T)); }

 private:
  alignas(T) std::byte bytes_[sizeof(T) * n];
};

/// Threaded code of fused elementwise ops, with intermediate values in registers. It can be run over parts of a range.
class Chain {
 public:
  static constexpr int kMaxOps = DeviceChain::kMaxOps;

  /// `at_once`: the number of elements that one thread processes on the CPU; it decides the chunk size.
  Chain(DType dtype, const ChainShape& shape, Device device, std::int64_t at_once);

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
  void load(const ChainOperand& p) { add(table_.load[is_double_], p); }
  void store(const ChainOperand& p) { add(table_.store[is_double_], p); }
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
      return DeviceChain::has_room(n_code_, n_in_memory_ + n_constants_, n_unary_, n_chunks_ - n_constants_);
    return n_code_ + 2 * kOpCode < kMaxCode && n_chunks_ + n_in_memory_ + 2 * kOpChunks < kMaxChunks &&
           n_constants_ + kOpConstants < kMaxConstants;
  }
  /// Estimated cost per element, in machine instructions.
  int work() const { return n_code_ + kCallWork * n_calls_; }
  const ChainShape& shape() const { return shape_; }

  Device device() const { return device_; }
  /// Enqueues the whole chain on its device, an accelerator.
  void enqueue() const {
    run_chain(device_, {is_double_, shape_, code_, &from_[0], n_code_, constants_, n_constants_});
  }
  /// Runs elements [begin, end) of a chain of one row.
  void run(std::int64_t begin, std::int64_t end) const;
  /// Runs [begin, end) in pieces of `size` elements. Buffers are at `block`, which every piece reuses; done(at, n) is
  /// called after each.
  template <class F>
  void run_blocks(std::int64_t begin, std::int64_t end, std::int64_t size, std::byte* block, F done) const {
    Running r(*this);
    for (std::int64_t n; begin < end; begin += n) {
      n = std::min(size, end - begin);
      r.run(begin, begin + n, block);
      done(begin, n);
    }
  }
  void run_rows(std::int64_t begin, std::int64_t end) const;
  /// Sets the addresses of the buffers: base_of(number) returns each.
  template <class F>
  void place_buffers(F&& base_of) {
    for (int i = 0; i < n_code_; ++i)
      if (from_[i].buffer >= 0) code_[i].operand = base_of(from_[i].buffer) + from_[i].offset;
    for (int i = 0; i < n_constants_; ++i)
      if (constants_[i].buffer >= 0) constants_[i].from = base_of(constants_[i].buffer);
  }

 private:
  static constexpr int kCallWork = 7;  // the extra cost of calling a loop (sigmoid, ...), in machine instructions
  // The most that an op takes. Code: two prefetches, a load, a call with its operands stored and loaded (5), a store;
  // chunks: two constants, two operands of a call, a result that is read again, and in run_rest() copies of two
  // operands and a result.
  static constexpr int kOpCode = 9, kOpChunks = 8, kOpConstants = 2;
  // 4: in a loop an op is computed again for each slice of its result; 1: `end`
  static constexpr int kMaxCode = (kOpCode + 4) * kMaxOps + 1, kMaxChunks = kOpChunks * kMaxOps,
                       kMaxConstants = kOpConstants * kMaxOps;

  /// A copy of the code with chunks of its own, for one thread.
  class Running {
   public:
    explicit Running(const Chain& chain) : chain_(chain) { chain.start(code_, chunks_); }
    ~Running();
    void run(std::int64_t begin, std::int64_t end, std::byte* block);
    void run_rows(std::int64_t begin, std::int64_t end);

   private:
    const Chain& chain_;
    alignas(64) std::byte chunks_[kMaxChunks * kMaxChunkBytes];
    ChainCode code_[kMaxCode];
  };

  ChainCode& add(ChainOpcode opcode, const ChainOperand& p);
  void call(const OpDef& op, const Attrs& attrs, const ChainOperand& pair);
  void start(ChainCode* code, std::byte* chunks) const;
  void run_rest(const ChainCode* code, std::byte* chunks, std::int64_t at, std::int64_t n) const;

  const Device device_;
  const ChainTable& table_;
  const int is_double_;     // 1 for float64: the index in a ChainTable
  const int element_size_;  // bytes
  const ChainShape shape_;
  const bool large_;  // fresh results are stored past the caches
  int n_code_ = 0, n_unary_ = 0, n_calls_ = 0, n_prefetch_ = 0, n_chunks_ = 0, n_constants_ = 0, n_in_memory_ = 0;
  ChainCode code_[kMaxCode];
  UninitializedArray<ChainOperand, kMaxCode> from_;
  ChainConstant constants_[kMaxConstants];
};

}  // namespace kassette::autograd
