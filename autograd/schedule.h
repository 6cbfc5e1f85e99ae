// autograd/schedule.h - the steps of a loop as they are run, kept from run to run.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "autograd/loop_chain.h"

namespace kassette {

/// Which steps a list has, and the shapes in it: what an arrangement is found for.
struct ScheduleKey {
  std::vector<LoopGroup> once, each;  // computed in the first step for all, and in each
  std::vector<char> plain;            // per step of the plan: whether shapes are known and it runs on the CPU
  std::vector<TensorSpec> specs;      // per slot
  bool operator==(const ScheduleKey& other) const;
};

/// The steps of one list, with their chains.
struct Schedule {
  ScheduleKey of;
  std::vector<LoopGroup> groups;
  std::vector<std::unique_ptr<LoopChain>> chains;
};

/// ScheduleCache that no run has now: finding one takes as long as some steps of the loop. Safe from several threads.
class ScheduleCache {
 public:
  /// Null where none is kept for that.
  std::unique_ptr<Schedule> take(const ScheduleKey& wanted);
  void keep(std::unique_ptr<Schedule> a) noexcept;

 private:
  static constexpr std::size_t kMost = 6;  // the way there and three back, and those of another shape
  std::mutex mutex_;
  std::unique_ptr<Schedule> kept_[kMost];
  std::size_t next_ = 0;  // to be replaced where all are in use
};

}  // namespace kassette
