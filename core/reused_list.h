// core/reused_list.h - a list that is filled and cleared again and again.
#pragma once
#include <algorithm>
#include <new>
#include <type_traits>

namespace kassette {

/// A list of objects. Its memory is not initialised, even if T has default values, and is kept when the list is
/// cleared: for what is built again at each call, in less than a microsecond.
template <class T>
class ReusedList {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  ReusedList() = default;
  ~ReusedList() { ::operator delete(data_); }
  ReusedList(const ReusedList&) = delete;
  ReusedList& operator=(const ReusedList&) = delete;
  T& add() {
    if (n_ == room_) grow();
    return data_[n_++];
  }
  void clear() { n_ = 0; }
  int size() const { return n_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](int i) { return data_[i]; }
  const T& operator[](int i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + n_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + n_; }

 private:
  __attribute__((noinline)) void grow() {
    const int room = room_ ? 2 * room_ : 16;
    T* const data = static_cast<T*>(::operator new(room * sizeof(T)));
    std::copy_n(data_, n_, data);
    ::operator delete(data_);
    data_ = data;
    room_ = room;
  }
  T* data_ = nullptr;
  int n_ = 0, room_ = 0;
};

}  // namespace kassette
