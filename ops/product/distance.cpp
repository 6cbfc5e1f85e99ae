// ops/product/distance.cpp - distances between all rows of two matrices, and their gradient.
#include "ops/product/distance.h"

#include <algorithm>

#include "core/text.h"
#include "ops/elementwise/half_compute.h"
#include "ops/engine/dims.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"
#include "ops/engine/stop.h"

namespace kassette::ops {
namespace {

void cdist_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &x = call.spec(0), &y = call.spec(1);
  if (!x.dtype.is_float()) fail_not_float({"cdist", "x"}, x.dtype);
  if (y.dtype != x.dtype)
    fail<TypeError>({"cdist", "y"}, "is ", y.dtype, " and x is ", x.dtype, kRemedy, "cast one of them (K::cast)");
  check_rows(x, y);
  out->dtype = x.dtype;
  out->rank = x.rank < 0 ? y.rank : x.rank;
  for (int i = 0; i < out->rank - 2; ++i)
    out->dims[i] = x.rank < 0 || (y.rank >= 0 && x.dims[i] < 0) ? y.dims[i] : x.dims[i];
  if (out->rank < 0) return;
  out->dims[out->rank - 2] = x.rank < 0 ? -1 : x.dims[x.rank - 2];
  out->dims[out->rank - 1] = y.rank < 0 ? -1 : y.dims[y.rank - 2];
}

template <class T>
void distances(const OpCall& call, DistancesOfRows<T> of_rows) {
  constexpr std::int64_t kGrain = 1 << 15;  // differences that are worth a thread
  const TensorSpec &x = call.spec(0), &y = call.spec(1);
  const std::int64_t m = x.dims[x.rank - 2], n = y.dims[y.rank - 2], width = x.dims[x.rank - 1];
  const std::int64_t rows = call.out[0]->numel() / std::max<std::int64_t>(1, n);
  if (rows == 0 || n == 0) return;
  const WideInput<T> a(call, 0), b(call, 1);
  const WideOutput<T> out(*call.out[0]);
  // y with its columns together.
  const Ref<Storage> held =
      Storage::allocate(std::max<std::int64_t>(1, y.numel()) * static_cast<std::int64_t>(sizeof(T)), cpu);
  T* const columns = static_cast<T*>(held->data);
  devices::parallel_for(rows / m * width, std::max<std::int64_t>(1, kGrain / n),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t t = begin; t < end; ++t) {
                            const T* from = b.get() + t / width * n * width + t % width;
                            for (std::int64_t j = 0; j < n; ++j) columns[t * n + j] = from[j * width];
                          }
                        });
  devices::parallel_for(rows, std::max<std::int64_t>(1, kGrain / (n * std::max<std::int64_t>(1, width))),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t i = begin, next; i < end; i = next) {
                            next = std::min(end, (i / m + 1) * m);  // rows of one matrix
                            of_rows(a.get() + i * width, next - i, columns + i / m * n * width, width, n,
                                    out.get() + i * n);
                          }
                        });
  out.store();
}
void cdist_kernel(const OpCall& call) {
  const DistanceTable& table = KASSETTE_PICK(distance_table);
  if (call.spec(0).dtype == float64) distances<double>(call, table.f64);
  else distances<float>(call, table.f32);
}

/// With w = dy / distance: dx_i = sum_j w_ij (x_i - y_j), dy_j = sum_i w_ij (y_j - x_i), as products. A point between
/// the rows is taken from both first, since they may be far from 0 and close to each other.
void cdist_vjp(const VjpContext& ctx) {
  const DType own = Access::desc(ctx.dy()).dtype, wide = is_half(own) ? float32 : own;
  const Tensor distance = cast(ctx.out(), wide), dy = cast(ctx.dy(), wide);
  const Tensor x0 = cast(ctx.in(0), wide), y0 = cast(ctx.in(1), wide);
  const Tensor w = where(equal(distance, 0), number_like(0, distance), div_no_nan(dy, distance));
  const Tensor finite = where(equal(y0 - y0, 0), y0, number_like(0, y0));
  const Tensor middle = stop_gradient(mean(finite, -2, /*keepdims=*/true));
  const Tensor x = x0 - middle, y = y0 - middle;
  auto weighted = [&](const Tensor& point, const Tensor& other, bool transposed) {
    const Tensor all = expand_dims(sum(w, transposed ? -2 : -1), -1);
    return cast(mul_no_nan(all, point) - matmul(w, other, transposed, false, Cotangent::a), own);
  };
  if (ctx.wants(0)) ctx.din(0) = weighted(x, y, false);
  if (ctx.wants(1)) ctx.din(1) = weighted(y, x, true);
}

}  // namespace

constinit const OpDef cdist_op{
    .name = "cdist", .rule = cdist_rule, .cpu = cdist_kernel, .vjp = cdist_vjp, .saves_in = 3, .saves_out = 1};

void check_rows(const TensorSpec& x, const TensorSpec& y) {
  auto has_rows = [](const TensorSpec& s) { return s.rank < 0 || s.rank >= 2; };
  bool fits = has_rows(x) && has_rows(y) && !differ(x.rank, y.rank);
  if (fits && x.rank >= 0 && y.rank >= 0) {
    fits = !differ(x.dims[x.rank - 1], y.dims[y.rank - 1]);
    for (int i = 0; fits && i < x.rank - 2; ++i) fits = !differ(x.dims[i], y.dims[i]);
  }
  if (!fits)
    fail<ValueError>({"cdist"}, "x of shape ", x, " and y of shape ", y, kExpected,
                     "they must be (..., m, width) and (..., n, width), with the same leading axes");
}

Tensor cdist(const Tensor& x, const Tensor& y) { return apply1(cdist_op, {x, y}); }

}  // namespace kassette::ops
