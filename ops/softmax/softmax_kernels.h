// ops/softmax/softmax_kernels.h - shared by the files of softmax and its losses: kernels along an axis, and rules of
// two operands.
#pragma once
#include "core/text.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce_runs.h"
#include "ops/elementwise/half_compute.h"
#include "ops/engine/refusals.h"
#include "ops/softmax/softmax.h"
#include "ops/softmax/softmax_loops.h"

namespace kassette::ops {

inline constexpr std::int64_t kSoftmaxGrain = 1 << 13;  // elements per thread at least: each costs an exponential

template <class T>
const SoftmaxLoops<T>& softmax_loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(softmax_table).f32;
  else return KASSETTE_PICK(softmax_table).f64;
}

/// The inputs and outputs of a call. All of float dtypes have elements of type T.
template <class T>
struct Floats {
  const OpCall& call;
  const void* inputs[3];
  void* outputs[2];
  const T* in(int i) const { return static_cast<const T*>(inputs[i]); }
  T* out(int i = 0) const { return static_cast<T*>(outputs[i]); }
  const std::int64_t* ids(int i) const { return static_cast<const std::int64_t*>(inputs[i]); }
};

/// A kernel that calls kRun with Floats<float> or Floats<double>. float16 and bfloat16 are computed in float32, so that
/// results round once.
template <auto kRun>
void float_kernel(const OpCall& call) {
  DType dtype = call.out[0]->dtype;
  if (call.out[0]->numel() == 0 && call.spec(call.n_in - 1).numel() == 0) return;
  auto run = [&](auto zero) {
    using T = decltype(zero);
    Floats<T> f{call, {}, {}};
    for (int i = 0; i < call.n_in; ++i) f.inputs[i] = call.in[i].data;
    for (int i = 0; i < call.n_out; ++i) f.outputs[i] = call.out[i]->data();
    kRun(f);
  };
  if (dtype == float32) return run(0.f);
  if (dtype == float64) return run(0.);
  const unsigned mask = call.attrs.as<SoftmaxAttrs>().axes.mask(call.spec(call.n_in - 1).rank);
  if (in_slices(call, mask, float_kernel<kRun>) || in_columns(call, mask, float_kernel<kRun>)) return;
  Floats<float> f{call, {}, {}};
  WideInput<float> in[3];
  WideOutput<float> out[2];
  for (int i = 0; i < call.n_in; ++i) {
    if (call.in[i].data) in[i] = WideInput<float>(call, i);
    f.inputs[i] = in[i].get();
  }
  for (int i = 0; i < call.n_out; ++i) {
    out[i] = WideOutput<float>(*call.out[i]);
    f.outputs[i] = out[i].get();
  }
  kRun(f);
  for (int i = 0; i < call.n_out; ++i) out[i].store();
}

/// x seen from the axis of the call.
struct AxisView : AxisSplit {
  AxisView(const OpCall& call, const TensorSpec& x)
      : AxisSplit(x, __builtin_ctz(axes_mask(call.op.name, call.attrs.as<SoftmaxAttrs>().axes, x))) {}
  /// On several threads, calls rows(first row, count) if inner is 1, else columns(offset of the first element, first
  /// column, width).
  template <class Rows, class Columns>
  void run(Rows rows, Columns columns) const {
    if (outer * inner == 0 || n == 0) return;
    if (inner == 1) {
      devices::parallel_for(outer, std::max<std::int64_t>(1, kSoftmaxGrain / n),
                            [&](std::int64_t begin, std::int64_t end) { rows(begin, end - begin); });
      return;
    }
    // Chunks of columns, as loops read their elements three times: they should stay in the cache.
    std::int64_t width = std::min<std::int64_t>(inner, std::max<std::int64_t>(64, 4096 / n)),
                 chunks = (inner + width - 1) / width;
    devices::parallel_for(outer * chunks, std::max<std::int64_t>(1, kSoftmaxGrain / (n * width)),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t u = begin; u < end; ++u) {
                              std::int64_t o = u / chunks, c = u % chunks * width;
                              columns(o * n * inner + c, o * inner + c, std::min(width, inner - c));
                            }
                          });
  }
};

/// Throws ValueError unless all ids are in [0, n).
inline void check_ids(const std::int64_t* ids, std::int64_t count, std::int64_t n) {
  for (std::int64_t i = 0; i < count; ++i)
    if (ids[i] < 0 || ids[i] >= n) refuse_for(Refusal::class_id, ids[i], i, n);
}

inline constexpr AxisSet kLastAxis{.back = 1};

/// Sets *out to the shape that a and b share, with each size that one of them knows. Throws ValueError if they cannot
/// be equal.
inline void one_shape(const char* op, const TensorSpec& a, const TensorSpec& b, TensorSpec* out) {
  if (!a.compatible(b)) fail<ValueError>({op}, "target has shape ", a, ", output ", b, kExpected, "they must be equal");
  out->set(a.rank < 0 ? b : a);
  out->refine(b);
}
/// The rule of losses per row from int64 class ids and a float tensor.
inline void class_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::floats);
  const TensorSpec &ids = call.spec(0), &z = call.spec(1);
  if (ids.dtype != int64) fail<TypeError>({call.op.name}, "classes are ", ids.dtype, ", not int64");
  reduced_spec(call.op.name, kLastAxis, z, &out[0]);
  if (!ids.compatible(out[0]))
    fail<ValueError>({call.op.name}, "target has shape ", ids, kExpected,
                     "it must be that of output without its classes, ", static_cast<const TensorSpec&>(out[0]));
  TensorSpec merged;
  one_shape(call.op.name, ids, out[0], &merged);
  merged.dtype = z.dtype;
  out[0].set(merged);
}
/// The rule of elementwise losses: two float tensors of the same shape.
inline void elementwise_loss_rule(const OpCall& call, TensorSpec* out) {
  check_same_dtype(call);
  check_domain(call, Domain::floats);
  one_shape(call.op.name, call.spec(0), call.spec(1), out);
}
/// The output has the shape and dtype of the last input.
inline void like_last_rule(const OpCall& call, TensorSpec* out) { out->set(call.spec(call.n_in - 1)); }

}  // namespace kassette::ops
