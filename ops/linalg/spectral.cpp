// ops/linalg/spectral.cpp - eigenvalues and singular values.
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
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

Tensor as_row(const Tensor& x) { return expand_dims(x, -2); }
Tensor as_column(const Tensor& x) { return expand_dims(x, -1); }
/// 1 / (x_j - x_i) off the diagonal, 0 on it.
Tensor reciprocal_gaps(const Tensor& x) {
  const Tensor diagonal = Positions(x).on_diagonal(), gaps = as_row(x) - as_column(x);
  const Tensor one = number_like(1, x), zero = number_like(0, x);
  return where(diagonal, zero, one / where(diagonal, one, gaps));
}
/// The matrices with x on their diagonals.
Tensor diagonal_matrix(const Tensor& x) { return where(Positions(x).on_diagonal(), as_row(x), number_like(0, x)); }

/// A copy of each matrix, which LAPACK overwrites; `ill` is called for one that is not finite.
template <class T, class F, class Ill>
void each_copy(const OpCall& call, double work, F&& f, Ill&& ill) {
  const MatrixShape m(call.spec(0));
  const WideInput<T> a(call, 0);
  each_matrix(
      m.count, work,
      [&](std::int64_t i) {
        const T* from = a.get() + i * m.size();
        if (!all_finite(from, m.size())) {
          ill(i);
          return 0;
        }
        const Ref<Storage> held =
            Storage::allocate(std::max<std::int64_t>(1, m.size()) * static_cast<std::int64_t>(sizeof(T)), cpu);
        T* copy = static_cast<T*>(held->data);
        std::copy_n(from, m.size(), copy);
        return f(i, copy);
      },
      [&](std::int64_t i) {
        fail<ValueError>({call.op.name}, "the iteration for ", matrix_text(call.spec(0), i), " does not converge");
      });
}
/// Writes n rows as columns.
template <class T>
void write_transposed(const T* from, std::int64_t n, T* to) {
  for (std::int64_t r = 0; r < n; ++r)
    for (std::int64_t c = 0; c < n; ++c) to[c * n + r] = from[r * n + c];
}

// --- symmetric matrices ----------------------------------------------------------------------------------------------

void eigh_rule(const OpCall& call, TensorSpec* out) {
  check_matrices(call, 0, /*square=*/true);
  out[0].set(call.spec(0));
  out[0].rank = static_cast<std::int8_t>(call.spec(0).rank - 1);
  if (&call.op == &eigh_op) out[1].set(call.spec(0));
}
void eigh_kernel(const OpCall& call) {
  if (without_elements(call)) return;
  const MatrixShape m(call.spec(0));
  const bool vectors = call.n_out == 2;
  in_float_or_double(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideOutput<T> w(*call.out[0]);
    const WideOutput<T> v = vectors ? WideOutput<T>(*call.out[1]) : WideOutput<T>();
    each_copy<T>(
        call, 4 * cube(m.rows),
        [&](std::int64_t i, T* copy) {
          const int info = m.rows ? devices::eigh(m.rows, vectors, copy, w.get() + i * m.rows) : 0;
          if (vectors) write_transposed(copy, m.rows, v.get() + i * m.size());
          return info;
        },
        [&](std::int64_t i) {
          fill_nan(w.get() + i * m.rows, m.rows);
          if (vectors) fill_nan(v.get() + i * m.size(), m.size());
        });
    w.store();
    if (vectors) v.store();
  });
}
/// V (diag(dw) + F o V'dV) V', made symmetric, with F_ij = 1 / (w_j - w_i) (Giles 2008).
Tensor eigh_cotangent(const Tensor& w, const Tensor& v, const Tensor& dw, const Tensor& dv) {
  Tensor inner;
  if (dv.defined()) inner = reciprocal_gaps(w) * matmul(v, dv, true, false);
  if (dw.defined()) inner = inner.defined() ? inner + diagonal_matrix(dw) : diagonal_matrix(dw);
  const Tensor da = matmul(matmul(v, inner), v, false, true);
  return unless_zero((da + transposed(da)) * 0.5, {dw, dv});
}
void eigh_vjp(const VjpContext& ctx) { ctx.din(0) = eigh_cotangent(ctx.out(0), ctx.out(1), ctx.dy(0), ctx.dy(1)); }
void eigvalsh_vjp(const VjpContext& ctx) {
  const Tensor v = eigh(ctx.in(0)).v;
  ctx.din(0) = unless_zero(matmul(v * as_row(ctx.dy()), v, false, true), {ctx.dy()});
}

// --- singular values -------------------------------------------------------------------------------------------------

void svd_rule(const OpCall& call, TensorSpec* out) {
  check_matrices(call, 0, /*square=*/false);
  const TensorSpec& x = call.spec(0);
  const std::int64_t m = x.dims[x.rank - 2], n = x.dims[x.rank - 1], k = m < 0 || n < 0 ? kUnknown : std::min(m, n);
  const bool vectors = &call.op == &svd_op, full = call.attrs.as<LinalgAttrs>().full;
  TensorSpec& s = out[vectors ? 1 : 0];
  s.set(x);
  s.rank = static_cast<std::int8_t>(x.rank - 1);
  s.dims[x.rank - 2] = k;
  if (!vectors) return;
  out[0].set(x);
  out[2].set(x);
  out[0].dims[x.rank - 1] = full ? m : k;
  out[2].dims[x.rank - 2] = full ? n : k;
}
template <class T>
void write_identity(T* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n * n; ++i) to[i] = i % (n + 1) == 0 ? T(1) : T(0);
}
void svd_kernel(const OpCall& call) {
  if (without_elements(call)) return;
  const MatrixShape m(call.spec(0));
  const bool vectors = call.n_out == 3, full = call.attrs.as<LinalgAttrs>().full;
  const std::int64_t k = std::min(m.rows, m.columns);
  in_float_or_double(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideOutput<T> s(*call.out[vectors ? 1 : 0]);
    const WideOutput<T> u = vectors ? WideOutput<T>(*call.out[0]) : WideOutput<T>(),
                        vh = vectors ? WideOutput<T>(*call.out[2]) : WideOutput<T>();
    const std::int64_t of_u = m.rows * (full ? m.rows : k), of_v = m.columns * (full ? m.columns : k);
    each_copy<T>(
        call, 8 * static_cast<double>(m.size()) * static_cast<double>(k),
        [&](std::int64_t i, T* copy) {
          T* to_u = vectors ? u.get() + i * of_u : nullptr;
          T* to_v = vectors ? vh.get() + i * of_v : nullptr;
          if (m.size() == 0) {
            if (vectors && full) {
              write_identity(to_u, m.rows);
              write_identity(to_v, m.columns);
            }
            return 0;
          }
          return devices::svd(m.rows, m.columns, full, copy, to_u, s.get() + i * k, to_v);
        },
        [&](std::int64_t i) {
          fill_nan(s.get() + i * k, k);
          if (!vectors) return;
          fill_nan(u.get() + i * of_u, of_u);
          fill_nan(vh.get() + i * of_v, of_v);
        });
    s.store();
    if (!vectors) return;
    u.store();
    vh.store();
  });
}
/// The part of x that is not in the span of the orthonormal columns of u.
Tensor outside(const Tensor& u, const Tensor& x) { return x - matmul(u, matmul(u, x, true, false)); }
/// U ((J + J') S + S (K + K') + diag(ds)) V' and what leaves the spans of U and V, with J = F o U'dU, K = F o V'dV and
/// F_ij = 1 / (s_j^2 - s_i^2) (Townsend 2016). The singular values have to differ, and not to be 0 for the vectors.
void svd_vjp(const VjpContext& ctx) {
  const TensorSpec& x = ctx.spec(0);
  if (ctx.attrs.as<LinalgAttrs>().full && x.dims[x.rank - 2] != x.dims[x.rank - 1] &&
      (ctx.dy(0).defined() || ctx.dy(2).defined()))
    fail<NotImplementedError>({"svd"}, "the gradient of full matrices of a rectangular x", kRemedy,
                              "ask for the reduced ones");
  const Tensor u = ctx.out(0), s = ctx.out(1), vh = ctx.out(2), v = transposed(vh);
  Tensor inner = ctx.dy(1).defined() ? diagonal_matrix(ctx.dy(1)) : Tensor();
  auto add = [](Tensor& sum, const Tensor& more) { sum = sum.defined() ? sum + more : more; };
  const Tensor gaps = reciprocal_gaps(square(s));
  Tensor beyond;
  const std::int64_t m = x.dims[x.rank - 2], n = x.dims[x.rank - 1];
  // Otherwise the vectors span everything, and what is beyond is rounding alone.
  const bool tall = m < 0 || n < 0 || m > n, wide = m < 0 || n < 0 || n > m;
  if (const Tensor& du = ctx.dy(0); du.defined()) {
    const Tensor j = gaps * matmul(u, du, true, false);
    add(inner, (j + transposed(j)) * as_row(s));
    if (tall) add(beyond, matmul(outside(u, du / as_row(s)), vh));
  }
  if (ctx.dy(2).defined()) {
    const Tensor dv = transposed(ctx.dy(2)), k = gaps * matmul(v, dv, true, false);
    add(inner, as_column(s) * (k + transposed(k)));
    if (wide) add(beyond, matmul(u, transposed(outside(v, dv / as_row(s)))));
  }
  if (!inner.defined()) return;
  Tensor da = matmul(matmul(u, inner), vh);
  if (beyond.defined()) da = da + beyond;
  ctx.din(0) = unless_zero(da, {ctx.dy(0), ctx.dy(1), ctx.dy(2)});
}
void svdvals_vjp(const VjpContext& ctx) {
  const Svd f = svd(ctx.in(0));
  ctx.din(0) = unless_zero(matmul(f.u * as_row(ctx.dy()), f.vh), {ctx.dy()});
}

// --- eigenvalues of real matrices ------------------------------------------------------------------------------------

void eig_rule(const OpCall& call, TensorSpec* out) {
  check_matrices(call, 0, /*square=*/true);
  for (int i = 0; i < 4; ++i) {
    out[i].set(call.spec(0));
    if (i < 2) out[i].rank = static_cast<std::int8_t>(call.spec(0).rank - 1);
  }
}
void eig_kernel(const OpCall& call) {
  if (without_elements(call)) return;
  const MatrixShape m(call.spec(0));
  const std::int64_t n = m.rows;
  in_float_or_double(call.spec(0).dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const WideOutput<T> w_real(*call.out[0]), w_imaginary(*call.out[1]), v_real(*call.out[2]),
        v_imaginary(*call.out[3]);
    each_copy<T>(
        call, 10 * cube(n),
        [&](std::int64_t i, T* copy) {
          if (n == 0) return 0;
          const Ref<Storage> held = Storage::allocate(m.size() * static_cast<std::int64_t>(sizeof(T)), cpu);
          T *v = static_cast<T*>(held->data), *real = v_real.get() + i * m.size(),
            *imaginary = v_imaginary.get() + i * m.size();
          T* w = w_imaginary.get() + i * n;
          const int info = devices::eig(n, copy, w_real.get() + i * n, w, v);
          if (info != 0) return info;
          for (std::int64_t k = 0; k < n; ++k) {
            // Row k holds the real parts of a pair, and row k + 1 the imaginary parts of its first.
            const bool first = w[k] > 0, second = w[k] < 0;
            for (std::int64_t j = 0; j < n; ++j) {
              real[j * n + k] = v[(second ? k - 1 : k) * n + j];
              imaginary[j * n + k] = first ? v[(k + 1) * n + j] : second ? -v[k * n + j] : T(0);
            }
          }
          return 0;
        },
        [&](std::int64_t i) {
          for (T* w : {w_real.get(), w_imaginary.get()}) fill_nan(w + i * n, n);
          for (T* v : {v_real.get(), v_imaginary.get()}) fill_nan(v + i * m.size(), m.size());
        });
    for (const WideOutput<T>* out : {&w_real, &w_imaginary, &v_real, &v_imaginary}) out->store();
  });
}

}  // namespace

constinit const OpDef eigh_op{
    .name = "eigh", .rule = eigh_rule, .cpu = eigh_kernel, .vjp = eigh_vjp, .saves_out = 3, .n_out = 2};
constinit const OpDef eigvalsh_op{
    .name = "eigvalsh", .rule = eigh_rule, .cpu = eigh_kernel, .vjp = eigvalsh_vjp, .saves_in = 1};
constinit const OpDef svd_op{
    .name = "svd", .rule = svd_rule, .cpu = svd_kernel, .vjp = svd_vjp, .saves_out = 7, .n_out = 3};
constinit const OpDef svdvals_op{
    .name = "svdvals", .rule = svd_rule, .cpu = svd_kernel, .vjp = svdvals_vjp, .saves_in = 1};
constinit const OpDef eig_op{.name = "eig", .rule = eig_rule, .cpu = eig_kernel, .n_out = 4};

Eigh eigh(const Tensor& a) {
  const Tensors both = apply_all(eigh_op, LinalgAttrs{}, {on_host(a)});
  return {back_to(a, both[0]), back_to(a, both[1])};
}
Tensor eigvalsh(const Tensor& a) { return back_to(a, apply1(eigvalsh_op, LinalgAttrs{}, {on_host(a)})); }
Svd svd(const Tensor& a, bool full) {
  const Tensors all = apply_all(svd_op, LinalgAttrs{.full = full}, {on_host(a)});
  return {back_to(a, all[0]), back_to(a, all[1]), back_to(a, all[2])};
}
Tensor svdvals(const Tensor& a) { return back_to(a, apply1(svdvals_op, LinalgAttrs{}, {on_host(a)})); }
Eig eig(const Tensor& a) {
  const Tensors all = apply_all(eig_op, LinalgAttrs{}, {on_host(a)});
  return {back_to(a, all[0]), back_to(a, all[1]), back_to(a, all[2]), back_to(a, all[3])};
}

}  // namespace kassette::ops
