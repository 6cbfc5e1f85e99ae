// ops/softmax/softmax.cu - softmax along an axis and its losses on CUDA: SoftmaxGrad is softmax_grad_rows and
// softmax_grad_columns of softmax_simd.cpp, and so on, by the same formulae. logsumexp is in logsumexp.cu.
#include <iterator>

#include "devices/cuda/faults.cuh"
#include "ops/softmax/lines.cuh"
#include "ops/engine/refusals.h"

namespace kassette::cuda {
namespace {

/// The largest element and the sum of exponentials of a line. The sum is NaN if the largest element is not finite, and
/// so are results.
template <class C>
struct Total {
  C max, sum;
};
template <class Line>
__device__ Total<typename Line::C> total_of(const Line& line, const typename Line::Input& x) {
  using C = typename Line::C;
  const Exponentials<C> e = line.exponentials(x);
  const C none = e.max - e.max;
  return {e.max, none == C(0) ? e.sum : none};
}
/// y = softmax(x). Recomputes the exponentials: storing them would be slower, and would round half types twice.
template <class Line, class T>
__device__ void write_softmax(const Line& line, const typename Line::Input& x, T* y, const Total<Wide<T>>& t) {
  using C = Wide<T>;
  const C scale = C(1) / t.sum;
  line.write(
      y, [&](std::int64_t, C v) { return m::exp(v - t.max) * scale; }, x);
}

template <class T>
struct Softmax {
  using Element = T;
  const T* x;
  T* y;
  bool packed() const { return packs_at(x, y); }
  template <class Line>
  __device__ void run(std::int64_t, const Line& line) const {
    const auto in = line.read(x);
    write_softmax(line, in, y, total_of(line, in));
  }
};
template <class T>
struct LogSoftmax {
  using Element = T;
  const T* x;
  T* y;
  bool packed() const { return packs_at(x, y); }
  template <class Line>
  __device__ void run(std::int64_t, const Line& line) const {
    using C = Wide<T>;
    const auto in = line.read(x);
    const Exponentials<C> e = line.exponentials(in);
    const C log_sum = m::log(e.sum), shift = e.shift();
    line.write(
        y, [&](std::int64_t, C v) { return (v - shift) - log_sum; }, in);
  }
};
/// dx = y * (dy - sum(dy * y) / sum(y)), as sum(y) is not quite 1 if y was rounded
template <class T>
struct SoftmaxGrad {
  using Element = T;
  const T *dy, *y;
  T* dx;
  bool packed() const { return packs_at(dy, y, dx); }
  template <class Line>
  __device__ void run(std::int64_t, const Line& line) const {
    using C = Wide<T>;
    const auto d = line.read(dy), p = line.read(y);
    const C sum = line.reduce(
        Sum<C>(), [](std::int64_t, C slope, C v) { return m::mul_no_nan(slope, v); }, d, p);
    const C weights = line.reduce(
        Sum<C>(), [](std::int64_t, C v) { return v; }, p);
    const C mean = sum == C(0) ? C(0) : sum / weights;
    line.write(
        dx, [&](std::int64_t, C slope, C v) { return m::mul_no_nan(slope - mean, v); }, d, p);
  }
};
/// loss = sum(t * (log_sum - (z - max))), with 0 where t is 0; p = softmax(z). Note [Invariant under a shift]
template <class T>
struct CrossEntropy {
  using Element = T;
  const T *t, *z;
  T *loss, *p;
  bool packed() const { return packs_at(t, z, p); }
  template <class Line>
  __device__ void run(std::int64_t o, const Line& line) const {
    using C = Wide<T>;
    const auto target = line.read(t), in = line.read(z);
    const Total<C> total = total_of(line, in);
    const C log_sum = m::log(total.sum);
    const C sum = line.reduce(
        Sum<C>(),
        [&](std::int64_t, C share, C v) { return share == C(0) ? C(0) : share * (log_sum - (v - total.max)); }, target,
        in);
    if (line.leads()) store(loss + o, sum);
    write_softmax(line, in, p, total);
  }
};
/// dz = dy * (p * sum(t) - t)
template <class T>
struct CrossEntropyGrad {
  using Element = T;
  const T *dy, *t, *p;
  T* dz;
  bool packed() const { return packs_at(t, p, dz); }
  template <class Line>
  __device__ void run(std::int64_t o, const Line& line) const {
    using C = Wide<T>;
    const auto target = line.read(t), in = line.read(p);
    const C g = load(dy + o), sum = line.reduce(
                                  Sum<C>(), [](std::int64_t, C share) { return share; }, target);
    line.write(
        dz, [&](std::int64_t, C share, C v) { return m::mul_no_nan(g, v * sum - share); }, target, in);
  }
};
/// The range to which probabilities are clipped.
template <class C>
struct Bounds {
  C low, high;
  __device__ C clip(C q) const { return q < low ? low : q > high ? high : q; }
  __device__ bool inside(C q) const { return q >= low && q <= high; }
};
/// loss = -sum(t * log(q)), with q = p / sum(p) clipped
template <class T>
struct Probability {
  using Element = T;
  const T *t, *p;
  Bounds<Wide<T>> bounds;
  T* loss;
  bool packed() const { return packs_at(t, p); }
  template <class Line>
  __device__ void run(std::int64_t o, const Line& line) const {
    using C = Wide<T>;
    const auto target = line.read(t), in = line.read(p);
    const C total = line.reduce(
        Sum<C>(), [](std::int64_t, C v) { return v; }, in);
    const C sum = line.reduce(
        Sum<C>(), [&](std::int64_t, C share, C v) { return share * m::log(bounds.clip(v / total)); }, target, in);
    if (line.leads()) store(loss + o, -sum);
  }
};
/// dp = dy * (sum(t) - t / q) / sum(p), with q = p / sum(p). t counts as 0 where q is clipped
template <class T>
struct ProbabilityGrad {
  using Element = T;
  const T *dy, *t, *p;
  Bounds<Wide<T>> bounds;
  T* dp;
  bool packed() const { return packs_at(t, p, dp); }
  template <class Line>
  __device__ void run(std::int64_t o, const Line& line) const {
    using C = Wide<T>;
    const auto target = line.read(t), in = line.read(p);
    const C g = load(dy + o), total = line.reduce(
                                  Sum<C>(), [](std::int64_t, C v) { return v; }, in);
    const C counted = line.reduce(
        Sum<C>(), [&](std::int64_t, C share, C v) { return bounds.inside(v / total) ? share : C(0); }, target, in);
    line.write(
        dp,
        [&](std::int64_t, C share, C v) {
          const C q = v / total;
          return g == C(0) ? g : g * (counted - (bounds.inside(q) ? share / q : C(0))) / total;
        },
        target, in);
  }
};
/// The class of each row. One that is out of range [0, n) is reported as an error, and -1 takes its place.
struct Classes {
  const std::int64_t* ids;
  std::int64_t n;
  Faults faults;
  __device__ std::int64_t operator[](std::int64_t row) const {
    const std::int64_t id = ids[row];
    if (id >= 0 && id < n) return id;
    report(faults, Refusal::class_id, row, id, row, n);
    return -1;
  }
};
/// loss = log(sum(q)) - log(q[id]), with q = p clipped
template <class T>
struct SparseProbability {
  using Element = T;
  Classes classes;
  const T* p;
  Bounds<Wide<T>> bounds;
  T* loss;
  bool packed() const { return packs_at(p); }
  template <class Line>
  __device__ void run(std::int64_t o, const Line& line) const {
    using C = Wide<T>;
    const C total = line.reduce(
        Sum<C>(), [&](std::int64_t, C v) { return bounds.clip(v); }, line.read(p));
    if (!line.leads()) return;
    const std::int64_t id = classes[o];
    store(loss + o, id < 0 ? std::numeric_limits<C>::quiet_NaN()
                           : m::log(total) - m::log(bounds.clip(load(p + o * line.members() + id))));
  }
};
/// dp = dy * (1 / sum(q) - (1 / q at the class, else 0)), and 0 where p is clipped
template <class T>
struct SparseProbabilityGrad {
  using Element = T;
  const T *dy, *p;
  Classes classes;
  Bounds<Wide<T>> bounds;
  T* dp;
  bool packed() const { return packs_at(p, dp); }
  template <class Line>
  __device__ void run(std::int64_t o, const Line& line) const {
    using C = Wide<T>;
    const auto in = line.read(p);
    const C g = load(dy + o), total = line.reduce(
                                  Sum<C>(), [&](std::int64_t, C v) { return bounds.clip(v); }, in);
    const std::int64_t id = classes[o];
    line.write(
        dp,
        [&](std::int64_t i, C q) {
          return g != C(0) && bounds.inside(q) ? g / total - (i == id ? g / q : C(0)) : C(0);
        },
        in);
  }
};
/// loss = log_sum - (z[id] - max); p = softmax(z)
template <class T>
struct SparseCrossEntropy {
  using Element = T;
  Classes classes;
  const T* z;
  T *loss, *p;
  bool packed() const { return packs_at(z, p); }
  template <class Line>
  __device__ void run(std::int64_t o, const Line& line) const {
    const auto in = line.read(z);
    const Total<Wide<T>> total = total_of(line, in);
    if (line.leads()) {
      const std::int64_t id = classes[o];
      store(loss + o, id < 0 ? std::numeric_limits<Wide<T>>::quiet_NaN()
                             : m::log(total.sum) - (load(z + o * line.members() + id) - total.max));
    }
    write_softmax(line, in, p, total);
  }
};

Groups groups_of(const OpCall& call, const TensorSpec& x) {
  return Groups(x, call.attrs.as<SoftmaxAttrs>().axes.mask(x.rank));
}

void run_softmax(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_lines(call, groups_of(call, call.spec(0)), Softmax<T>{call.in[0].as<T>(), call.out_as<T>()});
  });
}
void run_log_softmax(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_lines(call, groups_of(call, call.spec(0)), LogSoftmax<T>{call.in[0].as<T>(), call.out_as<T>()});
  });
}
void run_softmax_grad(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_lines(call, groups_of(call, call.spec(0)),
                 SoftmaxGrad<T>{call.in[0].as<T>(), call.in[1].as<T>(), call.out_as<T>()});
  });
}
void run_cross_entropy(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(1).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_lines(call, groups_of(call, call.spec(1)),
                 CrossEntropy<T>{call.in[0].as<T>(), call.in[1].as<T>(), call.out_as<T>(0), call.out_as<T>(1)});
  });
}
void run_cross_entropy_grad(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(2).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_lines(call, groups_of(call, call.spec(2)),
                 CrossEntropyGrad<T>{call.in[0].as<T>(), call.in[1].as<T>(), call.in[2].as<T>(), call.out_as<T>()});
  });
}
template <class T>
Bounds<Wide<T>> bounds_of(const OpCall& call) {
  return {static_cast<Wide<T>>(call.attrs.as<SoftmaxAttrs>().epsilon),
          static_cast<Wide<T>>(1 - call.attrs.as<SoftmaxAttrs>().epsilon)};
}
void run_probability(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(1).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_lines(call, groups_of(call, call.spec(1)),
                 Probability<T>{call.in[0].as<T>(), call.in[1].as<T>(), bounds_of<T>(call), call.out_as<T>()});
  });
}
void run_probability_grad(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(2).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_lines(call, groups_of(call, call.spec(2)),
                 ProbabilityGrad<T>{call.in[0].as<T>(), call.in[1].as<T>(), call.in[2].as<T>(), bounds_of<T>(call),
                                    call.out_as<T>()});
  });
}

// ---- classes --------------------------------------------------------------------------------------------------------
/// Input i as the classes of the rows of x.
Classes classes_of(const OpCall& call, int i, const TensorSpec& x) {
  return {call.in[i].as<std::int64_t>(), x.dims[x.rank - 1], device_of(call.device).faults()};
}

void run_sparse(const OpCall& call) {
  const TensorSpec& z = call.spec(1);
  for_dtype<Domain::floats>(z.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_lines(
        call, groups_of(call, z),
        SparseCrossEntropy<T>{classes_of(call, 0, z), call.in[1].as<T>(), call.out_as<T>(0), call.out_as<T>(1)});
  });
}
void run_sparse_probability(const OpCall& call) {
  const TensorSpec& q = call.spec(1);
  for_dtype<Domain::floats>(q.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_lines(
        call, groups_of(call, q),
        SparseProbability<T>{classes_of(call, 0, q), call.in[1].as<T>(), bounds_of<T>(call), call.out_as<T>()});
  });
}
void run_sparse_probability_grad(const OpCall& call) {
  const TensorSpec& q = call.spec(2);
  for_dtype<Domain::floats>(q.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_lines(call, groups_of(call, q),
                 SparseProbabilityGrad<T>{call.in[0].as<T>(), call.in[2].as<T>(), classes_of(call, 1, q),
                                          bounds_of<T>(call), call.out_as<T>()});
  });
}
/// dz = dy * (p - 1) at the class, else dy * p. Operand 0 is the element of p, operand 1 its row.
template <class T>
struct SparseGrad {
  const T *dy, *p;
  Classes classes;
  __device__ Wide<T> operator()(const Operands&, const std::int64_t (&at)[2], std::int64_t i) const {
    const Wide<T> v = load(p + at[0]);
    return m::mul_no_nan(load(dy + at[1]), i - at[1] * classes.n == classes[at[1]] ? v - Wide<T>(1) : v);
  }
};
void run_sparse_grad(const OpCall& call) {
  const TensorSpec& z = call.spec(2);
  for_dtype<Domain::floats>(z.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_store<2, T>(call, SparseGrad<T>{call.in[0].as<T>(), call.in[2].as<T>(), classes_of(call, 1, z)},
                       operands_by_group(call, z, 1u << (z.rank - 1)));
  });
}

template <class T>
struct Pick {
  const T* x;
  Classes classes;
  __device__ T operator()(const Operands&, const std::int64_t (&at)[1], std::int64_t i) const {
    const std::int64_t id = classes[at[0]];
    return id < 0 ? T(0) : x[i * classes.n + id];
  }
};
void run_pick(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  Operands o = unary_operands(call.in[1].data, call.out[0]->data(), call.spec(1).numel());
  for_size(x.dtype.size(), [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_store<1, T>(call, Pick<T>{call.in[0].as<T>(), classes_of(call, 1, x)}, o);
  });
}
/// The value at the class of its row, else 0.
template <class T>
struct PlaceAt {
  const T* v;
  Classes classes;
  __device__ T operator()(const Operands&, const std::int64_t (&at)[2], std::int64_t i) const {
    return i - at[1] * classes.n == classes[at[1]] ? v[at[1]] : T(0);
  }
};
void run_place(const OpCall& call) {
  const TensorSpec& x = call.spec(2);
  for_size(call.out[0]->dtype.size(), [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_store<2, T>(call, PlaceAt<T>{call.in[0].as<T>(), classes_of(call, 1, x)},
                       operands_by_group(call, x, 1u << (x.rank - 1)));
  });
}

// ---- elementwise ----------------------------------------------------------------------------------------------------
/// max(z, 0) - z * t + log(1 + exp(-|z|)), without 0 * z for an infinite z
template <class T>
struct SigmoidLoss {
  __device__ Wide<T> operator()(const Operands& o, const std::int64_t (&at)[2], std::int64_t) const {
    using C = Wide<T>;
    const C t = load(o.operand<T>(0) + at[0]), z = load(o.operand<T>(1) + at[1]);
    return m::mul_no_nan(z > C(0) ? C(1) - t : -t, z) + m::log1p(m::exp(-m::abs(z)));
  }
};
void run_sigmoid(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_store<2, T>(call, SigmoidLoss<T>());
  });
}
/// -(t * log(q) + (1 - t) * log(1 - q)), with q = p clipped
template <class T>
struct BinaryLoss {
  Bounds<Wide<T>> bounds;
  __device__ Wide<T> operator()(const Operands& o, const std::int64_t (&at)[2], std::int64_t) const {
    using C = Wide<T>;
    const C t = load(o.operand<T>(0) + at[0]), q = bounds.clip(load(o.operand<T>(1) + at[1]));
    return -(t * m::log(q) + (C(1) - t) * m::log(C(1) - q));
  }
};
/// dp = dy * (p - t) / (p * (1 - p)), and 0 where p is clipped
template <class T>
struct BinaryGrad {
  Bounds<Wide<T>> bounds;
  __device__ Wide<T> operator()(const Operands& o, const std::int64_t (&at)[3], std::int64_t) const {
    using C = Wide<T>;
    const C dy = load(o.operand<T>(0) + at[0]), t = load(o.operand<T>(1) + at[1]), q = load(o.operand<T>(2) + at[2]);
    return dy != C(0) && bounds.inside(q) ? dy * (q - t) / (q * (C(1) - q)) : C(0);
  }
};
void run_binary(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_store<2, T>(call, BinaryLoss<T>{bounds_of<T>(call)});
  });
}
void run_binary_grad(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_store<3, T>(call, BinaryGrad<T>{bounds_of<T>(call)});
  });
}

const PluginKernel kernels[] = {{"softmax", run_softmax},
                                {"log_softmax", run_log_softmax},
                                {"softmax_grad", run_softmax_grad},
                                {"categorical_crossentropy", run_cross_entropy},
                                {"categorical_crossentropy_grad", run_cross_entropy_grad},
                                {"probability_crossentropy", run_probability},
                                {"probability_crossentropy_grad", run_probability_grad},
                                {"sparse_probability_crossentropy", run_sparse_probability},
                                {"sparse_probability_crossentropy_grad", run_sparse_probability_grad},
                                {"binary_probability_crossentropy", run_binary},
                                {"binary_probability_crossentropy_grad", run_binary_grad},
                                {"sparse_categorical_crossentropy", run_sparse},
                                {"sparse_categorical_crossentropy_grad", run_sparse_grad},
                                {"binary_crossentropy", run_sigmoid},
                                {"pick", run_pick},
                                {"place", run_place}};

}  // namespace

Kernels softmax_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
