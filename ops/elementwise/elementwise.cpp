// ops/elementwise/elementwise.cpp - running loops over elements, with broadcasting, half types and threads.
#include "ops/elementwise/elementwise.h"

#include <algorithm>

#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/cast.h"
#include "ops/engine/coalesce.h"
#include "ops/engine/operand.h"

namespace kassette::ops {
namespace {

constexpr int kMaxArity = 3;
constexpr std::int64_t kHalfBlock = 512;

/// A run of elements: pointers, and the mask of operands that are a single element, repeated.
struct Run {
  const std::byte* in[kMaxArity];
  std::byte* out;
  int mask;
};

/// Runs the loop of a call on runs of elements; half types are converted in blocks.
struct Runner {
  const OpCall& call;
  const ElementwiseFns* loops;
  int arity;
  int in_size[kMaxArity];
  int out_size;
  DType half;  // if given, operands have this dtype and the loops are those of float32
  bool half_out;

  void operator()(const Run& r, std::int64_t n) const {
    if (half.given()) {
      convert_and_run(r, n);
      return;
    }
    const void* in[kMaxArity] = {r.in[0], r.in[1], r.in[2]};
    loops->by[r.mask](in, r.out, n, call.attrs);
  }
  void convert_and_run(const Run& r, std::int64_t n) const {
    alignas(64) float buffer[kMaxArity + 1][kHalfBlock];
    for (std::int64_t at = 0; at < n; at += kHalfBlock) {
      std::int64_t m = std::min(kHalfBlock, n - at);
      const void* in[kMaxArity];
      for (int i = 0; i < arity; ++i) {
        bool one = r.mask >> i & 1;
        const std::byte* p = r.in[i] + (one ? 0 : at * in_size[i]);
        if (call.in[i].desc->dtype != half) {
          in[i] = p;
          continue;
        }
        half_to_float(buffer[i], p, half, one ? 1 : m);
        in[i] = buffer[i];
      }
      if (half_out) {
        loops->by[r.mask](in, buffer[kMaxArity], m, call.attrs);
        float_to_half(r.out + at * out_size, half, buffer[kMaxArity], m);
      } else {
        loops->by[r.mask](in, r.out + at * out_size, m, call.attrs);
      }
    }
  }
};

/// The output's axes and the operands' strides along them, in elements, 0 if an operand repeats. Neighbouring axes are
/// joined if all strides allow it.
struct BroadcastLayout {
  int rank = 0;
  std::int64_t dims[kMaxRank];
  std::int64_t strides[kMaxArity][kMaxRank];

  BroadcastLayout(const OpCall& call, int arity) {
    const TensorSpec& out = *call.out[0];
    std::int64_t stride[kMaxArity][kMaxRank];
    for (int k = 0; k < arity; ++k) broadcast_strides(call.spec(k), out, stride[k]);
    for (int i = 0; i < out.rank; ++i)
      push_coalesced(rank, dims, out.dims[i], arity, [&](int k) { return Along{strides[k], stride[k][i]}; });
  }
};

/// Runs operands that differ in shape, one run along the last axis at a time.
void run_broadcast(const Runner& run, const OpCall& call, int arity, std::int64_t n, int grain) {
  BroadcastLayout w(call, arity);
  std::int64_t inner = w.dims[w.rank - 1], rows = n / inner;
  Run base{};
  for (int k = 0; k < arity; ++k)
    if (w.strides[k][w.rank - 1] == 0) base.mask |= 1 << k;
  std::byte* out = call.out[0]->data();
  devices::parallel_for(rows, std::max<std::int64_t>(1, grain / inner), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t index[kMaxRank] = {}, rest = begin;
    std::int64_t at[kMaxArity] = {};
    for (int i = w.rank - 2; i >= 0; --i) {
      index[i] = rest % w.dims[i];
      rest /= w.dims[i];
      for (int k = 0; k < arity; ++k) at[k] += index[i] * w.strides[k][i];
    }
    Run r = base;
    for (std::int64_t row = begin; row < end; ++row) {
      for (int k = 0; k < arity; ++k) r.in[k] = call.in[k].data + at[k] * run.in_size[k];
      r.out = out + row * inner * run.out_size;
      run(r, inner);
      for (int i = w.rank - 2; i >= 0; --i) {
        for (int k = 0; k < arity; ++k) at[k] += w.strides[k][i];
        if (++index[i] < w.dims[i]) break;
        for (int k = 0; k < arity; ++k) at[k] -= w.strides[k][i] * w.dims[i];
        index[i] = 0;
      }
    }
  });
}

/// Runs the most frequent calls, whose operands all have n elements or one, on the calling thread. Returns false, and
/// does nothing, for others.
bool run_small(const OpCall& call, const ElementwiseLoops& family, const ElementwiseFns* loops, const TensorDesc& out,
               std::int64_t n) {
  const void* in[kMaxArity];
  int mask = 0;
  for (int i = 0; i < family.arity; ++i) {
    in[i] = call.in[i].data;
    std::int64_t m = call.spec(i).numel();
    if (m == n) continue;
    if (m != 1) return false;
    mask |= 1 << i;
  }
  loops->by[mask](in, out.data(), n, call.attrs);
  return true;
}

__attribute__((noinline)) void run_large(const OpCall& call, const ElementwiseLoops& family,
                                         const ElementwiseFns* loops, const TensorDesc& out, std::int64_t n) {
  int arity = family.arity;
  bool half = !loops;
  DType dtype = half ? call.spec(arity - 1).dtype : DType();
  if (half) loops = family.find(float32);
  Runner run{call, loops, arity, {}, out.dtype.size(), dtype, half && !family.bool_out};
  Run r{};
  r.out = out.data();
  bool flat = true;
  for (int i = 0; i < arity; ++i) {
    const TensorSpec& s = call.spec(i);
    run.in_size[i] = s.dtype.size();
    r.in[i] = call.in[i].data;
    std::int64_t m = s.numel();
    if (m == n) continue;  // broadcasting to the same count only adds axes of size 1
    if (m == 1) r.mask |= 1 << i;
    else flat = false;
  }
  if (!flat) {
    run_broadcast(run, call, arity, n, family.grain);
    return;
  }
  devices::parallel_for(n, family.grain, [&](std::int64_t begin, std::int64_t end) {
    Run part = r;
    for (int i = 0; i < arity; ++i)
      if (!(r.mask >> i & 1)) part.in[i] += begin * run.in_size[i];
    part.out += begin * run.out_size;
    run(part, end - begin);
  });
}

}  // namespace

void elementwise_kernel(const OpCall& call) {
  const ElementwiseLoops& family = *call.op.loops;
  const TensorDesc& out = *call.out[0];
  std::int64_t n = out.numel();
  if (n == 0) return;
  const ElementwiseFns* loops = family.find(call.spec(family.arity - 1).dtype);  // the condition of `where` comes first
  if (loops && !devices::worth_sharing(n, family.grain) && run_small(call, family, loops, out, n)) return;
  run_large(call, family, loops, out, n);
}

Tensor apply_binary(const OpDef& op, const Operand& x, const Operand& y) {
  if (is_tensor_operand(x) && is_tensor_operand(y)) return apply1(op, {tensor_of(x), tensor_of(y)});
  DType dtype = dtype_for_numbers(x, y);
  constexpr int kSecond = 2;  // where the second name begins: that of the first is "x" in all binary ops
  Arg a(x, dtype, {op.name, "x"}), b(y, dtype, {op.name, op.inputs + kSecond});
  return apply1(op, {a, b});
}

void broadcast_spec(const char* op, const TensorSpec& a, const TensorSpec& b, TensorSpec* out) {
  if (a.rank < 0 || b.rank < 0) {
    out->rank = -1;
    return;
  }
  out->rank = std::max(a.rank, b.rank);
  for (int i = 0; i < out->rank; ++i) {
    int ia = i - (out->rank - a.rank), ib = i - (out->rank - b.rank);
    std::int64_t da = ia < 0 ? 1 : a.dims[ia], db = ib < 0 ? 1 : b.dims[ib];
    // An unknown dim that is combined with a known n > 1 can only be n or 1.
    if (da == db || db == 1) out->dims[i] = da;
    else if (da == 1 || da < 0) out->dims[i] = db;
    else if (db < 0) out->dims[i] = da;
    else fail<ValueError>({op}, "shapes ", a, " and ", b, " do not broadcast: ", da, " against ", db);
  }
}

void same_rule(const OpCall& call, TensorSpec* out) { out->set(call.spec(0)); }

void fail_dtypes(const OpDef& op, DType a, DType b) {
  fail<TypeError>({op.name}, a, " and ", b, kRemedy, "cast one of them (K::cast), tensors are not promoted");
}

void fail_domain(const OpCall& call, DType dtype, Domain domain) {
  const bool one = call.n_in == 1;
  fail<TypeError>({call.op.name, one ? "x" : ""}, one ? "is " : "", dtype, one ? ", not " : " is not ",
                  domain == Domain::floats     ? "a float dtype"
                  : domain == Domain::bools    ? "bool"
                  : domain == Domain::integers ? "an integer dtype"
                                               : "a number",
                  kRemedy, "cast it first (K::cast)");
}

}  // namespace kassette::ops
