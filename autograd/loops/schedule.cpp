// autograd/loops/schedule.cpp - the order in which a loop runs its instructions and chains, kept from run to run.
#include "autograd/loops/schedule.h"

namespace kassette::autograd {

std::unique_ptr<Schedule> ScheduleCache::take(const ScheduleKey& wanted) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (std::unique_ptr<Schedule>& a : kept_)
    if (a && a->of == wanted) return std::move(a);
  return nullptr;
}

void ScheduleCache::keep(std::unique_ptr<Schedule> a) noexcept {
  if (!a) return;
  std::lock_guard<std::mutex> lock(mutex_);
  for (std::unique_ptr<Schedule>& place : kept_)
    if (!place) {
      place = std::move(a);
      return;
    }
  kept_[next_].swap(a);
  next_ = (next_ + 1) % kMost;
}

}  // namespace kassette::autograd
