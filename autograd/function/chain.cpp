// autograd/function/chain.cpp - a chain: elementwise ops compiled to threaded code. See Note [Chains].
#include "autograd/function/chain.h"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "core/ceil_div.h"
#include "core/fast_paths.h"

namespace kassette::autograd {

namespace {

const ChainTable& table_for(Device device, std::int64_t at_once) {
  if (device != cpu) return device_chain_table();
  const ChainTables& tables = KASSETTE_PICK(chain_tables);
  return at_once < fast_path_thresholds.long_chunks ? tables.usual : tables.large;
}

}  // namespace

void Chain::begin(DType dtype, const ChainShape& shape, Device device, std::int64_t at_once) {
  device_ = device;
  table_ = &table_for(device, at_once);
  is_double_ = dtype == float64;
  element_size_ = dtype.size();
  shape_ = shape;
  large_ =
      device == cpu && may_take(FastPath::streamed) && shape.numel() * element_size_ >= fast_path_thresholds.streamed;
  n_unary_ = n_calls_ = n_prefetch_ = n_chunks_ = n_in_memory_ = 0;
  code_.clear();
  from_.clear();
  constants_.clear();
}

ChainCode& Chain::add(ChainOpcode opcode, const ChainOperand& p) {
  ChainCode& c = code_.add();
  from_.add() = p;
  c.opcode = opcode;
  c.operand = p.base;
  bool moves = p.base || p.buffer >= 0;
  c.advance_mask = moves ? -1 : 0;
  n_in_memory_ += moves;
  return c;
}

ChainOperand Chain::repeated(const std::byte* one, int buffer) {
  for (const ChainConstant& known : constants_)
    if (known.buffer == buffer && (buffer >= 0 || known.from == one)) return {.chunk = known.chunk};
  constants_.add() = {one, buffer, n_chunks_};
  return new_chunk();
}

/// Processors prefetch one stream by themselves; several operands, in addition to results that are written, need
/// prefetch instructions.
bool Chain::prefetches() const {
  return table_->prefetch[is_double_] && shape_.numel() * element_size_ >= fast_path_thresholds.prefetched;
}
void Chain::prefetch(const ChainOperand& p) {
  if (!p.base) return;
  for (int i = 0; i < n_prefetch_; ++i)
    if (code_[i].operand == p.base) return;
  add(table_->prefetch[is_double_], p);
  ++n_prefetch_;
}

void Chain::store_result(std::byte* to, bool fresh) {
  const bool streams = large_ && fresh && reinterpret_cast<std::uintptr_t>(to) % 64 == 0;
  if (streams) count_taken(FastPath::streamed);
  add((streams ? table_->stream : table_->store)[is_double_], memory(to));
}

void Chain::call(const OpDef& op, const Attrs& attrs, const ChainOperand& pair) {
  ChainCode& c = add(table_->call[is_double_], pair);
  c.called = {op.loops->find(is_double_ ? float64 : float32)->by[0], &attrs};
  ++n_calls_;
}

void Chain::unary(const OpDef& op, const Attrs& attrs) {
  ++n_unary_;
  if (ChainOpcode opcode = unary_opcode(*table_, is_double_, op)) add(opcode, {.chunk = 0}).attrs = chain_attrs(attrs);
  else call(op, attrs, new_chunk());
}

void Chain::binary(const OpDef& op, const Attrs& attrs, const ChainOperand& other, bool reversed) {
  if (ChainOpcode opcode = binary_opcode(*table_, is_double_, op, reversed)) {
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

void Chain::finish() {
  add(table_->end[is_double_], {.chunk = 0});
  const std::int64_t each = 2 * sizeof(ChainCode) + sizeof(const std::byte*) + 2 * sizeof(int);
  part_ = (fast_path_thresholds.chain_part / work() / 64 + 1) * 64;
  scratch_bytes_ = ceil_div(chunk_bytes() + n_code() * each, 64) * 64;
}

Chain::Running::Running(const Chain& c, std::byte* scratch)
    : chain_(c), chunks_(scratch), code_(reinterpret_cast<ChainCode*>(scratch + c.chunk_bytes())),
      rest_(code_ + c.n_code()), copied_(reinterpret_cast<const std::byte**>(rest_ + c.n_code())),
      moving_(reinterpret_cast<int*>(copied_ + c.n_code())), skipping_(moving_ + c.n_code()) {
  std::copy_n(c.code_.data(), c.n_code(), code_);
  for (int i = 0; i < c.n_code(); ++i)
    if (!code_[i].operand) code_[i].operand = chunks_ + c.from_[i].chunk * c.table_->chunk_bytes;
  code_[c.n_code() - 1].operand = reinterpret_cast<std::byte*>(code_);
  static constexpr double zero = 0;  // as a float32 too
  for (const ChainConstant& constant : c.constants_)
    c.table_->repeat[c.is_double_](chunks_ + constant.chunk * c.table_->chunk_bytes,
                                   constant.from == kZero ? &zero : static_cast<const void*>(constant.from));
}

void Chain::Running::run(std::int64_t begin, std::int64_t end, std::byte* block) {
  const Chain& c = chain_;
  for (int i = 0; block && i < c.n_code(); ++i)
    if (c.from_[i].buffer >= 0) code_[i].operand = block - begin * c.element_size_;
  const std::int64_t chunk = c.table_->chunk_bytes / c.element_size_, whole = begin + (end - begin) / chunk * chunk;
  if (whole > begin) c.table_->run[c.is_double_](code_, begin * c.element_size_, whole * c.element_size_);
  if (whole < end) run_rest(whole, end - whole);
}

/// Completes the non-temporal stores, so that other threads see them.
Chain::Running::~Running() {
#ifdef __SSE2__
  if (chain_.large_) _mm_sfence();
#endif
}

void Chain::run(std::int64_t begin, std::int64_t end, std::byte* scratch) const {
  Running(*this, scratch).run(begin, end, nullptr);
}

/// Rows are short, and processors do not prefetch from one to the next, so each row prefetches the next one (this saves
/// a third of the time of an LSTM step on 32 x 128 cells).
void Chain::Running::run_rows(std::int64_t begin, std::int64_t end) {
  const Chain& c = chain_;
  int n_moving = 0, n_skipping = 0;
  for (int i = 0; i < c.n_code(); ++i) {
    auto same = [&](int k) { return code_[k].operand == code_[i].operand; };
    if (code_[i].advance_mask && std::none_of(moving_, moving_ + n_moving, same)) moving_[n_moving++] = i;
    if (c.from_[i].row_gap) skipping_[n_skipping++] = i;
  }
  for (int i = 0; i < n_skipping; ++i) code_[skipping_[i]].operand += begin * c.from_[skipping_[i]].row_gap;
  const std::int64_t width = c.shape_.width, row_bytes = width * c.element_size_;
  for (std::int64_t row = begin; row < end; ++row) {
    for (int i = 0; i < n_moving; ++i) {
      const std::byte* next = code_[moving_[i]].operand + c.from_[moving_[i]].row_gap + (row + 1) * row_bytes;
      for (std::int64_t k = 0; k < row_bytes; k += 64) __builtin_prefetch(next + k);
    }
    run(row * width, (row + 1) * width, nullptr);
    for (int i = 0; i < n_skipping; ++i) code_[skipping_[i]].operand += c.from_[skipping_[i]].row_gap;
  }
}

void Chain::run_rows(std::int64_t begin, std::int64_t end, std::byte* scratch) const {
  Running(*this, scratch).run_rows(begin, end);
}

/// Runs the last elements, fewer than a chunk: operands are copied to chunks, and results back from them.
void Chain::Running::run_rest(std::int64_t at, std::int64_t n) {
  const Chain& c = chain_;
  const ChainTable& table = *c.table_;
  std::copy_n(code_, c.n_code(), rest_);
  int n_copied = 0;
  for (int i = c.n_prefetch_; i < c.n_code() - 1; ++i) {
    if (!rest_[i].advance_mask) continue;
    const std::byte* from = rest_[i].operand + at * c.element_size_;
    int k = 0;
    while (k < n_copied && copied_[k] != from) ++k;
    std::byte* const chunk = chunks_ + (c.n_chunks_ + k) * table.chunk_bytes;
    if (k == n_copied) {
      copied_[n_copied++] = from;
      table.pad[c.is_double_](chunk, from, n);
    }
    rest_[i].operand = chunk;
    rest_[i].advance_mask = 0;
  }
  table.run[c.is_double_](rest_ + c.n_prefetch_, 0, 1);
  for (int i = c.n_prefetch_; i < c.n_code() - 1; ++i) {
    const auto handler = code_[i].opcode.handler;
    if (code_[i].advance_mask &&
        (handler == table.store[c.is_double_].handler || handler == table.stream[c.is_double_].handler))
      std::memcpy(code_[i].operand + at * c.element_size_, rest_[i].operand, n * c.element_size_);
  }
}

}  // namespace kassette::autograd
