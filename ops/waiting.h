// ops/waiting.h - ops of an eager loop's step that run together.
#pragma once
#include <atomic>
#include <mutex>

#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/matmul.h"

namespace kassette {

// Note [Waiting ops]
// A step of an eager loop is a dozen of small ops: one at a time, each goes through all of its rows, none is worth a hand-over to
// another thread, and what a product's tile left in one core's cache is read by another core. So inside a step an elementwise
// op, a product or columns of a matrix may wait: the call checks everything, makes the result and its node, and leaves the
// arithmetic for later. What waits runs at the end of a step after which there is no room for another's, or when somebody asks for the
// bytes of a result (class Address: whatever reads bytes asks, on any thread), as one job: a thread takes some rows through all the ops,
// with the loops and tiles that the ops run on their own, hence with the same bits. By then most temporaries are gone: they never reach
// memory, and columns are read where they are.
//   Waits only what cannot fail later: float32 and float64, rank 2, operands with a value, memory for the result taken. What is
// read later must not change till then: operands are held, so nobody writes into them in place, and borrowed memory, which its owner
// may change, does not wait.
class Waiting final : public Late {
 public:
  /// A list for a scope. They are never freed: see class Late.
  static Waiting* borrow();
  void give_back();

  /// A row whose calls may wait.
  static bool may_wait(const OpDef& op);
  static constexpr int kOperands = 2;
  static constexpr std::int64_t kFewestRead = 1 << 10;   // elements of the largest operand

  struct Operand {
    const Body* body;
    const Ref<Storage>* storage;
    std::int64_t offset;
  };
  /// Lets the call wait, whose result has its shape and gets its storage here. False, and nothing done, where it has to run at once.
  bool take(const Call& call, const Operand* from);
  void settle() noexcept override;
  /// Whether nothing waits: for the thread that the list is lent to.
  bool empty() const { return n_.load(std::memory_order_relaxed) == 0; }
  /// Whether another step fits beside what waits, which is of so many.
  bool has_room_after(int steps);

 private:
  static constexpr int kMost = 64;
  static constexpr std::int64_t kMostWaiting = 4 << 20;   // of results that wait at once: temporaries among them stay till then
  struct Op {
    enum Kind : std::uint8_t { elementwise, product, columns } kind;
    bool repeats;                  // an operand is one row for all
    int n_in, mask, item;
    std::int64_t width;            // elements of a row of the result
    const std::byte* in[kOperands];
    std::int64_t row[kOperands];   // bytes from one row to the next; 0 where it is read again
    int made_by[kOperands];        // the op that waits for the operand, or -1
    std::byte* to;
    const LoopSet* loops;
    MatrixProduct matrices;
    Window window;
    Attrs attrs;
    Ref<Storage> held[kOperands], out;
  };
  /// Where rows of an operand or a result are: in memory, or for the rows of a block in memory of the thread's own.
  struct Place {
    std::byte* base = nullptr;   // null: local
    std::int64_t offset = 0, row = 0;
    std::byte* at(std::byte* local, std::int64_t block_begin, std::int64_t r) const {
      return base ? base + offset + r * row : local + offset + (r - block_begin) * row;
    }
  };
  struct Program;

  bool describe(const Call& call, Op& op) const;
  bool describe_operand(const Spec& s, const Spec& out, int i, Op& op) const;
  bool locate(const Operand* from, Op& op) const;
  bool joins(const Op& op, std::int64_t rows) const;
  void run_all() noexcept;

  std::mutex mutex_;
  std::atomic<int> n_{0};
  std::int64_t rows_ = 0, block_ = 0, bytes_ = 0;   // block_: rows of the largest tile of a product, or 0
  Op ops_[kMost];
  Waiting* next_ = nullptr;
};

/// While it lives, ops of this thread may wait; when it ends, none of them does any more.
class OpsMayWait {
 public:
  OpsMayWait() : mine_(Waiting::borrow()), scope_(context().waiting, mine_) {}
  ~OpsMayWait() {
    settle();
    mine_->give_back();
  }
  OpsMayWait(const OpsMayWait&) = delete;
  OpsMayWait& operator=(const OpsMayWait&) = delete;
  void settle() {
    if (!mine_->empty()) mine_->settle();
  }
  /// The ops of several steps run together, with one hand-over to other threads.
  void step_ends() {
    ++steps_;
    if (!mine_->empty() && mine_->has_room_after(steps_)) return;
    settle();
    steps_ = 0;
  }

 private:
  int steps_ = 0;   // since all had run
  Waiting* mine_;
  Scoped<Waiting*> scope_;
};

}  // namespace kassette
