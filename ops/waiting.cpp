// ops/waiting.cpp - ops of an eager loop's step that run together. See Note [Waiting ops].
#include "ops/waiting.h"

#include <algorithm>
#include <cstring>

#include "core/check_interrupt.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/shaping.h"

namespace kassette {
namespace {

// Elements of a result. Below, an op takes less time than is to be gained; above, its operands are in no cache when the next op comes.
constexpr std::int64_t kFewest = 1 << 11, kMostElements = 1 << 17;
constexpr std::int64_t kBlockElements = 1024;   // of a row block without products
constexpr std::int64_t kWorthAThread = 2500;    // nanoseconds
constexpr std::int64_t kLocalBytes = 40 << 10;  // what a first-level cache holds of a block

std::mutex lists_mutex;
Waiting* lists = nullptr;   // those that nobody has

}  // namespace

Waiting* Waiting::borrow() {
  std::lock_guard<std::mutex> lock(lists_mutex);
  if (!lists) return new Waiting;
  Waiting* w = lists;
  lists = w->next_;
  return w;
}

void Waiting::give_back() {
  std::lock_guard<std::mutex> lock(lists_mutex);
  next_ = lists;
  lists = this;
}

bool Waiting::may_wait(const OpDef& op) {
  if (&op == &matmul_row || &op == &index_row) return true;
  return op.traits == kElementwise && op.loops && op.loops->arity <= kOperands && !op.loops->bool_out;
}

/// Where operand i of an elementwise op lies beside the result: row by row, as one row, or as one element.
bool Waiting::describe_operand(const Spec& s, const Spec& out, int i, Op& op) const {
  if (s.dtype != out.dtype || s.rank < 0 || s.rank > 2) return false;
  if (s.same_shape(out)) {
    op.row[i] = op.width * op.item;
    return true;
  }
  const std::int64_t n = s.numel();
  if (n == 1) op.mask |= 1 << i;
  else if (n == op.width && s.dims[s.rank - 1] == n) op.repeats = true;
  else return false;
  return true;
}

/// What the op is, as far as shapes tell. False for what does not go by rows.
bool Waiting::describe(const Call& call, Op& op) const {
  const Spec& out = *call.out[0];
  if (out.rank != 2 || !(out.dtype == float32 || out.dtype == float64) || out.dims[0] < 2) return false;
  const std::int64_t n = out.numel();
  if (n < kFewest || n > kMostElements) return false;
  op.n_in = call.n_in;
  op.mask = 0;
  op.repeats = false;
  op.width = out.dims[1];
  op.item = out.dtype.size();
  for (std::int64_t& row : op.row) row = 0;
  if (&call.op == &matmul_row) {
    op.kind = Op::product;
    if (!MatrixProduct::of(call, out, &op.matrices) || op.matrices.p.ta || op.matrices.p.m != out.dims[0]) return false;
    op.row[op.matrices.rows] = op.matrices.p.lda * op.item;
    return rows_of_tile(op.matrices.p) < out.dims[0];
  }
  if (&call.op == &index_row) {
    op.kind = Op::columns;
    const Spec& x = call.spec(0);
    if (!call.attrs.extra || x.rank != 2 || !window_of(call.attrs, x, &op.window) || op.window.rows != out.dims[0] || op.window.width != op.width) return false;
    op.row[0] = op.window.whole * op.item;
    return true;
  }
  op.kind = Op::elementwise;
  op.loops = call.op.loops->find(out.dtype);
  if (!op.loops) return false;
  for (int i = 0; i < call.n_in; ++i)
    if (!describe_operand(call.spec(i), out, i, op)) return false;
  return op.mask != (1 << call.n_in) - 1;
}

/// Finds the operands' memory. False where one waits whose rows are not those of the result.
bool Waiting::locate(const Operand* from, Op& op) const {
  for (int i = 0; i < op.n_in; ++i) {
    Storage* s = from[i].storage->get();
    op.made_by[i] = -1;
    if (s->data.late() != this) {
      op.in[i] = static_cast<std::byte*>(s->data) + from[i].offset;
      continue;
    }
    if (op.row[i] == 0 || from[i].offset != 0 || from[i].body->dims[0] != rows_) return false;
    int k = n_ - 1;
    while (ops_[k].out.get() != s) --k;
    if (ops_[k].width * ops_[k].item != op.row[i]) return false;   // a reshape of it
    op.made_by[i] = k;
    op.in[i] = nullptr;
  }
  return true;
}

/// Whether the op goes through the same rows as those that wait, in the same blocks.
bool Waiting::joins(const Op& op, std::int64_t rows) const {
  if (n_ == 0) return true;
  if (rows != rows_) return false;
  if (op.kind != Op::product || block_ == 0) return true;
  const std::int64_t tile = rows_of_tile(op.matrices.p);
  return std::max(tile, block_) % std::min(tile, block_) == 0;
}

bool Waiting::take(const Call& call, const Operand* from) {
  for (int i = 0; i < call.n_in; ++i) {
    const Storage& s = **from[i].storage;
    if (s.kind == Storage::kBorrowed) return false;
    if (Late* l = s.data.late(); l && l != this) l->settle();   // before our lock: its owner may be asking us
  }
  Body& out = *call.out[0];
  std::lock_guard<std::mutex> lock(mutex_);
  if (n_ == kMost) run_all();
  if (!describe(call, ops_[n_])) return false;
  auto begin_anew = [&] {
    run_all();
    describe(call, ops_[0]);
  };
  const std::int64_t bytes = out.checked_bytes(call.op.name);
  if (n_ > 0 && (bytes_ + bytes > kMostWaiting || !joins(ops_[n_], out.dims[0]))) begin_anew();
  Ref<Storage> made;
  try {
    made = Storage::allocate(bytes, cpu);
  } catch (const MemoryError&) {   // temporaries that wait hold some
    if (n_ == 0) throw;
    begin_anew();
    made = Storage::allocate(bytes, cpu);
  }
  Op& op = ops_[n_];
  if (!locate(from, op)) return false;
  for (int i = 0; i < call.n_in; ++i) op.held[i] = *from[i].storage;
  op.attrs = call.attrs;
  op.to = static_cast<std::byte*>(made->data);
  op.out = made;
  made->data.wait_for(this);
  if (op.kind == Op::product) block_ = std::max(block_, rows_of_tile(op.matrices.p));
  rows_ = out.dims[0];
  bytes_ += bytes;
  n_.store(n_ + 1, std::memory_order_relaxed);
  out.storage = std::move(made);
  out.offset = 0;
  return true;
}

bool Waiting::has_room_after(int steps) {
  std::lock_guard<std::mutex> lock(mutex_);
  return n_ + n_ / steps <= kMost && bytes_ + bytes_ / steps <= kMostWaiting;
}

void Waiting::settle() noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  run_all();
}

/// What has to be run, and where operands and results are.
struct Waiting::Program {
  const Op* ops;
  const int n;
  const std::int64_t rows, block;
  bool needed[kMost] = {};   // somebody will read it; else it is not computed
  bool kept[kMost];          // somebody else has it: it goes to memory
  int last_use[kMost];
  Place to[kMost], in[kMost][kOperands];

  Program(const Op* first, int count, std::int64_t n_rows, std::int64_t block_rows) : ops(first), n(count), rows(n_rows), block(block_rows) {
    find_needed();
    place();
  }
  /// The columns through which an elementwise op looks at what they are of; or null.
  const Op* seen_through(int k, int i) const {
    const int j = ops[k].made_by[i];
    return j >= 0 && ops[k].kind == Op::elementwise && ops[j].kind == Op::columns ? ops + j : nullptr;
  }
  int source(int k, int i) const {
    const Op* columns = seen_through(k, i);
    return columns ? columns->made_by[0] : ops[k].made_by[i];
  }
  void find_needed() {
    std::int32_t ours[kMost];
    for (int k = 0; k < n; ++k) {
      ours[k] = 1;
      for (int i = 0; i < ops[k].n_in; ++i)
        if (ops[k].made_by[i] >= 0) ++ours[ops[k].made_by[i]];
    }
    for (int k = n - 1; k >= 0; --k) {
      kept[k] = ops[k].out->count.load(std::memory_order_acquire) > ours[k];
      if (kept[k]) needed[k] = true;
      if (!needed[k]) continue;
      for (int i = 0; i < ops[k].n_in; ++i)
        if (const int s = source(k, i); s >= 0 && !needed[s]) {
          needed[s] = true;
          last_use[s] = k;
        }
    }
  }
  void place() {
    std::int64_t used = 0;
    int n_free = 0;
    struct {
      std::int64_t offset, bytes;
    } free[kMost];
    auto release = [&](int k, int i) {
      const int s = source(k, i);
      if (s < 0 || kept[s] || to[s].base || last_use[s] != k || (i == 1 && source(k, 0) == s)) return;
      free[n_free++] = {to[s].offset, block * to[s].row};
    };
    // An elementwise result may take the place of an operand that is read for the last time, element by element.
    auto in_place = [&](int k, int i) { return ops[k].kind == Op::elementwise && !seen_through(k, i) && !(i == 0 && ops[k].n_in == 2 && source(k, 1) == source(k, 0)); };
    for (int k = 0; k < n; ++k) {
      if (!needed[k]) continue;
      const Op& op = ops[k];
      for (int i = 0; i < op.n_in; ++i) in[k][i] = operand(k, i);
      to[k].row = op.width * op.item;
      for (int i = 0; i < op.n_in; ++i)
        if (in_place(k, i)) release(k, i);
      if (kept[k]) {
        to[k].base = op.to;
      } else {
        const std::int64_t bytes = block * to[k].row;
        int f = 0;
        while (f < n_free && free[f].bytes != bytes) ++f;
        if (f < n_free) {
          to[k].offset = free[f].offset;
          free[f] = free[--n_free];
        } else if (const std::int64_t whole = (bytes + 63) / 64 * 64; used + whole <= kLocalBytes) {
          to[k].offset = used;
          used += whole;
        } else {
          to[k].base = op.to;
        }
      }
      for (int i = 0; i < op.n_in; ++i)
        if (!in_place(k, i)) release(k, i);
    }
  }
  Place operand(int k, int i) const {
    const Op& op = ops[k];
    const Op* columns = seen_through(k, i);
    const int s = source(k, i);
    Place p = s >= 0 ? to[s] : Place{const_cast<std::byte*>(columns ? columns->in[0] : op.in[i]), 0, columns ? columns->row[0] : op.row[i]};
    if (columns) p.offset += columns->window.first * op.item;
    return p;
  }
  /// Rough nanoseconds.
  std::int64_t cost() const {
    std::int64_t sum = 1;
    for (int k = 0; k < n; ++k)
      if (needed[k]) sum += rows * ops[k].width * (ops[k].kind == Op::product ? ops[k].matrices.p.k : 10) / 100;
    return sum;
  }
  void run(int k, std::int64_t begin, std::int64_t end, std::byte* local) const;
};

/// Short work that nobody could do again: it is not interrupted.
void Waiting::run_all() noexcept {
  if (n_ == 0) return;
  Uninterrupted whole;
  std::int64_t block = block_, widest = 1;
  for (int i = 0; i < n_; ++i) widest = std::max(widest, ops_[i].width);
  if (block == 0) block = std::clamp<std::int64_t>(kBlockElements / widest, 1, rows_);
  const Program program(ops_, n_, rows_, block);
  const std::int64_t blocks = (rows_ + block - 1) / block;
  parallel_for(blocks, std::max<std::int64_t>(1, blocks * kWorthAThread / program.cost()), [&](std::int64_t first, std::int64_t last) {
    alignas(64) std::byte local[kLocalBytes];
    for (std::int64_t b = first; b < last; ++b)
      for (int k = 0; k < program.n; ++k)
        if (program.needed[k]) program.run(k, b * block, std::min(program.rows, (b + 1) * block), local);
  });
  for (int i = 0; i < n_; ++i) ops_[i].out->data.set(ops_[i].to);
  for (int i = 0; i < n_; ++i) {
    for (Ref<Storage>& s : ops_[i].held) s = Ref<Storage>();
    ops_[i].out = Ref<Storage>();
    ops_[i].attrs.extra = Ref<Extra>();
  }
  n_ = 0;
  block_ = bytes_ = 0;
}

void Waiting::Program::run(int k, std::int64_t begin, std::int64_t end, std::byte* local) const {
  const Op& op = ops[k];
  auto operand = [&](int i, std::int64_t r) { return in[k][i].at(local, begin, r); };
  if (op.kind == Op::product) {
    // The product counts rows from the first, wherever those of this block are.
    auto first = [&](const Place& p) { return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p.at(local, begin, begin)) - static_cast<std::uintptr_t>(begin * p.row)); };
    op.matrices.run_rows(begin, end, first(in[k][op.matrices.rows]), operand(op.matrices.columns, 0), first(to[k]));
    return;
  }
  const std::int64_t bytes = op.width * op.item;
  if (op.kind == Op::columns) {
    for (std::int64_t r = begin; r < end; ++r)
      std::memcpy(to[k].at(local, begin, r), operand(0, r) + op.window.first * op.item, static_cast<std::size_t>(bytes));
    return;
  }
  bool whole = !op.repeats;
  for (int i = 0; i < op.n_in; ++i) whole = whole && (op.row[i] == 0 || in[k][i].row == bytes);
  const std::int64_t at_once = whole ? end - begin : 1;
  for (std::int64_t r = begin; r < end; r += at_once) {
    const void* from[kOperands];
    for (int i = 0; i < op.n_in; ++i) from[i] = operand(i, r);
    op.loops->by[op.mask](from, to[k].at(local, begin, r), at_once * op.width, op.attrs);
  }
}

}  // namespace kassette
