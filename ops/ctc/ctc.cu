// ops/ctc/ctc.cu - the CTC loss and its gradients on CUDA: one block for each sample, in log space, with the recursions
// of ctc_log.cpp.
#include <iterator>

#include "devices/cuda/faults.cuh"
#include "ops/ctc/ctc_batch.h"
#include "ops/ctc/ctc_log.h"
#include "ops/engine/teams.cuh"

namespace kassette::cuda {
namespace {

/// The kernel's arguments, for all samples. It computes the loss or the gradient g or, if there is a direction v, the
/// derivative of the gradient, which is written to g.
template <class T>
struct Ctc {
  const T *y, *v;
  T *loss, *g;
  const std::int64_t *labels, *input_length, *label_length;
  std::int64_t samples, most_steps, classes, width;
  double epsilon;
  Faults faults;
  CtcLog* scratch;  // scratch_size() for each block
  std::int64_t states() const { return 2 * width + 1; }
  std::int64_t scratch_size() const { return (most_steps + 3) * states() + most_steps; }
};

/// One sample, computed by one block. All threads take the same branches around barriers.
template <class T>
struct CtcOne {
  const Ctc<T>& all;
  const T *y, *v;
  const std::int64_t* labels;
  std::int64_t steps, length, n;
  CtcLog* alpha;    // without the q of its own step
  CtcLog* rows;     // two steps, and the shares
  CtcLog* inverse;  // 1 / sum(z), and the derivative of its log

  __device__ std::int64_t class_of(std::int64_t u) const { return u % 2 ? labels[u / 2] : all.classes - 1; }
  __device__ bool skips_to(std::int64_t u) const { return u % 2 && u > 2 && labels[u / 2] != labels[u / 2 - 1]; }
  __device__ double z(std::int64_t t, std::int64_t k) const {
    return static_cast<double>(y[t * all.classes + k]) + all.epsilon;
  }
  __device__ CtcLog emission(std::int64_t t, std::int64_t u) const {
    const std::int64_t k = class_of(u);
    return {m::log(z(t, k)) + m::log(inverse[t].value), v ? static_cast<double>(v[t * all.classes + k]) / z(t, k) : 0};
  }
  template <class F>
  __device__ void each(std::int64_t count, F f) const {
    for (std::int64_t i = threadIdx.x; i < count; i += kThreads) f(i);
    __syncthreads();
  }

  __device__ void sums() const {
    each(steps, [&](std::int64_t t) {
      double total = 0, along = 0;
      for (std::int64_t k = 0; k < all.classes; ++k) {
        const double x = z(t, k);
        total += x < 0 ? std::numeric_limits<double>::quiet_NaN() : x;
        if (v) along += static_cast<double>(v[t * all.classes + k]);
      }
      inverse[t] = {1 / total, -along / total};
    });
  }
  /// Computes alpha. Returns the log of the probability of all paths.
  __device__ CtcLog forward() const {
    for (std::int64_t t = 0; t < steps; ++t) {
      const CtcLog* before = rows + (t + 1) % 2 * n;
      CtcLog* after = rows + t % 2 * n;
      each(n, [&](std::int64_t u) {
        CtcLog here;
        if (t > 0) here = sum(before[u], u > 0 ? before[u - 1] : CtcLog(), skips_to(u) ? before[u - 2] : CtcLog());
        else if (u < 2) here.value = 0;
        alpha[t * n + u] = here;
        after[u] = product(here, emission(t, u));
      });
    }
    const CtcLog* end = rows + (steps - 1) % 2 * n + n - 1;
    const CtcLog total = sum(*end, n > 1 ? end[-1] : CtcLog(), CtcLog());
    __syncthreads();  // the rows are reused
    return total;
  }
  __device__ void backward(CtcLog total, T* g) const {
    const bool has_path = !(total.value == -std::numeric_limits<double>::infinity());
    CtcLog* share = rows + 2 * n;
    for (std::int64_t t = steps - 1; t >= 0; --t) {
      const double inv = inverse[t].value, plain = v ? inv * inverse[t].slope : inv;
      const CtcLog* after = rows + (t + 1) % 2 * n;  // beta * q of the next step
      CtcLog* here = rows + t % 2 * n;
      each(all.classes, [&](std::int64_t k) { store(g + t * all.classes + k, static_cast<T>(plain)); });
      if (!has_path) continue;
      each(n, [&](std::int64_t u) {
        CtcLog beta;
        if (t < steps - 1)
          beta = sum(after[u], u + 1 < n ? after[u + 1] : CtcLog(),
                     u + 2 < n && skips_to(u + 2) ? after[u + 2] : CtcLog());
        else if (u >= n - 2) beta.value = 0;
        const CtcLog path = product(alpha[t * n + u], beta);
        CtcLog part{0, 0};
        if (path.value != -std::numeric_limits<double>::infinity()) {
          part.value = m::exp(path.value - total.value) * inv;
          part.slope = part.value * (path.slope - total.slope);
        }
        share[u] = part;
        here[u] = product(beta, emission(t, u));
      });
      // A class is written by the thread of its first state, which adds up the shares of its states in order: the same
      // bits on every device.
      each(length + 1, [&](std::int64_t i) {
        const std::int64_t first = i == 0 ? 0 : 2 * i - 1, k = class_of(first);
        for (std::int64_t u = 1; u < first; u += 2)
          if (class_of(u) == k) return;
        double total_share = 0;
        for (std::int64_t u = first; u < n; u += 2)
          if (class_of(u) == k) total_share += v ? share[u].slope : share[u].value;
        store(g + t * all.classes + k, static_cast<T>(plain - total_share));
      });
    }
  }
};

template <class T>
__global__ void run_ctc(Ctc<T> all) {
  for (std::int64_t i = blockIdx.x; i < all.samples; i += gridDim.x) {
    const CtcCounts counts = ctc_counts({all.most_steps, all.classes, all.width}, i, all.labels + i * all.width,
                                        all.input_length[i], all.label_length[i]);
    if (counts.refusal != Refusal::none && threadIdx.x == 0)
      report(all.faults, counts.refusal, i, counts.numbers[0], counts.numbers[1], counts.numbers[2], counts.numbers[3],
             counts.numbers[4]);
    const std::int64_t steps = counts.steps, length = counts.labels, at = i * all.most_steps * all.classes;
    CtcLog* scratch = all.scratch + blockIdx.x * ((all.most_steps + 3) * (2 * all.width + 1) + all.most_steps);
    CtcLog* rows = scratch + all.most_steps * (2 * all.width + 1);
    const CtcOne<T> one{
        all,     all.y + at, all.v ? all.v + at : nullptr,  all.labels + i * all.width, steps, length, 2 * length + 1,
        scratch, rows,       rows + 3 * (2 * all.width + 1)};
    if (all.g)
      for (std::int64_t k = steps * all.classes + threadIdx.x; k < all.most_steps * all.classes; k += kThreads)
        store(all.g + at + k, T(0));
    if (steps == 0) {
      if (all.loss && threadIdx.x == 0) store(all.loss + i, T(0));
      continue;
    }
    one.sums();
    const CtcLog total = one.forward();
    if (all.loss && threadIdx.x == 0) store(all.loss + i, static_cast<T>(total.value == 0 ? 0 : -total.value));
    if (all.g) one.backward(total, all.g + at);
  }
}

template <class T>
void run(const OpCall& call, const T* v, T* loss, T* g) {
  const TensorSpec& y = call.spec(kCtcY);
  CudaDevice& device = device_of(call.device);
  const std::int64_t n = y.dims[0];
  if (n == 0) return;
  Ctc<T> all{call.in[kCtcY].as<T>(),
             v,
             loss,
             g,
             call.in[kCtcLabels].as<std::int64_t>(),
             call.in[kCtcInputLength].as<std::int64_t>(),
             call.in[kCtcLabelLength].as<std::int64_t>(),
             n,
             y.dims[1],
             y.dims[2],
             call.spec(kCtcLabels).dims[1],
             call.attrs.as<CtcAttrs>().epsilon,
             device.faults(),
             nullptr};
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(n, 1024));
  DeviceScratch scratch(device, blocks * all.scratch_size() * static_cast<std::int64_t>(sizeof(CtcLog)));
  all.scratch = static_cast<CtcLog*>(scratch.get());
  launch(call.op.name, device, blocks, run_ctc<T>, all);
}

template <class F>
void with_dtype(DType dtype, F f) {
  if (dtype == float32) f(static_cast<float*>(nullptr));
  else f(static_cast<double*>(nullptr));
}
void run_cost(const OpCall& call) {
  with_dtype(call.spec(kCtcY).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    run<T>(call, nullptr, call.out_as<T>(), nullptr);
  });
}
void run_grad(const OpCall& call) {
  with_dtype(call.spec(kCtcY).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    run<T>(call, nullptr, nullptr, call.out_as<T>());
  });
}
void run_grad_grad(const OpCall& call) {
  with_dtype(call.spec(kCtcY).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    run<T>(call, call.in[kCtcDirection].as<T>(), nullptr, call.out_as<T>());
  });
}

const PluginKernel kernels[] = {
    {"ctc_batch_cost", run_cost}, {"ctc_batch_cost_grad", run_grad}, {"ctc_batch_cost_grad_grad", run_grad_grad}};

}  // namespace

Kernels ctc_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
