// ops/product/matmul.cpp - matmul, dot and batch_dot: an op that contracts labelled axes, with its rule, CPU kernel and
// gradient.
#include "ops/product/matmul.h"

#include <algorithm>
#include <type_traits>

#include "core/convert.h"
#include "core/rank.h"
#include "devices/cpu/blas.h"
#include "devices/cpu/threads.h"
#include "ops/product/contraction.h"
#include "ops/elementwise/half_compute.h"
#include "ops/product/zero_terms.h"

namespace kassette::ops {
namespace {

constexpr const char* kCallerNames[] = {"matmul", "dot", "batch_dot"};

// --- rule ------------------------------------------------------------------------------------------------------------

constexpr std::int64_t kAbsent = -2;

[[noreturn]] __attribute__((noinline, cold)) void fail_sizes(const OpCall& call, const ContractionForm& f, int label,
                                                             std::int64_t a, std::int64_t b) {
  bool batch = std::find(f.out.of, f.out.of + f.out.rank, label) != f.out.of + f.out.rank;
  fail<ValueError>({kCallerNames[static_cast<int>(f.origin.caller)]}, call.spec(0), " x ", call.spec(1), ": ",
                   !batch        ? "inner dimensions differ, "
                   : f.broadcast ? "batch axes do not broadcast, "
                                 : "batch sizes differ, ",
                   a, " against ", b);
}

void check_dtypes(const OpCall& call, const char* caller) {
  DType a = call.spec(0).dtype, b = call.spec(1).dtype;
  if (a != b) fail<TypeError>({caller}, a, " and ", b, kRemedy, "cast one of them (K::cast), tensors are not promoted");
  if (a.is_bool()) fail<TypeError>({caller}, "bool is not a number", kRemedy, "cast it first (K::cast)");
}

void rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &a = call.spec(0), &b = call.spec(1);
  if (MatrixForm m(call.attrs); m.plain && a.dtype == b.dtype && !a.dtype.is_bool()) {  // two matrices, sizes known
    const TensorSpec &x = m.swapped ? b : a, &y = m.swapped ? a : b;
    std::int64_t k = x.dims[!m.ta];
    if (k >= 0 && k == y.dims[m.tb]) {
      out->rank = 2;
      out->dtype = a.dtype;
      out->dims[0] = x.dims[m.ta];
      out->dims[1] = y.dims[!m.tb];
      return;
    }
  }
  const ContractionForm& f = call.attrs.as<ContractionForm>();
  check_dtypes(call, kCallerNames[static_cast<int>(f.origin.caller)]);
  std::int64_t size[kLabels];
  std::fill_n(size, kLabels, kAbsent);
  size[kNewAxis] = 1;
  for (int i = 0; i < f.a.rank; ++i) size[f.a.of[i]] = a.dims[i];
  std::uint32_t in_out = 0;
  for (int i = 0; i < f.out.rank; ++i) in_out |= 1u << f.out.of[i];
  for (int i = 0; i < f.b.rank; ++i) {
    std::int64_t &have = size[f.b.of[i]], n = b.dims[i];
    if (have == kAbsent || have == n) {
      have = n;
      continue;
    }
    if (f.broadcast && (in_out >> f.b.of[i] & 1) && (have == 1 || n == 1)) {
      if (have == 1) have = n;
    } else if (have < 0) {
      have = n;
    } else if (n >= 0) {
      fail_sizes(call, f, f.b.of[i], have, n);
    }
  }
  out->rank = static_cast<std::int8_t>(f.out.rank);
  out->dtype = a.dtype;
  for (int i = 0; i < f.out.rank; ++i) out->dims[i] = size[f.out.of[i]];
}

// --- kernel ----------------------------------------------------------------------------------------------------------

class CpuRearranger final : public Rearranger {
 public:
  const std::byte* copy(const Strided& layout, const std::byte* from, std::int64_t count, int item) override {
    Ref<Storage>& to = copies_[n_++];
    to = Storage::allocate(count * item, cpu);
    copy_strided(layout, from, static_cast<std::byte*>(to->data), item);
    return static_cast<const std::byte*>(to->data);
  }

 private:
  Ref<Storage> copies_[8];  // each operand is copied at most three times
  int n_ = 0;
};

/// The product of integers, which wraps around.
template <class T>
void multiply(const GemmShape& p, const BatchStrides& batch, const T* a, const T* b, T* out) {
  using U = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int, T>>;
  std::int64_t ai = p.ta ? 1 : p.lda, ak = p.ta ? p.lda : 1, bk = p.tb ? 1 : p.ldb, bj = p.tb ? p.ldb : 1;
  devices::parallel_for(batch.count * p.m, std::max<std::int64_t>(1, (1 << 15) / (p.n * p.k + 1)),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t at = begin; at < end; ++at) {
                            const std::int64_t i = at % p.m;
                            const BatchStrides::Offsets first = batch.offsets(at / p.m);
                            T* o = out + first.out + i * p.ldo;
                            std::fill_n(o, p.n, T(0));
                            for (std::int64_t k = 0; k < p.k; ++k) {
                              U x = static_cast<U>(a[first.a + i * ai + k * ak]);
                              const T* y = b + first.b + k * bk;
                              if (bj == 1)
                                for (std::int64_t j = 0; j < p.n; ++j)
                                  o[j] = static_cast<T>(static_cast<U>(o[j]) + x * static_cast<U>(y[j]));
                              else
                                for (std::int64_t j = 0; j < p.n; ++j)
                                  o[j] = static_cast<T>(static_cast<U>(o[j]) + x * static_cast<U>(y[j * bj]));
                            }
                          }
                        });
}

/// The product of two matrices, with a result of shape `out`. Swaps a and b if the operands are swapped.
GemmShape product_of(const OpCall& call, const MatrixForm& f, const TensorSpec& out, const std::byte** a,
                     const std::byte** b) {
  const TensorSpec &x = call.spec(f.swapped), &y = call.spec(!f.swapped);
  if (f.swapped) std::swap(*a, *b);
  return {out.dims[0], out.dims[1], x.dims[!f.ta], f.ta, f.tb, x.dims[1], y.dims[1], out.dims[1]};
}

template <class T>
void product(const OpCall& call, const std::byte* a, const std::byte* b, T* out) {
  if (MatrixForm f(call.attrs); f.plain) {
    const GemmShape p = product_of(call, f, *call.out[0], &a, &b);
    multiply(p, {}, reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), out);
    return;
  }
  CpuRearranger to_order;
  ContractionPlan p = plan_contraction(call, a, b, sizeof(T), to_order);
  multiply(p.product, p.batch, reinterpret_cast<const T*>(p.a), reinterpret_cast<const T*>(p.b), out);
}
template <class T>
void run(const OpCall& call, const std::byte* a, const std::byte* b, T* out) {
  product(call, a, b, out);
  respect_zeros(call, a, b, out);
}

/// The product of half types: computed in float32 as a whole, rounded once.
void run_half(const OpCall& call) {
  const WideInput<float> a(call, 0), b(call, 1);
  const WideOutput<float> out(*call.out[0]);
  run(call, reinterpret_cast<const std::byte*>(a.get()), reinterpret_cast<const std::byte*>(b.get()), out.get());
  out.store();
}

void kernel(const OpCall& call) {
  const TensorDesc& out = *call.out[0];
  std::int64_t n = out.numel();
  if (n == 0) return;
  DType dtype = out.dtype;
  if (call.spec(0).numel() == 0) {  // the contracted axis is empty, so every element is an empty sum
    zero_bytes(out.data(), out.bytes());
    return;
  }
  if (dtype == float32) run(call, call.in[0].data, call.in[1].data, call.out_as<float>());
  else if (dtype == float64) run(call, call.in[0].data, call.in[1].data, call.out_as<double>());
  else if (dtype.is_float()) run_half(call);
  else
    dispatch(dtype, [&](auto* p) {
      using T = std::remove_pointer_t<decltype(p)>;
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        run(call, call.in[0].data, call.in[1].data, call.out_as<T>());
    });
}

/// OpDef::accumulate: sum += the product, in the same passes over `sum` as the product alone would make. For two
/// matrices of floats on the CPU, unless zeros of a cotangent may meet what is not finite.
bool add_product(const OpCall& call, TensorDesc& sum) {
  MatrixForm f(call.attrs);
  if (!f.plain || call.device != cpu || sum.numel() == 0 || zeros_may_matter(call, sum)) return false;
  const std::byte *a = call.in[0].data, *b = call.in[1].data;
  const GemmShape p = product_of(call, f, sum, &a, &b);
  auto add = [&](auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    return devices::add_product(p, reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), out);
  };
  if (sum.dtype == float32) return add(reinterpret_cast<float*>(sum.data()));
  return sum.dtype == float64 && add(reinterpret_cast<double*>(sum.data()));
}

/// OpDef::with_bias, for floats.
bool with_bias(const OpCall& call, const TensorDesc& bias, bool relu) {
  TensorDesc& out = *call.out[0];
  if (call.device != cpu || (out.dtype != float32 && out.dtype != float64)) return false;
  const std::optional<ContractionPlan> plan = plan_with_bias(call, bias);
  if (!plan || !devices::takes_bias(plan->product)) return false;
  out.storage = Storage::allocate(out.checked_bytes(call.op.name), cpu);
  auto multiply = [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    devices::multiply_with_bias(plan->product, reinterpret_cast<const T*>(plan->a), reinterpret_cast<const T*>(plan->b),
                                reinterpret_cast<const T*>(bias.data()), relu, to);
  };
  if (out.dtype == float32) multiply(call.out_as<float>());
  else multiply(call.out_as<double>());
  return true;
}

// --- adjoint ---------------------------------------------------------------------------------------------------------

/// The form of the product that gives the cotangent of operand i.
ContractionForm gradient_form(const VjpContext& ctx, int i) {
  ContractionForm f = ctx.attrs.as<ContractionForm>();
  std::swap(i == 0 ? f.a : f.b, f.out);
  f.origin.cotangent = Cotangent(i + 1);
  return f;
}

void vjp(const VjpContext& ctx) {
  if (ctx.wants(0)) ctx.accumulate(0, matmul_op, gradient_form(ctx, 0), {ctx.dy(), ctx.in(1)});
  if (ctx.wants(1)) ctx.accumulate(1, matmul_op, gradient_form(ctx, 1), {ctx.in(0), ctx.dy()});
}

// --- forms -----------------------------------------------------------------------------------------------------------

int rank_of(const Tensor& x, const char* caller, const char* which) {
  if (!x.defined()) fail_empty({caller, which});
  return Access::desc(x).rank;
}
const TensorSpec& spec_of(const Tensor& x) { return Access::desc(x); }

}  // namespace

constinit const OpDef matmul_op{.name = "matmul",
                                .rule = rule,
                                .cpu = kernel,
                                .vjp = vjp,
                                .saves_in = 3,
                                .accumulate = add_product,
                                .with_bias = with_bias};

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b, Cotangent cotangent) {
  int ra = rank_of(a, "matmul", "the first operand"), rb = rank_of(b, "matmul", "the second operand");
  if (ra < 2 || rb < 2)
    fail<ValueError>({"matmul"}, spec_of(a), " x ", spec_of(b), kExpected, "both must have at least two axes");
  ContractionForm f;
  f.broadcast = true;
  f.origin.cotangent = cotangent;
  int batches = std::max(ra, rb) - 2, m = batches, k = batches + 1, n = batches + 2;
  for (int i = batches - (ra - 2); i < batches; ++i) f.a.push(i);
  for (int i = batches - (rb - 2); i < batches; ++i) f.b.push(i);
  for (int i = 0; i < batches; ++i) f.out.push(i);
  f.a.push(transpose_a ? k : m), f.a.push(transpose_a ? m : k);
  f.b.push(transpose_b ? n : k), f.b.push(transpose_b ? k : n);
  f.out.push(m), f.out.push(n);
  return apply1(matmul_op, f, {a, b});
}

Tensor dot(const Tensor& x, const Tensor& y) {
  int rx = rank_of(x, "dot", "x"), ry = rank_of(y, "dot", "y");
  if (rx == 2 && ry == 2) {  // labels 0 1, 1 2 -> 0 2, as dot_form has them
    constexpr ContractionForm matrices{{{0, 1}, 2}, {{1, 2}, 2}, {{0, 2}, 2}, false, {Caller::dot}};
    return apply1(matmul_op, matrices, {x, y});
  }
  if (rx < 0 || ry < 0) return unranked_dot(x, y);
  return apply1(matmul_op, dot_form(spec_of(x), spec_of(y)), {x, y});
}

ContractionForm dot_form(const TensorSpec& x, const TensorSpec& y) {
  int rx = x.rank, ry = y.rank;
  if (rx < 1 || ry < 1)
    fail<ValueError>({"dot"}, x, " x ", y, kExpected, "both must have at least one axis", kRemedy,
                     "use * for a number");
  (void)checked_rank("dot", rx + ry - 2, x, " x ", y);
  ContractionForm f;
  f.origin.caller = Caller::dot;
  for (int i = 0; i < rx; ++i) f.a.push(i);
  for (int i = 0; i + 1 < rx; ++i) f.out.push(i);
  int summed = std::max(0, ry - 2), next = rx;
  for (int i = 0; i < ry; ++i) {
    f.b.push(i == summed ? rx - 1 : next);
    if (i != summed) f.out.push(next++);
  }
  return f;
}

Tensor batch_dot(const Tensor& x, const Tensor& y, int x_axis, int y_axis) {
  int rx = rank_of(x, "batch_dot", "x"), ry = rank_of(y, "batch_dot", "y");
  if (rx < 0 || ry < 0) return unranked_batch_dot(x, y, x_axis, y_axis);
  return apply1(matmul_op, batch_dot_form(spec_of(x), spec_of(y), x_axis, y_axis), {x, y});
}

ContractionForm batch_dot_form(const TensorSpec& x, const TensorSpec& y, int x_axis, int y_axis) {
  int rx = x.rank, ry = y.rank;
  if (rx < 2 || ry < 2)
    fail<ValueError>({"batch_dot"}, x, " x ", y, kExpected, "both must have at least two axes, the batch and another");
  auto summed = [](int axis, const TensorSpec& s, const char* which) {
    int at = place_axis("batch_dot", axis, s, 0, "axes");
    if (at == 0)
      fail<ValueError>({"batch_dot", "axes"}, "hold ", axis, ", the batch axis of ", which,
                       ", which cannot be summed over");
    return at;
  };
  x_axis = summed(x_axis, x, "x");
  y_axis = summed(y_axis == kDefaultAxis ? ry == 2 ? -1 : -2 : y_axis, y, "y");
  (void)checked_rank("batch_dot", rx + ry - 3, x, " x ", y);
  ContractionForm f;
  f.origin.caller = Caller::batch_dot;
  for (int i = 0; i < rx; ++i) {
    f.a.push(i);
    if (i != x_axis) f.out.push(i);
  }
  int next = rx;
  for (int i = 0; i < ry; ++i) {
    f.b.push(i == 0 ? 0 : i == y_axis ? x_axis : next);
    if (i != 0 && i != y_axis) f.out.push(next++);
  }
  if (f.out.rank == 1) f.out.push(kNewAxis);
  return f;
}

}  // namespace kassette::ops
