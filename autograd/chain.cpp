// autograd/chain.cpp - the program of a chain of elementwise steps, with their values in registers. See Note [Chains].
#include "autograd/chain.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "core/fast_paths.h"

namespace kassette {
namespace {

void end_stream() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace

ChainCode& Chain::add(ChainStep step, const Place& p) {
  ChainCode& c = *new (&code_[n_code_]) ChainCode;
  from_[n_code_++] = p;
  c.step = step;
  c.operand = p.base;
  bool moves = p.base || p.source >= 0;
  c.moves = moves ? -1 : 0;
  n_moving_ += moves;
  return c;
}

Place Chain::repeated(const std::byte* one, int source) {
  for (int i = 0; i < n_ones_; ++i)
    if (ones_[i].source == source && (source >= 0 || ones_[i].from == one)) return {.chunk = ones_[i].chunk};
  ones_[n_ones_++] = {one, source, n_chunks_};
  return new_chunk();
}

/// Processors see ahead in one stream; with several to follow beside results that are written, they are helped.
bool Chain::fetches() const { return shape_.numel() * element_ >= fast_path_thresholds.fetched; }
void Chain::fetch(const Place& p) {
  if (!p.base) return;
  for (int i = 0; i < n_fetch_; ++i)
    if (code_[i].operand == p.base) return;
  add(table_.fetch[d_], p);
  ++n_fetch_;
}

void Chain::call(const OpDef& op, const Attrs& attrs, const Place& pair) {
  ChainCode& c = add(table_.call[d_], pair);
  c.loop = op.loops->find(d_ ? float64 : float32)->by[0];
  c.attrs = &attrs;
}

void Chain::unary(const OpDef& op, const Attrs& attrs) {
  if (ChainStep step = unary_step(table_, d_, op)) add(step, {.chunk = 0}).params = params_of(attrs);
  else call(op, attrs, new_chunk());
}

void Chain::binary(const OpDef& op, const Attrs& attrs, const Place& other, bool turned) {
  if (ChainStep step = binary_step(table_, d_, op, turned)) {
    add(step, other);
    return;
  }
  const Place first = new_chunk(), second = new_chunk();
  store(turned ? second : first);
  load(other);
  if (!turned) {
    store(second);
    load(first);
  }
  call(op, attrs, first);
}

void Chain::finish() { add(table_.end[d_], {.chunk = 0}); }

void Chain::start(ChainCode* code, std::byte* chunks) const {
  std::copy_n(code_.begin(), n_code_, code);
  for (int i = 0; i < n_code_; ++i)
    if (!code[i].operand) code[i].operand = chunks + from_[i].chunk * table_.chunk_bytes;
  code[n_code_ - 1].operand = reinterpret_cast<std::byte*>(code);
  for (int i = 0; i < n_ones_; ++i) table_.repeat[d_](chunks + ones_[i].chunk * table_.chunk_bytes, ones_[i].from);
}

void Chain::Running::run(std::int64_t begin, std::int64_t end, std::byte* block) {
  const Chain& c = chain_;
  for (int i = 0; block && i < c.n_code_; ++i)
    if (c.from_[i].source >= 0) code_[i].operand = block - begin * c.element_;
  const std::int64_t chunk = c.table_.chunk_bytes / c.element_, whole = begin + (end - begin) / chunk * chunk;
  if (whole > begin) c.table_.run[c.d_](code_.begin(), begin * c.element_, whole * c.element_);
  if (whole < end) c.run_rest(code_.begin(), chunks_, whole, end - whole);
  if (c.streams_) end_stream();
}

void Chain::run(std::int64_t begin, std::int64_t end) const { Running(*this).run(begin, end, nullptr); }

ChainRows::ChainRows(const Chain& chain, std::int64_t begin, std::int64_t end) : chain_(chain), begin_(begin), end_(end) {
  assert(chain.table_.chunk_bytes <= kMaxChunkBytes);
  chain.start(code_.begin(), chunks_);
  for (int i = 0; i < chain.n_ones_; ++i) repeated_[i] = chain.ones_[i].from;
  for (int i = 0; i < chain.n_code_; ++i) {
    auto same = [&](int k) { return code_[k].operand == code_[i].operand; };
    if (code_[i].moves && std::none_of(moving_, moving_ + n_moving_, same)) moving_[n_moving_++] = i;
    if (chain.from_[i].skip) skipping_[n_skipping_++] = i;
  }
  for (int k = 0; k < n_skipping_; ++k) code_[skipping_[k]].operand += first_row() * chain.from_[skipping_[k]].skip;
}

void ChainRows::repeat(int i, const std::byte* from) {
  if (repeated_[i] == from) return;
  repeated_[i] = from;
  chain_.table_.repeat[chain_.d_](chunks_ + chain_.ones_[i].chunk * chain_.table_.chunk_bytes, from);
}

/// Rows are short, and processors do not see from one to the next: they are asked for a row ahead (of a step of an LSTM on
/// 32 x 128 cells, a third of the time). Sources are to be placed again before the next run.
void ChainRows::run() {
  const Chain& c = chain_;
  const bool rows = c.shape_.rows > 1;
  const std::int64_t width = rows ? c.shape_.width : end_ - begin_, first = rows ? begin_ : 0, last = rows ? end_ : 1;
  const std::int64_t chunk = c.table_.chunk_bytes / c.element_, whole = width / chunk * chunk;
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t at = rows ? row * width : begin_;
    for (int i = 0; rows && i < n_moving_; ++i) {
      const std::byte* next = code_[moving_[i]].operand + c.from_[moving_[i]].skip + (at + width) * c.element_;
      for (std::int64_t k = 0; k < width * c.element_; k += 64) __builtin_prefetch(next + k);
    }
    if (whole > 0) c.table_.run[c.d_](code_.begin(), at * c.element_, (at + whole) * c.element_);
    if (whole < width) c.run_rest(code_.begin(), chunks_, at + whole, width - whole);
    for (int i = 0; i < n_skipping_; ++i) code_[skipping_[i]].operand += c.from_[skipping_[i]].skip;
  }
}

void Chain::run_rows(std::int64_t begin, std::int64_t end) const { ChainRows(*this, begin, end).run(); }

/// The last elements, fewer than a chunk: what moves is copied to a chunk, and back.
void Chain::run_rest(const ChainCode* program, std::byte* chunks, std::int64_t at, std::int64_t n) const {
  Unmade<ChainCode, kMaxCode> room;
  ChainCode* const code = room.begin();
  std::copy_n(program, n_code_, code);
  const std::byte* copies[kMaxChunks];
  int n_copies = 0;
  for (int i = n_fetch_; i < n_code_ - 1; ++i) {
    ChainCode& c = code[i];
    if (!c.moves) continue;
    const std::byte* from = c.operand + at * element_;
    int k = 0;
    while (k < n_copies && copies[k] != from) ++k;
    if (k == n_copies) {
      copies[n_copies++] = from;
      table_.pad[d_](chunks + (n_chunks_ + k) * table_.chunk_bytes, from, n);
    }
    c.operand = chunks + (n_chunks_ + k) * table_.chunk_bytes;
    c.moves = 0;
  }
  table_.run[d_](code + n_fetch_, 0, 1);
  for (int i = n_fetch_; i < n_code_ - 1; ++i) {
    if (!program[i].moves || (program[i].step != table_.store[d_] && program[i].step != table_.stream[d_])) continue;
    std::memcpy(program[i].operand + at * element_, code[i].operand, static_cast<std::size_t>(n * element_));
  }
}

}  // namespace kassette
