// ops/sparse/sparse_dot.cpp - products of a sparse matrix with a dense one, and their adjoints.
#include <algorithm>
#include <type_traits>

#include "core/convert.h"
#include "core/rank.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/engine/expr.h"
#include "ops/elementwise/half_compute.h"
#include "ops/sparse/sparse.h"
#include "ops/sparse/sparse_index.h"
#include "ops/sparse/sparse_loops.h"
#include "ops/product/zero_terms.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrain = 1 << 15;  // multiplications

// Two ops that are closed under differentiation. A is sparse with the values v[k] at (i_k, j_k); X and Y are dense.
//   sparse_dot       Y = A X, or A' X if transposed
//   sparse_products  v[k] = <X[i_k], Y[j_k]>
// The gradient of A X is sparse_products of dY and X with respect to v, and A' dY with respect to X. The gradients of
// sparse_products are A Y with respect to X and A' X with respect to Y, where A has the values dv.

template <class T>
SparseLoops<T> loops() {
  if constexpr (sizeof(T) == 4) return KASSETTE_PICK(sparse_table).floats;
  else return KASSETTE_PICK(sparse_table).doubles;
}

/// The loops for integers, which wrap.
template <class T>
struct IntegerLoops {
  using U = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int, T>>;
  static void dot(const SparseEntries& m, const T* values, const T* x, T* out, std::int64_t width, std::int64_t begin,
                  std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* to = out + r * width;
      std::fill_n(to, width, T(0));
      for (std::int64_t k = m.starts[r]; k < m.starts[r + 1]; ++k) {
        auto v = static_cast<U>(values[m.order ? m.order[k] : k]);
        const T* row = x + m.others[k] * width;
        for (std::int64_t j = 0; j < width; ++j)
          to[j] = static_cast<T>(static_cast<U>(to[j]) + v * static_cast<U>(row[j]));
      }
    }
  }
  static void products(const std::int64_t* at, const T* a, const T* b, T* out, std::int64_t width, std::int64_t begin,
                       std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const T *x = a + at[2 * k] * width, *y = b + at[2 * k + 1] * width;
      U sum = 0;
      for (std::int64_t j = 0; j < width; ++j) sum += static_cast<U>(x[j]) * static_cast<U>(y[j]);
      out[k] = static_cast<T>(sum);
    }
  }
};

/// Calls f(loops, input, input, output). Half types are converted to float32 and rounded once at the end.
template <class F>
void with_loops(const OpCall& call, const int* inputs, F f) {
  TensorDesc& out = *call.out[0];
  auto in = [&](int i) { return call.in[inputs[i]].data; };
  dispatch(out.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if constexpr (kIsHalf<T>) {
      const WideInput<float> a(call, inputs[0]), b(call, inputs[1]);
      const WideOutput<float> to(out);
      f(loops<float>(), a.get(), b.get(), to.get());
      to.store();
    } else if constexpr (std::is_floating_point_v<T>) {
      f(loops<T>(), reinterpret_cast<const T*>(in(0)), reinterpret_cast<const T*>(in(1)), call.out_as<T>());
    } else if constexpr (!std::is_same_v<T, bool>) {
      f(IntegerLoops<T>(), reinterpret_cast<const T*>(in(0)), reinterpret_cast<const T*>(in(1)), call.out_as<T>());
    }
  });
}

/// Lets zeros of a cotangent among the factors a and b count as zeros (Note [Zero cotangents]) in their product, `out`.
/// terms(i, add) adds the terms of element i until add(index in a, index in b) returns false.
template <class T, class Terms>
void respect_zeros(Cotangent which, const T* a, std::int64_t n_a, const T* b, std::int64_t n_b, T* out, std::int64_t n,
                   Terms terms) {
  if constexpr (std::is_floating_point_v<T>) {
    if (which == Cotangent::neither) return;
    const bool a_is = which == Cotangent::a;
    if (!may_meet(dtype_of(out), a_is ? b : a, a_is ? n_b : n_a, out, n)) return;
    replace_nans(out, n, [&](std::int64_t i) {
      TermSum sum;
      terms(i, [&](std::int64_t at_a, std::int64_t at_b) {
        return a_is ? sum.add(a[at_a], b[at_b]) : sum.add(b[at_b], a[at_a]);
      });
      return sum.value;
    });
  }
}

TensorSpec matrix_shape(const OpCall& call, int i) {
  TensorSpec s;
  dims_from(call, i, &s, "dense_shape");
  if (differ(s.rank, 2))
    fail<ValueError>({"dot"}, "a sparse tensor of shape ", s, kExpected, "products take matrices", kRemedy,
                     "K::to_dense makes it dense");
  if (s.rank < 0) s = TensorSpec(DType(), {kUnknown, kUnknown});
  return s;
}
void check_matrix(const OpCall& call, int i) {
  const TensorSpec& s = call.spec(i);
  if (s.rank == 0 || s.rank > 2)
    fail<ValueError>({"dot"}, "a dense operand of shape ", s, kExpected,
                     "with a sparse matrix it must be a matrix or a vector");
}
/// A vector is a matrix of one column.
std::int64_t dim(const TensorSpec& s, int i) { return s.rank < 0 ? kUnknown : i < s.rank ? s.dims[i] : 1; }

void check_dtypes(DType a, DType b) {
  if (a != b) fail<TypeError>({"dot"}, a, " and ", b, kRemedy, "cast one of them (K::cast), tensors are not promoted");
  if (a.is_bool()) fail<TypeError>({"dot"}, "bool is not a number", kRemedy, "cast it first (K::cast)");
}

/// Inputs: indices, values, dense shape, a dense matrix or vector.
void dot_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &values = call.spec(1), &x = call.spec(3);
  TensorSpec a = matrix_shape(call, 2);
  check_matrix(call, 3);
  check_dtypes(values.dtype, x.dtype);
  check_rank({"sparse_coo", "values"}, values, 1, ": (entries,)");  // unknown, maybe, until a function is called
  if (call.attrs.as<SparseDotAttrs>().transposed) std::swap(a.dims[0], a.dims[1]);
  if (differ(a.dims[1], dim(x, 0)))
    fail<ValueError>({"dot"}, "sparse ", a, " x ", x, ": inner dimensions differ, ", a.dims[1], " against ", x.dims[0]);
  if (call.spec(0).rank >= 0 && differ(call.spec(0).dims[0], dim(values, 0)))
    fail<ValueError>({"dot"}, call.spec(0).dims[0], " indices and ", values.dims[0], " values");
  *out = TensorSpec(x.dtype, {a.dims[0], dim(x, 1)});
  if (x.rank != 2) out->rank = x.rank;
}

void dot_kernel(const OpCall& call) {
  TensorDesc& out = *call.out[0];
  std::int64_t width = dim(out, 1);
  if (out.numel() == 0) return;
  std::unique_ptr<SparseIndex> made;
  const SparseIndex& index = SparseIndex::owner_of("dot", *call.in[0].desc, matrix_shape(call, 2), made);
  const SparseLines& lines = index.lines(static_cast<int>(call.attrs.as<SparseDotAttrs>().transposed));
  const SparseEntries m{lines.starts, lines.others, lines.order};
  constexpr int kInputs[] = {1, 3};
  with_loops(call, kInputs, [&](const auto& loop, const auto* values, const auto* x, auto* to) {
    // Parts of equal work: a line with k entries counts as k + 1 units, and belongs to the part that its first unit is
    // in.
    auto line_at = [&](std::int64_t unit) {
      std::int64_t low = 0, high = lines.n;
      while (low < high) {
        std::int64_t r = (low + high) / 2;
        if (m.starts[r] + r < unit) low = r + 1;
        else high = r;
      }
      return low;
    };
    devices::parallel_for(
        index.count() + lines.n, std::max<std::int64_t>(1, kGrain / width),
        [&](std::int64_t begin, std::int64_t end) { loop.dot(m, values, x, to, width, line_at(begin), line_at(end)); });
    respect_zeros(call.attrs.as<SparseDotAttrs>().cotangent, values, call.spec(1).numel(), x, call.spec(3).numel(), to,
                  out.numel(), [&](std::int64_t i, auto add) {
                    for (std::int64_t r = i / width, k = m.starts[r]; k < m.starts[r + 1]; ++k)
                      if (!add(m.order ? m.order[k] : k, m.others[k] * width + i % width)) return;
                  });
  });
}

void dot_gradient(const VjpContext& ctx) {
  bool transposed = ctx.attrs.as<SparseDotAttrs>().transposed;
  if (ctx.wants(1)) {
    Tensor x = ctx.in(3);
    ctx.din(1) = apply1(sparse_products_op, SparseProductsAttrs{transposed ? Cotangent::b : Cotangent::a},
                        {ctx.in(0), ctx.in(2), transposed ? x : ctx.dy(), transposed ? ctx.dy() : x});
  }
  if (ctx.wants(3)) {
    Tensor in[] = {ctx.in(0), ctx.in(1), ctx.in(2), ctx.dy()};
    ctx.din(3) = apply1(sparse_dot_op, SparseDotAttrs{!transposed, Cotangent::b}, {in[0], in[1], in[2], in[3]});
  }
}

/// Inputs: indices, dense shape (n, m), X of shape (n, width), Y of shape (m, width), or (n,) and (m,).
void products_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &x = call.spec(2), &y = call.spec(3);
  TensorSpec a = matrix_shape(call, 1);
  check_matrix(call, 2);
  check_matrix(call, 3);
  check_dtypes(x.dtype, y.dtype);
  if (differ(a.dims[0], dim(x, 0)) || differ(a.dims[1], dim(y, 0)) || differ(dim(x, 1), dim(y, 1)))
    fail<ValueError>({"dot"}, x, " and ", y, " for entries of the dense shape ", a);
  *out = TensorSpec(x.dtype, {dim(call.spec(0), 0)});
}
void products_kernel(const OpCall& call) {
  std::int64_t width = dim(call.spec(2), 1);
  std::unique_ptr<SparseIndex> made;
  const SparseIndex& index = SparseIndex::owner_of("dot", *call.in[0].desc, matrix_shape(call, 1), made);
  constexpr int kInputs[] = {2, 3};
  with_loops(call, kInputs, [&](const auto& loop, const auto* x, const auto* y, auto* to) {
    devices::parallel_for(
        index.count(), std::max<std::int64_t>(1, kGrain / (width + 1)),
        [&](std::int64_t begin, std::int64_t end) { loop.products(index.at(0), x, y, to, width, begin, end); });
    const std::int64_t* at = index.at(0);
    respect_zeros(call.attrs.as<SparseProductsAttrs>().cotangent, x, call.spec(2).numel(), y, call.spec(3).numel(), to,
                  index.count(), [&](std::int64_t k, auto add) {
                    for (std::int64_t j = 0; j < width; ++j)
                      if (!add(at[2 * k] * width + j, at[2 * k + 1] * width + j)) return;
                  });
  });
}
void products_gradient(const VjpContext& ctx) {
  auto dot = [&](const Tensor& x, bool transposed) {
    Tensor indices = ctx.in(0), shape = ctx.in(1);
    return apply1(sparse_dot_op, SparseDotAttrs{transposed, Cotangent::a}, {indices, ctx.dy(), shape, x});
  };
  if (ctx.wants(2)) ctx.din(2) = dot(ctx.in(3), /*transposed=*/false);
  if (ctx.wants(3)) ctx.din(3) = dot(ctx.in(2), /*transposed=*/true);
}

}  // namespace

constinit const OpDef sparse_dot_op{
    .name = "sparse_dot", .rule = dot_rule, .cpu = dot_kernel, .vjp = dot_gradient, .saves_in = 0b1111, .host = 0b0101};
constinit const OpDef sparse_products_op{.name = "sparse_products",
                                         .rule = products_rule,
                                         .cpu = products_kernel,
                                         .vjp = products_gradient,
                                         .saves_in = 0b1111,
                                         .host = 0b0011};

Tensor sparse_dot(const Tensor& sparse, const Tensor& dense, bool transposed) {
  const TensorDesc& a = Access::desc(sparse);
  return apply1(sparse_dot_op, SparseDotAttrs{transposed},
                {&sparse_part(a, kIndices), &sparse_part(a, kValues), &sparse_part(a, kDenseShape), dense});
}

}  // namespace kassette::ops
