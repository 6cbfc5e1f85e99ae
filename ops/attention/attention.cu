// ops/attention/attention.cu - attention and its gradient on CUDA. A thread sums one row of a result, in parts that fit
// into registers, and computes the scores for each part again: no memory besides the results is needed.
#include <iterator>
#include <limits>

#include "ops/attention/attention_shape.h"
#include "ops/elementwise/elementwise.cuh"
#include "ops/engine/teams.cuh"

namespace kassette::cuda {
namespace {

using ops::AttentionAttrs;
using ops::AttentionShape;

constexpr int kPart = 16;  // elements of a row at once

/// What the kernels share; they compute in C.
template <class T>
struct Attended {
  using C = Wide<T>;
  AttentionShape s;
  const T *q, *k, *v;
  const void* mask;
  const C* logs;

  __device__ static C unseen() { return -std::numeric_limits<C>::infinity(); }
  __device__ static C product(const T* a, const T* b, std::int64_t n) {
    C sum = 0;
    for (std::int64_t c = 0; c < n; ++c) sum += load(a + c) * load(b + c);
    return sum;
  }
  /// The same of a cotangent: its zeros count as zeros (Note [Zero cotangents]).
  __device__ static C cotangent_product(const T* cotangent, const T* b, std::int64_t n) {
    C sum = 0;
    for (std::int64_t c = 0; c < n; ++c) sum += m::mul_no_nan(load(cotangent + c), load(b + c));
    return sum;
  }
  __device__ C score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (j >= s.seen(i)) return unseen();
    const std::int64_t at = s.mask_at(b, h, i, j);
    if (mask && !s.additive && !static_cast<const bool*>(mask)[at]) return unseen();
    const C sum = product(q + s.row(b, i, h, s.queries, s.width), k + s.row(b, j, h, s.keys, s.width), s.width) *
                  static_cast<C>(s.scale);
    return mask && s.additive ? sum + load(static_cast<const T*>(mask) + at) : sum;
  }
  __device__ C log_of(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return logs[(b * s.heads + h) * s.queries + i];
  }
  /// The weight of key j for query i, from the logarithm of the sum of exponentials.
  __device__ C weight(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const C log = log_of(b, h, i);
    return log == unseen() ? C(0) : m::exp(score(b, h, i, j) - log);
  }
};

/// Row t of a tensor (batch, n, heads, width).
struct Row {
  std::int64_t b, i, h;
  __device__ Row(std::int64_t t, std::int64_t n, std::int64_t heads)
      : b(t / heads / n), i(t / heads % n), h(t % heads) {}
};

template <class T>
__global__ void sum_logs(Attended<T> a, std::int64_t rows, Wide<T>* logs) {
  using C = Wide<T>;
  for (std::int64_t t = Thread::first(); t < rows; t += Thread::step()) {
    const Row r(t, a.s.queries, a.s.heads);
    C most = a.unseen(), total = 0;
    for (std::int64_t j = 0; j < a.s.seen(r.i); ++j) {
      const C x = a.score(r.b, r.h, r.i, j);
      if (x == a.unseen()) continue;
      const C before = most;
      if (!(x <= most)) most = x;
      total = total * m::exp(before - most) + m::exp(x - most);
    }
    logs[(r.b * a.s.heads + r.h) * a.s.queries + r.i] = total == 0 ? a.unseen() : most + m::log(total);
  }
}
template <class T>
__global__ void sum_values(Attended<T> a, std::int64_t rows, T* y) {
  using C = Wide<T>;
  const std::int64_t width = a.s.value_width;
  for (std::int64_t t = Thread::first(); t < rows; t += Thread::step()) {
    const Row r(t, a.s.queries, a.s.heads);
    for (std::int64_t c = 0; c < width; c += kPart) {
      C sums[kPart] = {};
      for (std::int64_t j = 0; j < a.s.seen(r.i); ++j) {
        const C p = a.weight(r.b, r.h, r.i, j);
        const T* value = a.v + a.s.row(r.b, j, r.h, a.s.keys, width);
#pragma unroll
        for (int e = 0; e < kPart; ++e)
          if (c + e < width) sums[e] += p * load(value + c + e);
      }
#pragma unroll
      for (int e = 0; e < kPart; ++e)
        if (c + e < width) store(y + t * width + c + e, sums[e]);
    }
  }
}

/// The gradient's operands; inner has the sums of dy y.
template <class T>
struct Differentiated : Attended<T> {
  using C = Wide<T>;
  const T *dy, *y;
  C* inner;
  __device__ const T* cotangent(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return dy + this->s.row(b, i, h, this->s.queries, this->s.value_width);
  }
  /// The cotangent of the score of query i and key j, of weight p.
  __device__ C score_slope(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, C p) const {
    const AttentionShape& sizes = this->s;
    const C dp = this->cotangent_product(
        cotangent(b, h, i), this->v + sizes.row(b, j, h, sizes.keys, sizes.value_width), sizes.value_width);
    return m::mul_no_nan(dp - inner[(b * sizes.heads + h) * sizes.queries + i], p) * static_cast<C>(sizes.scale);
  }
};
template <class T>
__global__ void sum_inner(Differentiated<T> a, std::int64_t rows) {
  for (std::int64_t t = Thread::first(); t < rows; t += Thread::step()) {
    const Row r(t, a.s.queries, a.s.heads);
    const std::int64_t at = t * a.s.value_width;
    a.inner[(r.b * a.s.heads + r.h) * a.s.queries + r.i] = a.cotangent_product(a.dy + at, a.y + at, a.s.value_width);
  }
}
/// Row t of dq: the sum over the keys.
template <class T>
__global__ void query_slopes(Differentiated<T> a, std::int64_t rows, T* dq) {
  using C = Wide<T>;
  const std::int64_t width = a.s.width;
  for (std::int64_t t = Thread::first(); t < rows; t += Thread::step()) {
    const Row r(t, a.s.queries, a.s.heads);
    for (std::int64_t c = 0; c < width; c += kPart) {
      C sums[kPart] = {};
      for (std::int64_t j = 0; j < a.s.seen(r.i); ++j) {
        const C ds = a.score_slope(r.b, r.h, r.i, j, a.weight(r.b, r.h, r.i, j));
        const T* key = a.k + a.s.row(r.b, j, r.h, a.s.keys, width);
#pragma unroll
        for (int e = 0; e < kPart; ++e)
          if (c + e < width) sums[e] += m::mul_no_nan(ds, load(key + c + e));
      }
#pragma unroll
      for (int e = 0; e < kPart; ++e)
        if (c + e < width) store(dq + t * width + c + e, sums[e]);
    }
  }
}
/// Row t of dk, or of dv: the sum over the queries.
template <bool kOfValue, class T>
__global__ void key_slopes(Differentiated<T> a, std::int64_t rows, T* out) {
  using C = Wide<T>;
  const std::int64_t width = kOfValue ? a.s.value_width : a.s.width;
  for (std::int64_t t = Thread::first(); t < rows; t += Thread::step()) {
    const Row r(t, a.s.keys, a.s.heads);
    for (std::int64_t c = 0; c < width; c += kPart) {
      C sums[kPart] = {};
      for (std::int64_t i = a.s.causal ? r.i : 0; i < a.s.queries; ++i) {
        const C p = a.weight(r.b, r.h, i, r.i);
        const C by = kOfValue ? p : a.score_slope(r.b, r.h, i, r.i, p);
        const T* row = kOfValue ? a.cotangent(r.b, r.h, i) : a.q + a.s.row(r.b, i, r.h, a.s.queries, width);
#pragma unroll
        for (int e = 0; e < kPart; ++e)
          if (c + e < width)
            sums[e] += kOfValue ? m::mul_no_nan(load(row + c + e), by) : m::mul_no_nan(by, load(row + c + e));
      }
#pragma unroll
      for (int e = 0; e < kPart; ++e)
        if (c + e < width) store(out + t * width + c + e, sums[e]);
    }
  }
}

/// The operands of a call whose query is input `first` and whose mask, if there is one, is input `last`.
template <class T>
Attended<T> attended(const OpCall& call, int first, int last, const Wide<T>* logs) {
  const auto& attrs = call.attrs.as<AttentionAttrs>();
  const AttentionShape s(call.spec(first), call.spec(first + 1), call.spec(first + 2),
                         attrs.masked ? &call.spec(last) : nullptr, attrs);
  return {s,
          call.in[first].as<T>(),
          call.in[first + 1].as<T>(),
          call.in[first + 2].as<T>(),
          attrs.masked ? call.in[last].data : nullptr,
          logs};
}

void run_attention(const OpCall& call) {
  const std::int64_t rows = call.out[1]->numel();
  if (rows == 0) return;
  CudaDevice& device = device_of(call.device);
  for_dtype<Domain::floats>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    auto* logs = call.out_as<Wide<T>>(1);
    const Attended<T> a = attended<T>(call, 0, 3, logs);
    launch(call.op.name, device, blocks_for(rows), sum_logs<T>, a, rows, logs);
    launch(call.op.name, device, blocks_for(rows), sum_values<T>, a, rows, call.out_as<T>());
  });
}
void run_attention_grad(const OpCall& call) {
  CudaDevice& device = device_of(call.device);
  for_dtype<Domain::floats>(call.spec(1).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const Attended<T> shared = attended<T>(call, 1, 6, call.in[5].as<Wide<T>>());
    const std::int64_t queries = shared.s.batch * shared.s.queries * shared.s.heads,
                       keys = shared.s.batch * shared.s.keys * shared.s.heads;
    DeviceScratch held(device, queries * static_cast<std::int64_t>(sizeof(Wide<T>)));
    const Differentiated<T> a{shared, call.in[0].as<T>(), call.in[4].as<T>(), static_cast<Wide<T>*>(held.get())};
    if (queries) {
      launch(call.op.name, device, blocks_for(queries), sum_inner<T>, a, queries);
      launch(call.op.name, device, blocks_for(queries), query_slopes<T>, a, queries, call.out_as<T>());
    }
    if (!keys) return;
    launch(call.op.name, device, blocks_for(keys), key_slopes<false, T>, a, keys, call.out_as<T>(1));
    launch(call.op.name, device, blocks_for(keys), key_slopes<true, T>, a, keys, call.out_as<T>(2));
  });
}

const PluginKernel kernels[] = {{"attention", run_attention}, {"attention_grad", run_attention_grad}};

}  // namespace

Kernels attention_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
