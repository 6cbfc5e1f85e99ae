// core/inline_array.h - an array of a length that is fixed at construction, with room for short ones inside.
#pragma once
#include <cstddef>
#include <memory>

namespace kassette {

/// n objects: inside the InlineArray up to N, else on the heap.
template <class T, int N>
class InlineArray {
 public:
  explicit InlineArray(int n) : n_(n), data_(n <= N ? reinterpret_cast<T*>(fixed_) : std::allocator<T>().allocate(n)) {
    std::uninitialized_default_construct_n(data_, n);
  }
  ~InlineArray() {
    std::destroy_n(data_, n_);
    if (n_ > N) std::allocator<T>().deallocate(data_, n_);
  }
  InlineArray(const InlineArray&) = delete;
  InlineArray& operator=(const InlineArray&) = delete;
  T& operator[](int i) { return data_[i]; }
  T* get() { return data_; }

 private:
  const int n_;
  T* const data_;
  alignas(T) std::byte fixed_[N * sizeof(T)];
};

}  // namespace kassette
