// core/kept_operand.cpp - copies of what an operand refers to.
#include <kassette/kept_operand.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace kassette {

struct KeptOperand::Values {
  std::atomic<int> owners{1};
  Tensor tensor;
  std::unique_ptr<std::byte[]> elements;
  std::vector<KeptOperand> kept;  // the items of a list
  std::vector<Operand> items;     // the same, side by side
};

void KeptOperand::keep() {
  auto values = std::make_unique<Values>();
  const void* now = nullptr;
  switch (kind_) {
    case kTensor: values->tensor = *static_cast<const Tensor*>(pointer_); break;
    case kShaped: values->tensor = make_(pointer_); break;
    case kArray: {
      const std::size_t bytes = count_ * static_cast<std::size_t>(dtype_.size());
      values->elements = std::make_unique<std::byte[]>(bytes);
      if (bytes > 0) std::memcpy(values->elements.get(), pointer_, bytes);
      now = values->elements.get();
      break;
    }
    default: {
      const auto* given = static_cast<const Operand*>(pointer_);
      values->kept.assign(given, given + count_);
      values->items.assign(values->kept.begin(), values->kept.end());
      now = values->items.data();
    }
  }
  if (!now) {
    now = &values->tensor;
    kind_ = kTensor;
    count_ = 0;
  }
  pointer_ = now;
  values_ = values.release();
}

KeptOperand::KeptOperand(const KeptOperand& other) noexcept
    : Operand(static_cast<const Operand&>(other)), values_(other.values_) {
  if (values_) values_->owners.fetch_add(1, std::memory_order_relaxed);
}
KeptOperand& KeptOperand::operator=(const KeptOperand& other) noexcept {
  KeptOperand copy(other);
  std::swap(values_, copy.values_);
  Operand::operator=(static_cast<const Operand&>(other));
  return *this;
}
KeptOperand::~KeptOperand() {
  if (values_ && values_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete values_;
}

}  // namespace kassette
