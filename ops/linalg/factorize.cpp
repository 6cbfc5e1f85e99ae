// ops/linalg/factorize.cpp - Cholesky, triangular systems, LU and what is made of it, QR.
#include <algorithm>
#include <limits>
#include <vector>

#include "core/text.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/dims.h"
#include "ops/engine/operand.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/matrices.h"
#include "ops/product/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

// --- cholesky --------------------------------------------------------------------------------------------------------

void square_rule(const OpCall& call, TensorSpec* out) {
  check_matrices(call, 0, /*square=*/true);
  out->set(call.spec(0));
}
void cholesky_kernel(const OpCall& call) {
  if (without_elements(call)) return;
  const MatrixShape m(call.spec(0));
  in_float_or_double(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideInput<T> a(call, 0);
    const WideOutput<T> l(*call.out[0]);
    each_matrix(
        m.count, cube(m.rows) / 3,
        [&](std::int64_t i) {
          T* to = l.get() + i * m.size();
          std::copy_n(a.get() + i * m.size(), m.size(), to);
          if (all_finite(to, m.size())) return devices::cholesky(m.rows, to);
          std::fill_n(to, m.size(), std::numeric_limits<T>::quiet_NaN());
          return 0;
        },
        [&](std::int64_t i) {
          fail<ValueError>({"cholesky"}, matrix_text(call.spec(0), i), " is not positive definite");
        });
    l.store();
  });
}
/// The lower triangle of x with its diagonal halved.
Tensor lower_half(const Tensor& x) {
  const Positions at(x);
  return where(less(at.row, at.column), number_like(0, x), where(at.on_diagonal(), x * 0.5, x));
}
/// With L' dL made lower triangular as P: dA = L'^-1 (P + P') L^-1 / 2 (Giles 2008; Murray 2016), which is symmetric.
void cholesky_vjp(const VjpContext& ctx) {
  const Tensor l = ctx.out();
  const Tensor p = lower_half(matmul(l, ctx.dy(), true, false));
  const LinalgAttrs back{.lower = true, .transposed = true, .unchecked = true};
  const Tensor s = triangular_solve(l, transposed(triangular_solve(l, p + transposed(p), back)), back);
  ctx.din(0) = unless_zero(s * 0.5, {ctx.dy()});
}

// --- systems ---------------------------------------------------------------------------------------------------------

void solve_rule(const OpCall& call, TensorSpec* out) {
  check_matrices(call, 0, /*square=*/true, "a");
  check_matrices(call, 1, /*square=*/false, "b");
  const TensorSpec &a = call.spec(0), &b = call.spec(1);
  if (a.dtype != b.dtype)
    fail<TypeError>({call.op.name, "b"}, "is ", b.dtype, " and a is ", a.dtype, kRemedy, "cast one of them (K::cast)");
  bool fits = a.rank == b.rank;
  for (int i = 0; fits && i < a.rank - 1; ++i) fits = !differ(a.dims[i], b.dims[i]);
  if (!fits)
    fail<ValueError>({call.op.name, "b"}, "of shape ", b, " does not fit a of shape ", a, kExpected,
                     "it must have as many rows, and the same leading axes");
  out->set(b);
}
/// Whether what a triangular system reads is finite.
template <class T>
bool triangle_finite(const T* a, std::int64_t n, const LinalgAttrs& form) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t first = form.lower ? 0 : i + form.unit, last = form.lower ? i + !form.unit : n;
    if (first < last && !all_finite(a + i * n + first, last - first)) return false;
  }
  return true;
}
/// The columns of x, zeros where their cotangents are: these add nothing to the gradient of the matrix.
Tensor counting_columns(const Tensor& x, const Tensor& dy) {
  return where(any_of(not_equal(dy, 0), -2, /*keepdims=*/true), x, number_like(0, x));
}
void triangular_kernel(const OpCall& call) {
  if (without_elements(call)) return;
  const MatrixShape m(call.spec(0)), k(call.spec(1));
  const auto& form = call.attrs.as<LinalgAttrs>();
  in_float_or_double(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideInput<T> a(call, 0), b(call, 1);
    const WideOutput<T> x(*call.out[0]);
    each_matrix(
        m.count, static_cast<double>(m.size()) * static_cast<double>(k.columns),
        [&](std::int64_t i) {
          const T* from = a.get() + i * m.size();
          T* to = x.get() + i * k.size();
          std::copy_n(b.get() + i * k.size(), k.size(), to);
          if (!triangle_finite(from, m.rows, form)) {
            fill_nan(to, k.size());
            return 0;
          }
          for (std::int64_t j = 0; !form.unit && !form.unchecked && j < m.rows; ++j)
            if (from[j * m.rows + j] == 0) return static_cast<int>(j + 1);
          devices::triangular_solve(m.rows, k.columns, from, form.lower, form.transposed, form.unit, to);
          return 0;
        },
        [&](std::int64_t i) { fail<ValueError>({call.op.name}, matrix_text(call.spec(0), i), " is singular"); });
    x.store();
  });
}
/// The part of x that a triangular system reads.
Tensor read_triangle(const Tensor& x, const LinalgAttrs& form) {
  const Positions at(x);
  const Tensor &first = form.lower ? at.row : at.column, &second = form.lower ? at.column : at.row;
  return where(form.unit ? greater(first, second) : greater_equal(first, second), x, number_like(0, x));
}
void triangular_vjp(const VjpContext& ctx) {
  LinalgAttrs form = ctx.attrs.as<LinalgAttrs>(), back = form;
  back.transposed = !form.transposed;
  back.unchecked = true;
  const Tensor db = triangular_solve(ctx.in(0), ctx.dy(), back);
  if (ctx.wants(1)) ctx.din(1) = unless_zero(db, {ctx.dy()});
  if (!ctx.wants(0)) return;
  const Tensor x = counting_columns(ctx.out(), ctx.dy());
  const Tensor da =
      form.transposed ? matmul(x, db, false, true, Cotangent::b) : matmul(db, x, false, true, Cotangent::a);
  ctx.din(0) = unless_zero(-read_triangle(da, form), {ctx.dy()});
}

void solve_kernel(const OpCall& call) {
  if (without_elements(call)) return;
  const MatrixShape m(call.spec(0)), k(call.spec(1));
  const bool transposed = call.attrs.as<LinalgAttrs>().transposed;
  in_float_or_double(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideInput<T> a(call, 0), b(call, 1);
    const WideOutput<T> x(*call.out[0]);
    each_matrix(
        m.count, cube(m.rows),
        [&](std::int64_t i) {
          const T* from = a.get() + i * m.size();
          T* to = x.get() + i * k.size();
          std::copy_n(b.get() + i * k.size(), k.size(), to);
          if (!all_finite(from, m.size())) {
            fill_nan(to, k.size());
            return 0;
          }
          const Ref<Storage> held = Storage::allocate(m.size() * static_cast<std::int64_t>(sizeof(T)), cpu),
                             swaps = Storage::allocate(m.rows * static_cast<std::int64_t>(sizeof(int)), cpu);
          T* lu = static_cast<T*>(held->data);
          if (transposed)
            for (std::int64_t r = 0; r < m.rows; ++r)
              for (std::int64_t c = 0; c < m.rows; ++c) lu[c * m.rows + r] = from[r * m.rows + c];
          else std::copy_n(from, m.size(), lu);
          const int info = devices::lu(m.rows, lu, static_cast<int*>(swaps->data));
          if (info == 0) devices::lu_solve(m.rows, k.columns, lu, static_cast<const int*>(swaps->data), to);
          return info;
        },
        [&](std::int64_t i) { fail<ValueError>({call.op.name}, matrix_text(call.spec(0), i), " is singular"); });
    x.store();
  });
}
void solve_vjp(const VjpContext& ctx) {
  const bool transposed = ctx.attrs.as<LinalgAttrs>().transposed;
  const Tensor db = solve(ctx.in(0), ctx.dy(), !transposed);
  if (ctx.wants(1)) ctx.din(1) = unless_zero(db, {ctx.dy()});
  if (!ctx.wants(0)) return;
  const Tensor x = counting_columns(ctx.out(), ctx.dy());
  const Tensor da = transposed ? matmul(x, db, false, true) : matmul(db, x, false, true);
  ctx.din(0) = unless_zero(-da, {ctx.dy()});
}

// --- LU --------------------------------------------------------------------------------------------------------------

/// Calls f(i, lu, pivots, finite) for each matrix of input 0, whose LU factorisation of the transpose is in `lu`, or of
/// itself if `transpose`.
template <class T, class F>
void each_lu(const OpCall& call, bool transpose, F&& f) {
  const MatrixShape m(call.spec(0));
  const WideInput<T> a(call, 0);
  each_matrix(
      m.count, cube(m.rows),
      [&](std::int64_t i) {
        const T* from = a.get() + i * m.size();
        const bool finite = all_finite(from, m.size());
        const Ref<Storage> held = Storage::allocate(
                               std::max<std::int64_t>(1, m.size()) * static_cast<std::int64_t>(sizeof(T)), cpu),
                           swaps = Storage::allocate(
                               std::max<std::int64_t>(1, m.rows) * static_cast<std::int64_t>(sizeof(int)), cpu);
        T* lu = static_cast<T*>(held->data);
        for (std::int64_t r = 0; r < m.rows; ++r)
          for (std::int64_t c = 0; c < m.rows; ++c)
            lu[transpose ? c * m.rows + r : r * m.rows + c] = from[r * m.rows + c];
        int* pivots = static_cast<int*>(swaps->data);
        if (finite && m.rows) (void)devices::lu(m.rows, lu, pivots);
        f(i, lu, pivots, finite);
        return 0;
      },
      [](std::int64_t) {});
}

void slogdet_rule(const OpCall& call, TensorSpec* out) {
  check_matrices(call, 0, /*square=*/true);
  for (int k = 0; k < 2; ++k) {
    out[k].set(call.spec(0));
    out[k].rank = static_cast<std::int8_t>(call.spec(0).rank - 2);
  }
}
void slogdet_kernel(const OpCall& call) {
  if (without_elements(call)) return;
  const MatrixShape m(call.spec(0));
  in_float_or_double(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideOutput<T> sign(*call.out[0]), log_abs(*call.out[1]);
    each_lu<T>(call, false, [&](std::int64_t i, const T* lu, const int* pivots, bool finite) {
      T s = 1, l = 0;
      for (std::int64_t k = 0; k < m.rows && finite; ++k) {
        const T d = lu[k * m.rows + k];
        if (pivots[k] - 1 != k) s = -s;
        s = d == 0 ? T(0) : d < 0 ? -s : s;
        l += std::log(std::fabs(d));
      }
      sign.get()[i] = finite ? s : std::numeric_limits<T>::quiet_NaN();
      log_abs.get()[i] =
          finite ? s == 0 ? -std::numeric_limits<T>::infinity() : l : std::numeric_limits<T>::quiet_NaN();
    });
    sign.store();
    log_abs.store();
  });
}
void slogdet_vjp(const VjpContext& ctx) {
  if (!ctx.dy(1).defined()) return;
  const Tensor x = ctx.in(0), d = expand_dims(expand_dims(ctx.dy(1), -1), -1);
  ctx.din(0) = unless_zero(solve(x, identity_like(x), /*transposed=*/true) * d, {ctx.dy(1)});
}

void lu_rule(const OpCall& call, TensorSpec* out) {
  check_matrices(call, 0, /*square=*/true);
  out[0].set(call.spec(0));
  out[1].set(call.spec(0));
  out[1].rank = static_cast<std::int8_t>(call.spec(0).rank - 1);
  out[1].dtype = int64;
}
void lu_kernel(const OpCall& call) {
  if (without_elements(call)) return;
  const MatrixShape m(call.spec(0));
  in_float_or_double(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideOutput<T> out(*call.out[0]);
    each_lu<T>(call, true, [&](std::int64_t i, const T* lu, const int* pivots, bool finite) {
      T* to = out.get() + i * m.size();
      std::int64_t* rows = call.out_as<std::int64_t>(1) + i * m.rows;
      for (std::int64_t r = 0; r < m.rows; ++r) rows[r] = r;
      if (!finite) return fill_nan(to, m.size());
      for (std::int64_t r = 0; r < m.rows; ++r) std::swap(rows[r], rows[pivots[r] - 1]);
      for (std::int64_t r = 0; r < m.rows; ++r)
        for (std::int64_t c = 0; c < m.rows; ++c) to[r * m.rows + c] = lu[c * m.rows + r];
    });
    out.store();
  });
}

// --- QR --------------------------------------------------------------------------------------------------------------

void qr_rule(const OpCall& call, TensorSpec* out) {
  check_matrices(call, 0, /*square=*/false);
  const TensorSpec& x = call.spec(0);
  const std::int64_t m = x.dims[x.rank - 2], n = x.dims[x.rank - 1];
  const std::int64_t k = call.attrs.as<LinalgAttrs>().full ? m : m < 0 || n < 0 ? kUnknown : std::min(m, n);
  out[0].set(x);
  out[1].set(x);
  out[0].dims[x.rank - 1] = k;
  out[1].dims[x.rank - 2] = k;
}
void qr_kernel(const OpCall& call) {
  if (without_elements(call)) return;
  const MatrixShape m(call.spec(0)), q_shape(*call.out[0]), r_shape(*call.out[1]);
  in_float_or_double(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideInput<T> a(call, 0);
    const WideOutput<T> q(*call.out[0]), r(*call.out[1]);
    each_matrix(
        m.count, 2 * static_cast<double>(m.size()) * static_cast<double>(std::min(m.rows, m.columns)),
        [&](std::int64_t i) {
          T *to_q = q.get() + i * q_shape.size(), *to_r = r.get() + i * r_shape.size();
          const T* from = a.get() + i * m.size();
          if (!all_finite(from, m.size())) {
            fill_nan(to_q, q_shape.size());
            fill_nan(to_r, r_shape.size());
            return 0;
          }
          if (m.size() == 0) {  // without columns, a complete q is the identity
            for (std::int64_t j = 0; j < q_shape.size(); ++j) to_q[j] = j % (q_shape.columns + 1) == 0 ? T(1) : T(0);
            return 0;
          }
          const Ref<Storage> held = Storage::allocate(m.size() * static_cast<std::int64_t>(sizeof(T)), cpu);
          T* copy = static_cast<T*>(held->data);
          std::copy_n(from, m.size(), copy);
          return devices::qr(m.rows, m.columns, q_shape.columns, copy, to_q, to_r);
        },
        [&](std::int64_t i) { fail<ValueError>({"qr"}, matrix_text(call.spec(0), i), " cannot be factorised"); });
    q.store();
    r.store();
  });
}
/// For m >= n: M = R dR' - dQ' Q, dA = (dQ + Q copyltu(M)) R'^-1, where copyltu makes a symmetric matrix of the lower
/// triangle (Walter and Lehmann 2018).
void qr_vjp(const VjpContext& ctx) {
  const TensorSpec& x = ctx.spec(0);
  const std::int64_t m = x.dims[x.rank - 2], n = x.dims[x.rank - 1];
  if (m < n || (ctx.attrs.as<LinalgAttrs>().full && m != n))
    fail<NotImplementedError>({"qr"}, "the gradient of a factorisation of ", x, kExpected,
                              "there must not be more columns than rows, nor a complete q");
  const Tensor q = ctx.out(0), r = ctx.out(1);
  Tensor inner;
  if (ctx.dy(1).defined()) inner = matmul(r, ctx.dy(1), false, true);
  if (ctx.dy(0).defined()) {
    const Tensor of_q = matmul(ctx.dy(0), q, true, false);
    inner = inner.defined() ? inner - of_q : -of_q;
  }
  if (!inner.defined()) return;
  const Tensor half = lower_half(inner);
  Tensor d = matmul(q, half + transposed(half));
  if (ctx.dy(0).defined()) d = d + ctx.dy(0);
  // d R'^-1, that is the transpose of R^-1 d'.
  ctx.din(0) = unless_zero(transposed(triangular_solve(r, transposed(d), {.lower = false, .unchecked = true})),
                           {ctx.dy(0), ctx.dy(1)});
}

}  // namespace

constinit const OpDef cholesky_op{
    .name = "cholesky", .rule = square_rule, .cpu = cholesky_kernel, .vjp = cholesky_vjp, .saves_out = 1};
constinit const OpDef triangular_solve_op{.name = "solve_triangular",
                                          .rule = solve_rule,
                                          .cpu = triangular_kernel,
                                          .vjp = triangular_vjp,
                                          .saves_in = 1,
                                          .saves_out = 1,
                                          .inputs = "a b"};
constinit const OpDef solve_op{.name = "solve",
                               .rule = solve_rule,
                               .cpu = solve_kernel,
                               .vjp = solve_vjp,
                               .saves_in = 1,
                               .saves_out = 1,
                               .inputs = "a b"};
constinit const OpDef slogdet_op{
    .name = "slogdet", .rule = slogdet_rule, .cpu = slogdet_kernel, .vjp = slogdet_vjp, .saves_in = 1, .n_out = 2};
constinit const OpDef lu_op{.name = "lu", .rule = lu_rule, .cpu = lu_kernel, .n_out = 2};
constinit const OpDef qr_op{.name = "qr", .rule = qr_rule, .cpu = qr_kernel, .vjp = qr_vjp, .saves_out = 3, .n_out = 2};

Tensor transposed(const Tensor& x) {
  const int rank = Access::desc(x).rank;
  std::vector<int> order(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = i < rank - 2 ? i : 2 * rank - 3 - i;
  return permute(x, order);
}
Tensor identity_like(const Tensor& x) {
  const Positions at(x);
  return where(at.on_diagonal(), zeros_of(x) + 1, number_like(0, x));
}

Tensor cholesky(const Tensor& a) { return back_to(a, apply1(cholesky_op, {on_host(a)})); }
Tensor triangular_solve(const Tensor& a, const Tensor& b, const LinalgAttrs& form) {
  return back_to(b, apply1(triangular_solve_op, form, {on_host(a), on_host(b)}));
}
Tensor solve(const Tensor& a, const Tensor& b, bool transposed) {
  return back_to(b, apply1(solve_op, LinalgAttrs{.transposed = transposed}, {on_host(a), on_host(b)}));
}
SignLogDet slogdet(const Tensor& a) {
  const Tensors both = apply_all(slogdet_op, LinalgAttrs{}, {on_host(a)});
  return {back_to(a, both[0]), back_to(a, both[1])};
}
Lu lu(const Tensor& a) {
  const Tensors both = apply_all(lu_op, LinalgAttrs{}, {on_host(a)});
  return {back_to(a, both[0]), back_to(a, both[1])};
}
Qr qr(const Tensor& a, bool full) {
  const Tensors both = apply_all(qr_op, LinalgAttrs{.full = full}, {on_host(a)});
  return {back_to(a, both[0]), back_to(a, both[1])};
}

}  // namespace kassette::ops
