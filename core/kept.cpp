// core/kept.cpp - reference counts of kept callables.
#include <kassette/kept.h>

#include <atomic>
#include <ostream>

#include "core/text.h"

namespace kassette {

struct KeptObject::Box {
  std::atomic<int> count;
  void* object;
  void (*destroy)(void*);
};

KeptObject::KeptObject(void* object, void (*destroy)(void*)) : box_(nullptr) {
  try {
    box_ = new Box{{1}, object, destroy};
  } catch (...) {
    destroy(object);
    throw;
  }
}
KeptObject::KeptObject(const KeptObject& other) noexcept : box_(other.box_) {
  if (box_) box_->count.fetch_add(1, std::memory_order_relaxed);
}
KeptObject& KeptObject::operator=(const KeptObject& other) noexcept {
  KeptObject copy(other);
  std::swap(box_, copy.box_);
  return *this;
}
KeptObject::~KeptObject() {
  if (!box_ || box_->count.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  box_->destroy(box_->object);
  delete box_;
}
void* KeptObject::object() const {
  if (!box_) fail<ValueError>({}, "a callable that is None was called");
  return box_->object;
}
bool operator==(const KeptObject& a, const KeptObject& b) { return a.box_ == b.box_; }
std::ostream& operator<<(std::ostream& os, const KeptObject& f) { return os << (f.defined() ? "<callable>" : "None"); }

}  // namespace kassette
