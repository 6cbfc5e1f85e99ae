// autograd/arrangements.cpp - the steps of a loop as they are run, kept from run to run.
#include "autograd/arrangements.h"

#include <algorithm>

namespace kassette {

bool Arranged::operator==(const Arranged& other) const {
  auto same = [](const Spec& a, const Spec& b) { return a.dtype == b.dtype && a.same_shape(b); };
  return once == other.once && each == other.each && plain == other.plain &&
         std::equal(specs.begin(), specs.end(), other.specs.begin(), other.specs.end(), same);
}

std::unique_ptr<Arrangement> Arrangements::take(const Arranged& wanted) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (std::unique_ptr<Arrangement>& a : kept_)
    if (a && a->of == wanted) return std::move(a);
  return nullptr;
}

void Arrangements::keep(std::unique_ptr<Arrangement> a) noexcept {
  if (!a) return;
  std::lock_guard<std::mutex> lock(mutex_);
  for (std::unique_ptr<Arrangement>& place : kept_)
    if (!place) {
      place = std::move(a);
      return;
    }
  kept_[next_].swap(a);
  next_ = (next_ + 1) % kMost;
}

}  // namespace kassette
