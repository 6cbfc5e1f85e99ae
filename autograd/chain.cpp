// autograd/chain.cpp - a chain: elementwise ops compiled to threaded code. See Note [Chains].
#include "autograd/chain.h"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "core/fast_paths.h"

namespace kassette::autograd {

namespace {

const ChainTable& table_for(Device device, std::int64_t at_once) {
  if (device != cpu) return device_chain_table();
  const ChainTables& tables = KASSETTE_PICK(chain_tables);
  return at_once < fast_path_thresholds.long_chunks ? tables.usual : tables.large;
}

}  // namespace

Chain::Chain(DType dtype, const ChainShape& shape, Device device, std::int64_t at_once)
    : device_(device), table_(table_for(device, at_once)), is_double_(dtype == float64), element_size_(dtype.size()),
      shape_(shape), large_(device == cpu && may_take(FastPath::streamed) &&
                            shape.numel() * element_size_ >= fast_path_thresholds.streamed) {}

ChainCode& Chain::add(ChainOpcode opcode, const ChainOperand& p) {
  ChainCode& c = code_[n_code_];
  from_[n_code_++] = p;
  c.opcode = opcode;
  c.operand = p.base;
  bool moves = p.base || p.buffer >= 0;
  c.advance_mask = moves ? -1 : 0;
  n_in_memory_ += moves;
  return c;
}

ChainOperand Chain::repeated(const std::byte* one, int buffer) {
  for (int i = 0; i < n_constants_; ++i)
    if (constants_[i].buffer == buffer && (buffer >= 0 || constants_[i].from == one))
      return {.chunk = constants_[i].chunk};
  constants_[n_constants_++] = {one, buffer, n_chunks_};
  return new_chunk();
}

/// Processors prefetch one stream by themselves; several operands, in addition to results that are written, need
/// prefetch instructions.
bool Chain::prefetches() const {
  return table_.prefetch[is_double_] && shape_.numel() * element_size_ >= fast_path_thresholds.prefetched;
}
void Chain::prefetch(const ChainOperand& p) {
  if (!p.base) return;
  for (int i = 0; i < n_prefetch_; ++i)
    if (code_[i].operand == p.base) return;
  add(table_.prefetch[is_double_], p);
  ++n_prefetch_;
}

void Chain::store_result(std::byte* to, bool fresh) {
  const bool streams = large_ && fresh && reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
  if (streams) count_taken(FastPath::streamed);
  add((streams ? table_.stream : table_.store)[is_double_], memory(to));
}

void Chain::call(const OpDef& op, const Attrs& attrs, const ChainOperand& pair) {
  ChainCode& c = add(table_.call[is_double_], pair);
  c.called = {op.loops->find(is_double_ ? float64 : float32)->by[0], &attrs};
  ++n_calls_;
}

void Chain::unary(const OpDef& op, const Attrs& attrs) {
  ++n_unary_;
  if (ChainOpcode opcode = unary_opcode(table_, is_double_, op)) add(opcode, {.chunk = 0}).attrs = chain_attrs(attrs);
  else call(op, attrs, new_chunk());
}

void Chain::binary(const OpDef& op, const Attrs& attrs, const ChainOperand& other, bool reversed) {
  if (ChainOpcode opcode = binary_opcode(table_, is_double_, op, reversed)) {
    add(opcode, other);
    return;
  }
  const ChainOperand first = new_chunk(), second = new_chunk();
  store(reversed ? second : first);
  load(other);
  if (!reversed) {
    store(second);
    load(first);
  }
  call(op, attrs, first);
}

void Chain::finish() { add(table_.end[is_double_], {.chunk = 0}); }

void Chain::start(ChainCode* code, std::byte* chunks) const {
  std::copy_n(code_, n_code_, code);
  for (int i = 0; i < n_code_; ++i)
    if (!code[i].operand) code[i].operand = chunks + from_[i].chunk * table_.chunk_bytes;
  code[n_code_ - 1].operand = reinterpret_cast<std::byte*>(code);
  static constexpr double zero = 0;  // as a float32 too
  for (int i = 0; i < n_constants_; ++i)
    table_.repeat[is_double_](chunks + constants_[i].chunk * table_.chunk_bytes,
                              constants_[i].from == kZero ? &zero : static_cast<const void*>(constants_[i].from));
}

void Chain::Running::run(std::int64_t begin, std::int64_t end, std::byte* block) {
  const Chain& c = chain_;
  for (int i = 0; block && i < c.n_code_; ++i)
    if (c.from_[i].buffer >= 0) code_[i].operand = block - begin * c.element_size_;
  const std::int64_t chunk = c.table_.chunk_bytes / c.element_size_, whole = begin + (end - begin) / chunk * chunk;
  if (whole > begin) c.table_.run[c.is_double_](code_, begin * c.element_size_, whole * c.element_size_);
  if (whole < end) c.run_rest(code_, chunks_, whole, end - whole);
}

/// Completes the non-temporal stores, so that other threads see them.
Chain::Running::~Running() {
#ifdef __SSE2__
  if (chain_.large_) _mm_sfence();
#endif
}

void Chain::run(std::int64_t begin, std::int64_t end) const { Running(*this).run(begin, end, nullptr); }

/// Rows are short, and processors do not prefetch from one to the next, so each row prefetches the next one (this saves
/// a third of the time of an LSTM step on 32 x 128 cells).
void Chain::Running::run_rows(std::int64_t begin, std::int64_t end) {
  const Chain& c = chain_;
  int moving[kMaxCode], skipping[kMaxCode], n_moving = 0, n_skipping = 0;
  for (int i = 0; i < c.n_code_; ++i) {
    auto same = [&](int k) { return code_[k].operand == code_[i].operand; };
    if (code_[i].advance_mask && std::none_of(moving, moving + n_moving, same)) moving[n_moving++] = i;
    if (c.from_[i].row_gap) skipping[n_skipping++] = i;
  }
  for (int i = 0; i < n_skipping; ++i) code_[skipping[i]].operand += begin * c.from_[skipping[i]].row_gap;
  const std::int64_t width = c.shape_.width, row_bytes = width * c.element_size_;
  for (std::int64_t row = begin; row < end; ++row) {
    for (int i = 0; i < n_moving; ++i) {
      const std::byte* next = code_[moving[i]].operand + c.from_[moving[i]].row_gap + (row + 1) * row_bytes;
      for (std::int64_t k = 0; k < row_bytes; k += 64) __builtin_prefetch(next + k);
    }
    run(row * width, (row + 1) * width, nullptr);
    for (int i = 0; i < n_skipping; ++i) code_[skipping[i]].operand += c.from_[skipping[i]].row_gap;
  }
}

void Chain::run_rows(std::int64_t begin, std::int64_t end) const { Running(*this).run_rows(begin, end); }

/// Runs the last elements, fewer than a chunk: operands are copied to chunks, and results back from them.
void Chain::run_rest(const ChainCode* running, std::byte* chunks, std::int64_t at, std::int64_t n) const {
  ChainCode code[kMaxCode];
  std::copy_n(running, n_code_, code);
  const std::byte* copies[kMaxChunks];
  int n_copies = 0;
  for (int i = n_prefetch_; i < n_code_ - 1; ++i) {
    ChainCode& c = code[i];
    if (!c.advance_mask) continue;
    const std::byte* from = c.operand + at * element_size_;
    int k = 0;
    while (k < n_copies && copies[k] != from) ++k;
    if (k == n_copies) {
      copies[n_copies++] = from;
      table_.pad[is_double_](chunks + (n_chunks_ + k) * table_.chunk_bytes, from, n);
    }
    c.operand = chunks + (n_chunks_ + k) * table_.chunk_bytes;
    c.advance_mask = 0;
  }
  table_.run[is_double_](code + n_prefetch_, 0, 1);
  for (int i = n_prefetch_; i < n_code_ - 1; ++i) {
    const auto handler = running[i].opcode.handler;
    if (running[i].advance_mask &&
        (handler == table_.store[is_double_].handler || handler == table_.stream[is_double_].handler))
      std::memcpy(running[i].operand + at * element_size_, code[i].operand, n * element_size_);
  }
}

}  // namespace kassette::autograd
