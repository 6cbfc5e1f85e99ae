// autograd/fuse.cpp - chains of elementwise steps in one pass, with their values in registers. See Note [Chains].
#include <algorithm>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "autograd/frame.h"
#include "devices/cpu/threads.h"
#include "ops/chain.h"

namespace kassette {
namespace {

constexpr int kMaxSteps = 32;
constexpr std::int64_t kPartBytes = 32768;   // of one operand, worth a thread

// A result that no cache will hold is written past them: a plain store reads the line first. Not where it replaces a
// variable, whose line was read just now.
constexpr std::int64_t kStreamed = 16 << 20;
constexpr std::int64_t kFetched = 1 << 20;   // operands of so many bytes are asked for ahead

void end_stream() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// Where an operand of a chain is: memory that moves on with the chunks, or a chunk of the part's own.
struct Place {
  std::byte* base;   // null: the chunk
  int chunk;
};

/// The program of a chain, and how a part of the range runs it.
class Chain {
 public:
  Chain(DType dtype, std::int64_t n, const ChainTable& table)
      : table_(table), d_(dtype == float64), element_(dtype.size()), n_(n) {}

  Place memory(std::byte* base) const { return {base, -1}; }
  Place new_chunk() { return {nullptr, n_chunks_++}; }
  /// A chunk of one repeated element.
  Place repeated(const std::byte* one) {
    for (int i = 0; i < n_ones_; ++i)
      if (ones_[i].from == one) return {nullptr, ones_[i].chunk};
    ones_[n_ones_++] = {one, n_chunks_};
    return new_chunk();
  }

  void fetch(const Place& p);
  void load(const Place& p) { add(table_.load[d_], p); }
  void store(const Place& p) { add(table_.store[d_], p); }
  void stream(const Place& p) {
    add(table_.stream[d_], p);
    streams_ = true;
  }
  void unary(const OpDef& op, const Attrs& attrs);
  /// `turned`: acc is the second operand.
  void binary(const OpDef& op, const Attrs& attrs, const Place& other, bool turned);
  void run(std::int64_t begin, std::int64_t end) const;
  void finish();

 private:
  static constexpr int kMaxCode = 9 * kMaxSteps + 1, kMaxChunks = 5 * kMaxSteps;
  struct One {
    const std::byte* from;
    int chunk;
  };

  ChainCode& add(ChainStep step, const Place& p) {
    ChainCode& c = code_[n_code_];
    chunk_of_[n_code_++] = p.chunk;
    c.step = step;
    c.operand = p.base;
    c.moves = p.base ? -1 : 0;
    return c;
  }
  void call(const OpDef& op, const Attrs& attrs, const Place& pair);
  void run_rest(ChainCode* code, std::byte* chunks, std::int64_t at, std::int64_t n) const;

  const ChainTable& table_;
  const int d_, element_;
  const std::int64_t n_;
  int n_code_ = 0, n_fetch_ = 0, n_chunks_ = 0, n_ones_ = 0;
  bool streams_ = false;
  ChainCode code_[kMaxCode];
  int chunk_of_[kMaxCode];   // of instructions whose operand is a chunk
  One ones_[2 * kMaxSteps];
};

/// Processors see ahead in one stream; with several to follow beside results that are written, they are helped.
void Chain::fetch(const Place& p) {
  if (!p.base || n_ * element_ < kFetched) return;
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
  if (ChainStep step = table_.unary[d_][&op - unary_rows.data()]) add(step, {nullptr, 0}).params = params_of(attrs);
  else call(op, attrs, new_chunk());
}

void Chain::binary(const OpDef& op, const Attrs& attrs, const Place& other, bool turned) {
  auto index = &op - binary_rows.data();
  if (ChainStep step = (turned ? table_.turned : table_.binary)[d_][index]) {
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

void Chain::finish() { add(table_.end[d_], {nullptr, 0}); }

void Chain::run(std::int64_t begin, std::int64_t end) const {
  alignas(64) std::byte chunks[kMaxChunks * kMaxChunkBytes];
  ChainCode code[kMaxCode];
  std::copy_n(code_, n_code_, code);
  for (int i = 0; i < n_code_; ++i)
    if (!code[i].operand) code[i].operand = chunks + chunk_of_[i] * table_.chunk_bytes;
  code[n_code_ - 1].operand = reinterpret_cast<std::byte*>(code);
  for (int i = 0; i < n_ones_; ++i) table_.repeat[d_](chunks + ones_[i].chunk * table_.chunk_bytes, ones_[i].from);
  const std::int64_t chunk = table_.chunk_bytes / element_, whole = begin + (end - begin) / chunk * chunk;
  if (whole > begin) table_.run[d_](code, begin * element_, whole * element_);
  if (whole < end) run_rest(code, chunks, whole, end - whole);
  if (streams_) end_stream();
}

/// The last elements, fewer than a chunk: what moves is copied to a chunk, and back.
void Chain::run_rest(ChainCode* code, std::byte* chunks, std::int64_t at, std::int64_t n) const {
  One copies[3 * kMaxSteps];
  int n_copies = 0;
  for (int i = n_fetch_; i < n_code_ - 1; ++i) {
    ChainCode& c = code[i];
    if (!c.moves) continue;
    const std::byte* from = c.operand + at * element_;
    int k = 0;
    while (k < n_copies && copies[k].from != from) ++k;
    if (k == n_copies) {
      copies[n_copies++] = {from, n_chunks_ + k};
      table_.pad[d_](chunks + (n_chunks_ + k) * table_.chunk_bytes, from, n);
    }
    c.operand = chunks + copies[k].chunk * table_.chunk_bytes;
    c.moves = 0;
  }
  table_.run[d_](code + n_fetch_, 0, 1);
  for (int i = n_fetch_; i < n_code_ - 1; ++i) {
    if (!code_[i].moves || (code_[i].step != table_.store[d_] && code_[i].step != table_.stream[d_])) continue;
    std::memcpy(code_[i].operand + at * element_, code[i].operand, static_cast<std::size_t>(n * element_));
  }
}

}  // namespace

/// As many steps from `begin` on as go over the same number of elements of the same float dtype. Runs their rules, so that
/// the slots have their shapes. One step alone is an item that is not fused, unless it reads thin results.
Plan::Item Plan::gather(Frame& f, int begin, int end) const {
  Item item{begin, begin, 0, false};
  DType dtype;
  bool thins = false;
  for (int k = begin; k < end && k - begin < kMaxSteps; ++k) {
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
    item.fused = item.end > begin + 1 || thins;
  }
  return item;
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

void Plan::run_fused(Frame& f, const Item& item) const {
  const DType dtype = f.own[static_cast<std::size_t>(step(item.begin).out)].dtype;
  Chain chain(dtype, item.n, KASSETTE_PICK(chain_table));
  Place kept[kMaxSteps];   // results that are read again
  auto place = [&](int slot) {
    const Body& b = *f.at[static_cast<std::size_t>(slot)];
    bool one = f.thin[static_cast<std::size_t>(slot)] || (b.numel() == 1 && item.n != 1);
    if (b.storage) return one ? chain.repeated(b.data()) : chain.memory(b.data());
    int j = item.begin;
    while (step(j).out != slot) ++j;
    return kept[j - item.begin];
  };
  for (int k = item.begin; k < item.end; ++k)
    for (int i = 0; i < step(k).n_in; ++i)
      if (f.at[static_cast<std::size_t>(input(step(k), i))]->storage) chain.fetch(place(input(step(k), i)));
  int acc = -1;   // the slot whose value is in registers
  for (int k = item.begin; k < item.end; ++k) {
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
  chain.finish();
  parallel_for(item.n, kPartBytes / dtype.size(), [&](std::int64_t begin, std::int64_t end) { chain.run(begin, end); });
}

}  // namespace kassette
