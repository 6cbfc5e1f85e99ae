// autograd/loops/schedule.h - the order in which a loop runs its instructions and chains, kept from run to run.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "autograd/loops/loop_chain.h"

namespace kassette::autograd {

/// What a schedule depends on: the instructions to run, and the shapes and devices of the slots.
struct ScheduleKey {
  std::vector<LoopGroup> once, each;  // loop-invariant instructions, run in the first step alone; those run in each
  std::vector<char> may_fuse;         // per instruction of the program: may be fused (in `each`, shapes known)
  std::vector<TensorSpec> specs;      // per slot
  std::vector<Device> devices;        // per slot
  bool operator==(const ScheduleKey&) const = default;
};

/// A list of instructions as it is run: `groups` in order, and the chains that they refer to.
struct Schedule {
  ScheduleKey of;
  std::vector<LoopGroup> groups;
  std::vector<std::unique_ptr<LoopChain>> chains;
};

/// Schedules that no run uses at the moment. Making one takes as long as some steps of the loop, so runs return theirs.
/// Thread-safe.
class ScheduleCache {
 public:
  /// Removes and returns the schedule for this key; null if there is none.
  std::unique_ptr<Schedule> take(const ScheduleKey& wanted);
  void keep(std::unique_ptr<Schedule> a) noexcept;

 private:
  static constexpr std::size_t kMost =
      6;  // a forward pass, three step adjoints of a backward pass, two for another shape
  std::mutex mutex_;
  std::unique_ptr<Schedule> kept_[kMost];
  std::size_t next_ = 0;  // the one to replace if all places are taken
};

}  // namespace kassette::autograd
