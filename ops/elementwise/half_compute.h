// ops/elementwise/half_compute.h - float16 and bfloat16 on the CPU: operands are converted to float32, and results
// rounded once.
#pragma once
#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <type_traits>

#include "core/convert.h"
#include "core/half.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/cast.h"
#include "ops/engine/op.h"

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

/// Calls f(out) for n elements of `dtype`, or of float32 if that is float16 or bfloat16, which are rounded then.
template <class F>
void with_wide_output(std::byte* out, DType dtype, std::int64_t n, F&& f) {
  dispatch(dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (std::is_same_v<T, bool>) {
      assert(false);
    } else if constexpr (kIsHalf<T>) {
      const WideOutput<float> result(out, dtype, n);
      f(result.get());
      result.store();
    } else {
      f(reinterpret_cast<T*>(out));
    }
  });
}

/// A copy of the operands of a large call of half types would take twice their memory. in_slices() calls run(part) for
/// parts of such a call along the first axis of more than one element, each of which has some kSliceElements elements.
/// It returns false, and does nothing, if the call is small or not of half types, if that axis is one of `mask`, along
/// which the op works, or if an operand does not have it.
inline constexpr std::int64_t kSliceElements = 1 << 18;
template <class F>
bool in_slices(const OpCall& call, unsigned mask, F run) {
  constexpr int kMostIn = 3, kMostOut = 2;
  const TensorSpec& x = call.spec(call.n_in - 1);
  if (!is_half(x.dtype) || x.numel() < 2 * kSliceElements) return false;
  int axis = 0;
  while (x.dims[axis] == 1) ++axis;
  auto sliced = [&](const TensorSpec& s) {
    return is_half(s.dtype) && s.rank > axis && std::equal(s.dims, s.dims + axis + 1, x.dims);
  };
  if ((mask && __builtin_ctz(mask) <= axis) || call.n_in > kMostIn || call.n_out > kMostOut) return false;
  for (int i = 0; i < call.n_in; ++i)
    if (!sliced(call.spec(i))) return false;
  for (int i = 0; i < call.n_out; ++i)
    if (!sliced(*call.out[i])) return false;
  const std::int64_t n = x.dims[axis], most = std::max<std::int64_t>(1, kSliceElements / (x.numel() / n));
  for (std::int64_t first = 0; first < n; first += most) {
    TensorDesc in[kMostIn], out[kMostOut];
    InputView views[kMostIn];
    TensorDesc* outs[kMostOut];
    auto part = [&](const TensorDesc& whole, TensorDesc& desc) {
      desc = whole;
      desc.dims[axis] = std::min(most, n - first);
      return first * (whole.numel() / n) * whole.dtype.size();
    };
    for (int i = 0; i < call.n_in; ++i) {
      const std::int64_t skipped = part(*call.in[i].desc, in[i]);
      views[i] = {&in[i], call.in[i].data ? call.in[i].data + skipped : nullptr};
    }
    for (int i = 0; i < call.n_out; ++i) {
      out[i].offset += part(*call.out[i], out[i]);
      outs[i] = &out[i];
    }
    run(OpCall{call.op, call.attrs, views, call.n_in, outs, call.n_out, call.device});
  }
  return true;
}

/// in_slices() for ops along `mask` that do not work along the last axes, where in_slices() refuses: each part has some
/// columns, of all operands the same. They are copied to be adjacent, in half types.
template <class F>
bool in_columns(const OpCall& call, unsigned mask, F run) {
  constexpr int kMostIn = 3, kMostOut = 2;
  constexpr std::int64_t kLeast = 32;  // columns: those of a row fill a cache line
  const TensorSpec& x = call.spec(call.n_in - 1);
  if (!is_half(x.dtype) || x.numel() < 2 * kSliceElements || !mask) return false;
  const int first = std::bit_width(mask), axes = x.rank - first;
  std::int64_t columns = 1;
  for (int i = first; i < x.rank; ++i) columns *= x.dims[i];
  if (columns < 2 * kLeast || call.n_in > kMostIn || call.n_out > kMostOut) return false;
  auto has_them = [&](const TensorSpec& s) {
    return is_half(s.dtype) && s.rank >= axes && std::equal(x.dims + first, x.dims + x.rank, s.dims + s.rank - axes);
  };
  for (int i = 0; i < call.n_in; ++i)
    if (!has_them(call.spec(i))) return false;
  for (int i = 0; i < call.n_out; ++i)
    if (!has_them(*call.out[i])) return false;
  const std::int64_t width = std::max(kLeast, kSliceElements / (x.numel() / columns)), parts = columns / width;
  if (parts < 2) return false;
  Ref<Storage> held[kMostIn + kMostOut];
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t from = columns * part / parts, some = columns * (part + 1) / parts - from;
    TensorDesc in[kMostIn], out[kMostOut];
    InputView views[kMostIn];
    TensorDesc* outs[kMostOut];
    auto narrow = [&](const TensorDesc& whole, TensorDesc& desc, Ref<Storage>& storage) {
      desc = whole;
      for (int i = 0; i < axes; ++i) desc.dims[desc.rank - axes + i] = i == 0 ? some : 1;
      if (!storage) storage = Storage::allocate(whole.numel() / columns * (columns / parts + 1) * 2, cpu);
      desc.storage = storage;
      desc.offset = 0;
    };
    auto copy = [&](const TensorDesc& whole, std::byte* there, std::byte* here, bool back) {
      devices::parallel_for(whole.numel() / columns, std::max<std::int64_t>(1, kSliceElements / some),
                            [&](std::int64_t begin, std::int64_t end) {
                              for (std::int64_t r = begin; r < end; ++r) {
                                std::byte *a = here + r * some * 2, *b = there + (r * columns + from) * 2;
                                std::memcpy(back ? b : a, back ? a : b, static_cast<std::size_t>(some * 2));
                              }
                            });
    };
    for (int i = 0; i < call.n_in; ++i) {
      narrow(*call.in[i].desc, in[i], held[i]);
      views[i] = {&in[i], nullptr};
      if (!call.in[i].data) continue;
      views[i].data = in[i].data();
      copy(*call.in[i].desc, call.in[i].data, in[i].data(), /*back=*/false);
    }
    for (int i = 0; i < call.n_out; ++i) {
      narrow(*call.out[i], out[i], held[kMostIn + i]);
      outs[i] = &out[i];
    }
    run(OpCall{call.op, call.attrs, views, call.n_in, outs, call.n_out, call.device});
    for (int i = 0; i < call.n_out; ++i) copy(*call.out[i], call.out[i]->data(), out[i].data(), /*back=*/true);
  }
  return true;
}

/// Calls f(null pointer to float or double): what a dtype is computed in.
template <class F>
void in_float_or_double(DType dtype, F&& f) {
  if (dtype == float64) f(static_cast<double*>(nullptr));
  else f(static_cast<float*>(nullptr));
}

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
