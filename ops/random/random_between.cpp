// ops/random/random_between.cpp - uniform random numbers whose bounds are tensors.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/convert.h"
#include "devices/cpu/threads.h"
#include "ops/random/between.h"
#include "ops/engine/coalesce.h"
#include "ops/engine/dims.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/expr.h"
#include "ops/reduce/reduce_runs.h"
#include "ops/elementwise/half_compute.h"
#include "ops/shape/like.h"
#include "ops/random/philox.h"
#include "ops/random/random.h"

namespace kassette::ops {
namespace {

// Inputs: a key, the shape of the uniform numbers, and the bounds. The three shapes broadcast to the shape of the
// result.
constexpr std::int64_t kGrain = 1 << 14, kBlock = 256;
static_assert(kGrain % kGroupWords == 0 && kBlock % kGroupWords == 0);

TensorSpec drawn_spec(const OpCall& call) {
  TensorSpec u;
  dims_from(call, 1, &u);
  u.dtype = call.spec(2).dtype;
  return u;
}
void between_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &low = call.spec(2), &high = call.spec(3);
  if (!low.dtype.is_float()) fail_not_float({call.op.name, "minval"}, low.dtype);
  if (high.dtype != low.dtype) fail_dtypes(call.op, low.dtype, high.dtype);
  TensorSpec beside_low;
  broadcast_spec(call.op.name, drawn_spec(call), low, &beside_low);
  broadcast_spec(call.op.name, beside_low, high, out);
  out->dtype = low.dtype;
}

/// An operand that broadcasts to the output, read in the order of the output's elements.
template <class C>
class Spread {
 public:
  Spread(const C* data, const TensorSpec& spec, const TensorSpec& out) : data_(data), out_(out) {
    broadcast_strides(spec, out, stride_);
    whole_ = spec.numel() == out.numel();
  }
  /// The elements for [at, at + n) of the output: a pointer into the operand, or to `room` with a copy.
  const C* read(std::int64_t at, std::int64_t n, C* room) const {
    if (whole_) return data_ + at;
    const int last = out_.rank - 1;
    const std::int64_t inner = out_.dims[last];
    for (std::int64_t done = 0; done < n;) {
      std::int64_t row = (at + done) / inner, column = (at + done) % inner, from = column * stride_[last];
      for (int i = last - 1; i >= 0; --i) {
        from += row % out_.dims[i] * stride_[i];
        row /= out_.dims[i];
      }
      const std::int64_t m = std::min(inner - column, n - done);
      if (stride_[last]) std::copy_n(data_ + from, m, room + done);
      else std::fill_n(room + done, m, data_[from]);
      done += m;
    }
    return room;
  }

 private:
  const C* data_;
  const TensorSpec& out_;
  std::int64_t stride_[kMaxRank];
  bool whole_;
};

template <class T, class C>
void round_to(C* x, std::int64_t n) {
  if constexpr (!std::is_same_v<T, C>)
    for (std::int64_t i = 0; i < n; ++i) x[i] = convert_one<C>(convert_one<T>(x[i]));
}
/// Computes n samples. `y` and `last` are scratch memory for n elements.
template <class T, class C>
void place(const C* u, const C* low, const C* high, C* y, C* last, T* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = position(u[i], low[i], high[i]);
  for (std::int64_t i = 0; i < n; ++i) last[i] = below<T>(high[i]);
  round_to<T>(y, n);
  round_to<T>(last, n);
  for (std::int64_t i = 0; i < n; ++i) out[i] = convert_one<T>(within(y[i], last[i], low[i], high[i]));
}

template <class T>
void between(const OpCall& call, const RandomKey& key) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const RandomLoops& loops = KASSETTE_PICK(random_loops);
  const RandomLoops::Fill fill = sizeof(C) == 8 ? loops.uniform_f64 : loops.uniform_f32;
  const RandomForm form{1, 0, 2, 0};
  const TensorSpec drawn = drawn_spec(call), &out = *call.out[0];
  const std::int64_t n = out.numel(), n_drawn = drawn.numel();
  const bool whole = n_drawn == n;  // else several bounds share a number, and all numbers are drawn beforehand
  Scratch<C> numbers(whole ? 0 : n_drawn);
  if (!whole) {
    devices::parallel_for(n_drawn, kGrain, [&](std::int64_t begin, std::int64_t end) {
      fill(key, begin, end - begin, form, numbers.get() + begin);
    });
  }
  const WideInput<C> low(call, 2), high(call, 3);
  const Spread<C> u_of(numbers.get(), drawn, out), low_of(low.get(), call.spec(2), out),
      high_of(high.get(), call.spec(3), out);
  devices::parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) C u[kBlock], a[kBlock], b[kBlock], y[kBlock], last[kBlock];
    for (std::int64_t at = begin; at < end; at += kBlock) {
      const std::int64_t m = std::min(kBlock, end - at);
      if (whole) fill(key, at, m, form, u);
      place<T>(whole ? u : u_of.read(at, m, u), low_of.read(at, m, a), high_of.read(at, m, b), y, last,
               call.out_as<T>() + at, m);
    }
  });
}
void between_kernel(const OpCall& call) {
  if (call.out[0]->numel() == 0) return;
  RandomKey key;
  std::memcpy(&key, call.in[0].data, sizeof key);
  dispatch(call.out[0]->dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (!std::is_integral_v<T>) between<T>(call, key);
  });
}

/// Draws the uniform numbers again from the key. Moving a sample to the largest number below `high` does not change its
/// gradient.
void between_gradient(const VjpContext& ctx) {
  const DType dtype = ctx.spec(2).dtype, wide = dtype.size() < 4 ? float32 : dtype;
  const Tensor u = random_uniform({ctx.in(0), ctx.in(1), wide, ctx.in(2).device()}), dy = cast(ctx.dy(), wide),
               of_high = dy * u;
  if (ctx.wants(2)) ctx.din(2) = cast(sum_to_like(dy - of_high, ctx.in(2)), dtype);
  if (ctx.wants(3)) ctx.din(3) = cast(sum_to_like(of_high, ctx.in(3)), dtype);
}

}  // namespace

constinit const OpDef random_between_op{.name = "random_between",
                                        .rule = between_rule,
                                        .cpu = between_kernel,
                                        .vjp = between_gradient,
                                        .saves_in = 3,
                                        .host = 3,
                                        .traits = kDraws};

Tensor random_between(const Draw& draw, const Tensor& low, const Tensor& high) {
  return apply1(random_between_op, {draw.key, draw.dims, low, high});
}

}  // namespace kassette::ops
