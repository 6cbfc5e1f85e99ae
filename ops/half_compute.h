// ops/half_compute.h - float16 and bfloat16 on the CPU: operands are converted to float32, and results rounded once.
#pragma once
#include <cassert>
#include <type_traits>

#include "core/convert.h"
#include "core/half.h"
#include "ops/cast.h"
#include "ops/op.h"

namespace kassette::ops {

/// An operand of a kernel that computes in T, float or double: the operand itself, or a copy in T if it is float16 or
/// bfloat16. get() is null by default.
template <class T>
class WideInput {
 public:
  WideInput() = default;
  WideInput(const std::byte* from, DType dtype, std::int64_t n) : at_(reinterpret_cast<const T*>(from)) {
    if (is_half(dtype)) convert(dtype, n);
  }
  WideInput(const OpCall& call, int i) : at_(call.in[i].as<T>()) {
    const TensorSpec& s = call.spec(i);
    if (is_half(s.dtype)) convert(s.dtype, s.numel());
  }
  const T* get() const { return at_; }

 private:
  void convert(DType dtype, std::int64_t n) {
    held_ = Storage::allocate(n * static_cast<std::int64_t>(sizeof(T)), cpu);
    cast_elements(held_->data, dtype_of(at_), at_, dtype, n);
    at_ = static_cast<const T*>(held_->data);
  }
  const T* at_ = nullptr;
  Ref<Storage> held_;
};

/// A result of such a kernel. Once all its elements are computed, store() rounds them if it is float16 or bfloat16. The
/// destructor does not do that, since an interrupt may end the conversion with an exception.
template <class T>
class WideOutput {
 public:
  WideOutput() = default;
  WideOutput(std::byte* to, DType dtype, std::int64_t n) : at_(reinterpret_cast<T*>(to)), to_(to), dtype_(dtype) {
    if (is_half(dtype)) allocate(n);
  }
  explicit WideOutput(TensorDesc& out) : at_(reinterpret_cast<T*>(out.data())), to_(out.data()), dtype_(out.dtype) {
    if (is_half(dtype_)) allocate(out.numel());
  }
  T* get() const { return at_; }
  void store() const {
    if (held_) cast_elements(to_, dtype_, at_, dtype_of(at_), n_);
  }

 private:
  void allocate(std::int64_t n) {
    n_ = n;
    held_ = Storage::allocate(n * static_cast<std::int64_t>(sizeof(T)), cpu);
    at_ = static_cast<T*>(held_->data);
  }
  T* at_ = nullptr;
  std::byte* to_ = nullptr;
  DType dtype_;
  std::int64_t n_ = 0;
  Ref<Storage> held_;
};

/// Calls f(x, out) on n_in and n_out elements of `dtype`, or on float32 elements if that is float16 or bfloat16.
template <class F>
void with_wide(const std::byte* x, std::byte* out, DType dtype, std::int64_t n_in, std::int64_t n_out, F&& f) {
  dispatch(dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (std::is_same_v<T, bool>) {
      assert(false);
    } else if constexpr (kIsHalf<T>) {
      const WideInput<float> wide(x, dtype, n_in);
      const WideOutput<float> result(out, dtype, n_out);
      f(wide.get(), result.get());
      result.store();
    } else {
      f(reinterpret_cast<const T*>(x), reinterpret_cast<T*>(out));
    }
  });
}

}  // namespace kassette::ops
