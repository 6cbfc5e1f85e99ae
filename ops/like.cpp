// ops/like.cpp - broadcasting to the shape of another tensor, and its adjoint.
#include "ops/elementwise.h"
#include "ops/expr.h"

#include "core/convert.h"
#include "core/text.h"

namespace kassette {
namespace {

/// The shape of input 1, the dtype of input 0.
void like_rule(const Call& call, Spec* out) {
  out->set(call.spec(1));
  out->dtype = call.spec(0).dtype;
}


/// Offset of the element of `s` that meets element i of `out` under broadcasting.
std::int64_t meet(const Spec& s, const Spec& out, std::int64_t i) {
  std::int64_t at = 0, stride = 1;
  for (int k = out.rank - 1; k >= 0; --k) {
    std::int64_t c = i % out.dims[k];
    i /= out.dims[k];
    int j = k - (out.rank - s.rank);
    if (j < 0) continue;
    if (s.dims[j] != 1) at += c * stride;
    stride *= s.dims[j];
  }
  return at;
}

void broadcast_like_kernel(const Call& call) {
  dispatch(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const Spec& out = *call.out[0];
    for (std::int64_t i = 0, n = out.numel(); i < n; ++i) call.out_as<T>()[i] = call.in[0].as<T>()[meet(call.spec(0), out, i)];
  });
}
void sum_to_like_kernel(const Call& call) {
  dispatch(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (std::is_arithmetic_v<T>) {
      const Spec &in = call.spec(0), &out = *call.out[0];
      T* o = call.out_as<T>();
      std::fill_n(o, out.numel(), T(0));
      for (std::int64_t i = 0, n = in.numel(); i < n; ++i) o[meet(out, in, i)] += call.in[0].as<T>()[i];
    }
  });
}

constinit const OpDef broadcast_like_row{.name = "broadcast_like",
                                         .rule = like_rule,
                                         .cpu = broadcast_like_kernel,
                                         .vjp = [](const Rewind& r) { r.din(0) = sum_to_like(r.dy(), r.in(0)); },
                                         .shape_only = 2};
constinit const OpDef sum_to_like_row{.name = "sum_to_like",
                                      .rule = like_rule,
                                      .cpu = sum_to_like_kernel,
                                      .vjp = [](const Rewind& r) { r.din(0) = broadcast_like(r.dy(), r.in(0)); },
                                      .shape_only = 2};

bool same_known_shape(const Tensor& a, const Tensor& b) {
  const Body &x = Access::body(a), &y = Access::body(b);
  return x.same_shape(y) && x.known();
}

}  // namespace

Tensor broadcast_like(const Tensor& x, const Tensor& like) {
  return same_known_shape(x, like) ? x : apply1(broadcast_like_row, {x, like});
}
Tensor sum_to_like(const Tensor& x, const Tensor& like) {
  return same_known_shape(x, like) ? x : apply1(sum_to_like_row, {x, like});
}

}  // namespace kassette
