// core/ref.h - intrusive reference counts.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace kassette {

/// An owning pointer. T has an atomic member `count`, 1 when made, and a static `destroy(T*)`.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  explicit Ref(T* p) noexcept : p_(p) {
    if (p_) p_->count.fetch_add(1, std::memory_order_relaxed);
  }
  /// Takes over the caller's reference; the count is unchanged.
  static Ref adopt(T* p) noexcept {
    Ref r;
    r.p_ = p;
    return r;
  }
  Ref(const Ref& o) noexcept : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(const Ref& o) noexcept {
    Ref(o).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& o) noexcept {
    Ref(std::move(o)).swap(*this);
    return *this;
  }
  ~Ref() { drop(p_); }
  void swap(Ref& o) noexcept { std::swap(p_, o.p_); }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  /// Hands the reference to the caller, who has to drop it.
  [[nodiscard]] T* release() noexcept { return std::exchange(p_, nullptr); }
  bool operator==(const Ref& o) const noexcept { return p_ == o.p_; }

  /// Releases one reference to p, and destroys it if that was the last. p may be null.
  static void drop(T* p) noexcept {
    if (p && drop_is_last(p)) T::destroy(p);
  }
  /// Releases one reference; true if it was the last, and the caller has to destroy p. A sole owner needs no atomic
  /// write: no other thread can add a reference.
  [[nodiscard]] static bool drop_is_last(T* p) noexcept {
    return p->count.load(std::memory_order_acquire) == 1 || p->count.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

 private:
  T* p_ = nullptr;
};

}  // namespace kassette
