// nn_backend/numpy/linalg.cpp - linear algebra: np::linalg.
#include <kassette/numpy/linalg.h>
#include <kassette/numpy/products.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/rank.h"
#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/linalg.h"
#include "nn_backend/numpy/numbers.h"
#include "ops/linalg/linalg.h"
#include "ops/product/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/checked.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace linalg {
namespace {

using ops::attribute_errors;

/// a and b with the same leading axes, b with a column where it is one vector.
struct System {
  Tensor a, b;
  bool vector;
};
System system_of(const char* what, const Operand& a_given, const Operand& b_given, const char* a_name = "a") {
  const Pair pair(a_given, b_given, what);
  const ArrayArg a_array(pair.x(), {what, a_name}, own_dtype(pair.y())),
      b_array(pair.y(), {what, "b"}, own_dtype(pair.x()));
  System s{a_array.tensor(), b_array.tensor(), false};
  const int ra = known_rank(s.a, {what, a_name});
  if (ops::is_tensor_operand(a_given)) s.b = beside(s.a, b_given, s.b, {what, "b"});
  else s.a = beside(s.b, a_given, s.a, {what, a_name});
  s.vector = known_rank(s.b, {what, "b"}) == 1;
  if (s.vector) s.b = ops::expand_dims(s.b, 1);
  const int rb = Access::desc(s.b).rank;
  if (ra < 2 || rb < 2 || (ra == 2 && rb == 2)) return s;
  // The leading axes broadcast.
  s.b = ops::checked(s.b, s.a, [what](const TensorSpec& b, const TensorSpec& m) {
    if (m.rank < 2 || b.rank < 2) return;
    if (differ(m.dims[m.rank - 2], b.dims[b.rank - 2]) || !ops::broadcast_together(m, b, 2))
      fail<ValueError>({what, "b"}, "of shape ", b, " does not fit a of shape ", m, kExpected,
                       "it must have as many rows, and the same leading axes");
  });
  const int rank = std::max(ra, rb);
  auto with_batch = [&](const Tensor& x, const Tensor& other) {
    const TensorDesc &mine = Access::desc(x), &others = Access::desc(other);
    SizesOf shape;
    bool same = mine.rank == rank;
    for (int i = 0; i < rank - 2; ++i) {
      const int at = i - (rank - mine.rank), there = i - (rank - others.rank);
      const bool either = at >= 0 && there >= 0 && mine.dims[at] < 0 && others.dims[there] != 1;
      const bool takes = there >= 0 && (at < 0 || (mine.dims[at] == 1 && others.dims[there] != 1));
      same = same && !takes && !either;
      if (either) {
        const Tensor own = size_along(x, at);
        shape.push(ops::where(ops::equal(own, 1), size_along(other, there), own));
      } else if (takes) {
        shape.push_size(other, there);
      } else {
        shape.push_size(x, at);
      }
    }
    if (same) return x;
    shape.push_size(x, mine.rank - 2);
    shape.push_size(x, mine.rank - 1);
    return ops::broadcast_to(x, shape);
  };
  const Tensor a = with_batch(s.a, s.b);
  s.b = with_batch(s.b, s.a);
  s.a = a;
  return s;
}
Tensor finished(const System& s, const Tensor& x) { return s.vector ? ops::squeeze(x, -1) : x; }

/// Throws unless x holds float matrices.
void check_matrices(const char* what, const Tensor& x) {
  const int rank = known_rank(x, {what, "x"});
  check_float(x, {what, "x"});
  if (rank < 2) fail<ValueError>({what, "x"}, "of shape ", x.shape(), kExpected, "it must have two axes or more");
}
/// The largest singular values of s (..., k) below which they count as 0.
Tensor cutoff(const char* what, const Tensor& x, const Tensor& s, const Scalar& rtol) {
  const TensorDesc& b = Access::desc(x);
  const Tensor largest = ops::max(s, -1, /*keepdims=*/true);
  if (!rtol.is_none()) return largest * number_of({what, "rtol"}, rtol);
  const double unit = unit_of(b.dtype);
  const std::int64_t m = b.dims[b.rank - 2], n = b.dims[b.rank - 1];
  if (m >= 0 && n >= 0) return largest * (static_cast<double>(std::max(m, n)) * unit);
  const Tensor size = ops::maximum(size_along(x, b.rank - 2), size_along(x, b.rank - 1));
  return largest * (ops::cast(size, b.dtype) * unit).to(x.device());
}
/// sum^(1 / p), with the gradient 0 where the sum is 0.
Tensor root(const Tensor& sum, double p) {
  const Tensor zero = ops::equal(sum, 0), positive = ops::where(zero, ops::number_like(1, sum), sum);
  return ops::where(zero, sum, p == 2 ? ops::sqrt(positive) : ops::pow(positive, 1 / p));
}
Tensor vector_norm_of(const char* what, const Tensor& x, const Scalar& ord, const Axes& axis, bool keepdims) {
  check_float(x, {what, "x"});
  const double p = ord.is_none() ? 2 : number_of({what, "ord"}, ord);
  if (p == 2) return root(ops::sum(ops::square(x), axis, keepdims), 2);
  const Tensor size = ops::abs(x);
  if (p == 1) return ops::sum(size, axis, keepdims);
  if (std::isinf(p)) return p > 0 ? ops::max(size, axis, keepdims) : ops::min(size, axis, keepdims);
  if (p == 0) return ops::sum(ops::cast(ops::not_equal(x, 0), x.dtype()), axis, keepdims);
  const Tensor sum = ops::sum(ops::pow(size, p), axis, keepdims);
  return p > 0 ? root(sum, p) : ops::pow(sum, 1 / p);
}
/// The norm of matrices along two axes, `rows` and `columns`.
Tensor matrix_norm_of(const char* what, const Tensor& x, const Scalar& ord, int rows, int columns, bool keepdims) {
  check_float(x, {what, "x"});
  if (ord.is_none()) return vector_norm_of(what, x, 2, {rows, columns}, keepdims);
  const double p = number_of({what, "ord"}, ord);
  auto extreme = [&](const Tensor& sums, int axis) {
    return p > 0 ? ops::max(sums, axis, keepdims) : ops::min(sums, axis, keepdims);
  };
  if (std::fabs(p) == 1 || std::isinf(p)) {
    const int summed = std::isinf(p) ? columns : rows, left = std::isinf(p) ? rows : columns;
    const Tensor sums = ops::sum(ops::abs(x), summed, keepdims);
    return extreme(sums, !keepdims && left > summed ? left - 1 : left);
  }
  if (std::fabs(p) != 2)
    fail<ValueError>({what, "ord"}, "is ", p, kExpected, "for matrices it must be None, 1, -1, 2, -2, inf or -inf");
  const int rank = Access::desc(x).rank;
  std::vector<int> order;
  for (int i = 0; i < rank; ++i)
    if (i != rows && i != columns) order.push_back(i);
  order.push_back(rows);
  order.push_back(columns);
  const Tensor s = ops::svdvals(ops::permute(x, order));
  Tensor y = p > 0 ? ops::max(s, -1) : ops::min(s, -1);
  if (!keepdims) return y;
  for (int axis : {std::min(rows, columns), std::max(rows, columns)}) y = ops::expand_dims(y, axis);
  return y;
}

}  // namespace

Tensor square_matrices(const char* what, const Tensor& x) {
  check_matrices(what, x);
  return ops::checked(x, [what](const TensorSpec& d) {
    if (d.rank >= 2 && differ(d.dims[d.rank - 2], d.dims[d.rank - 1]))
      fail<ValueError>({what, "x"}, "of shape ", d, kExpected, "its matrices must be square");
  });
}

Tensor solve(const Operand& a, const Operand& b) {
  return attribute_errors("solve", [&] {
    const System s = system_of("solve", a, b);
    return finished(s, ops::solve(s.a, s.b));
  });
}
Tensor solve_triangular(const Operand& a, const Operand& b, const TriangularOptions& options) {
  return attribute_errors("solve_triangular", [&] {
    const System s = system_of("solve_triangular", a, b);
    return finished(
        s, ops::triangular_solve(
               s.a, s.b, {.lower = options.lower, .transposed = options.transposed, .unit = options.unit_diagonal}));
  });
}
Tensor cholesky_solve(const Operand& l, const Operand& b) {
  return attribute_errors("cholesky_solve", [&] {
    const System s = system_of("cholesky_solve", l, b, "l");
    const Tensor y = ops::triangular_solve(s.a, s.b, {.lower = true});
    return finished(s, ops::triangular_solve(s.a, y, {.lower = true, .transposed = true}));
  });
}
Tensor inv(const Operand& x) {
  return of_array("inv", x, [](const Tensor& given) {
    const Tensor t = square_matrices("inv", given);
    return ops::solve(t, ops::identity_like(t));
  });
}
Tensor pinv(const Operand& x, Scalar rtol) {
  return of_array("pinv", x, [&](const Tensor& t) {
    check_matrices("pinv", t);
    const ops::Svd f = ops::svd(t);
    const Tensor counts = ops::greater(f.s, cutoff("pinv", t, f.s, rtol));
    const Tensor one = ops::number_like(1, f.s);
    const Tensor inverse = ops::where(counts, one / ops::where(counts, f.s, one), ops::number_like(0, f.s));
    return ops::matmul(ops::transposed(f.vh), ops::expand_dims(inverse, -1) * ops::transposed(f.u));
  });
}
Tensor det(const Operand& x) {
  return of_array("det", x, [](const Tensor& t) {
    const ops::SignLogDet d = ops::slogdet(t);
    return d.sign * ops::exp(d.logabsdet);
  });
}
SlogdetResult slogdet(const Operand& x) {
  return of_array("slogdet", x, [](const Tensor& t) {
    const ops::SignLogDet d = ops::slogdet(t);
    return SlogdetResult{d.sign, d.logabsdet};
  });
}
Tensor cholesky(const Operand& x, bool upper) {
  return of_array("cholesky", x, [&](const Tensor& given) {
    const Tensor t = square_matrices("cholesky", given);
    return upper ? ops::transposed(ops::cholesky(ops::transposed(t))) : ops::cholesky(t);
  });
}
LuResult lu_factor(const Operand& x) {
  return of_array("lu_factor", x, [](const Tensor& t) {
    const ops::Lu f = ops::lu(t);
    return LuResult{f.lu, f.rows};
  });
}
QrResult qr(const Operand& x, Name mode) {
  return of_array("qr", x, [&](const Tensor& t) {
    const std::string which(mode.data() ? mode.data() : "", mode.size());
    if (which != "reduced" && which != "complete")
      fail<ValueError>({"qr", "mode"}, "is '", which, "'", kExpected, "it must be 'reduced' or 'complete'");
    const ops::Qr f = ops::qr(t, which == "complete");
    return QrResult{f.q, f.r};
  });
}
SvdResult svd(const Operand& x, bool full_matrices) {
  return of_array("svd", x, [&](const Tensor& t) {
    const ops::Svd f = ops::svd(t, full_matrices);
    return SvdResult{f.u, f.s, f.vh};
  });
}
Tensor svdvals(const Operand& x) {
  return of_array("svdvals", x, [](const Tensor& t) { return ops::svdvals(t); });
}
EighResult eigh(const Operand& x) {
  return of_array("eigh", x, [](const Tensor& t) {
    const ops::Eigh f = ops::eigh(t);
    return EighResult{f.w, f.v};
  });
}
Tensor eigvalsh(const Operand& x) {
  return of_array("eigvalsh", x, [](const Tensor& t) { return ops::eigvalsh(t); });
}
EigResult eig(const Operand& x) {
  return of_array("eig", x, [](const Tensor& t) {
    const ops::Eig f = ops::eig(t);
    return EigResult{f.w_real, f.w_imaginary, f.v_real, f.v_imaginary};
  });
}
/// The solution in the least squares sense, where the singular values count that are above `least` of a and them.
template <class F>
static LstsqResult least_squares(const System& s, F&& least) {
  const ops::Svd f = ops::svd(s.a);
  const Tensor counts = ops::greater(f.s, least(s.a, f.s));
  const Tensor one = ops::number_like(1, f.s);
  const Tensor inverse = ops::where(counts, one / ops::where(counts, f.s, one), ops::number_like(0, f.s));
  const Tensor x =
      ops::matmul(ops::transposed(f.vh), ops::expand_dims(inverse, -1) * ops::matmul(f.u, s.b, true, false));
  const Tensor residuals = ops::sum(ops::square(ops::matmul(s.a, x) - s.b), -2);
  return LstsqResult{finished(s, x), finished(s, residuals), ops::sum(ops::cast(counts, int64), -1), f.s};
}
LstsqResult lstsq(const Operand& a, const Operand& b, Scalar rtol) {
  return attribute_errors("lstsq", [&] {
    return least_squares(system_of("lstsq", a, b),
                         [&](const Tensor& x, const Tensor& s) { return cutoff("lstsq", x, s, rtol); });
  });
}
LstsqResult lstsq_above(const Tensor& a, const Tensor& b, const Tensor& least) {
  return attribute_errors("lstsq", [&] {
    return least_squares(system_of("lstsq", a, b), [&](const Tensor&, const Tensor& s) {
      return ops::max(s, -1, /*keepdims=*/true) * ops::cast(least, s.dtype()).to(s.device());
    });
  });
}
Tensor matrix_rank(const Operand& x, Scalar rtol) {
  return of_array("matrix_rank", x, [&](const Tensor& t) {
    check_matrices("matrix_rank", t);
    const Tensor s = ops::svdvals(t);
    return ops::sum(ops::cast(ops::greater(s, cutoff("matrix_rank", t, s, rtol)), int64), -1);
  });
}
Tensor matrix_power(const Operand& x, int n) {
  return of_array("matrix_power", x, [&](Tensor t) {
    t = square_matrices("matrix_power", t);
    if (n < 0) t = ops::solve(t, ops::identity_like(t));
    Tensor power;
    for (unsigned left = n < 0 ? 0u - static_cast<unsigned>(n) : static_cast<unsigned>(n); left; left >>= 1) {
      if (left & 1) power = power.defined() ? ops::matmul(power, t) : t;
      if (left > 1) t = ops::matmul(t, t);
    }
    return power.defined() ? power : ops::identity_like(t);
  });
}
Tensor multi_dot(const Tensors& x) {
  return attribute_errors("multi_dot", [&] {
    if (x.size() < 2)
      fail<ValueError>({"multi_dot", "x"}, "lists ", x.size(), " tensors", kExpected, "there must be two or more");
    if (x.size() > 40)
      fail<ValueError>({"multi_dot", "x"}, "lists ", x.size(), " tensors", kExpected, "there may be 40 at most");
    std::string subscripts, first, last;
    for (std::int64_t i = 0; i < x.size(); ++i) {
      if (!x[i].defined()) fail_empty({"multi_dot", "x"});
      const int rank = known_rank(x[i], {"multi_dot", "x"});
      const bool end = i == 0 || i == x.size() - 1;
      if (rank != 2 && !(end && rank == 1))
        fail<ValueError>({"multi_dot", "x"}, "holds a tensor of shape ", x[i].shape(), kExpected,
                         "they must be matrices, the ends may be vectors");
      auto letter = [](std::int64_t k) { return static_cast<char>(k < 26 ? 'a' + k : 'A' + (k - 26)); };
      if (i) subscripts += ',';
      if (rank == 2 || i == x.size() - 1) subscripts += letter(i);
      if (rank == 2 || i == 0) subscripts += letter(i + 1);
      if (i == 0 && rank == 2) first = letter(0);
      if (i == x.size() - 1 && rank == 2) last = letter(i + 1);
    }
    return einsum(subscripts + "->" + first + last, x);
  });
}
Tensor norm(const Operand& x, const NormOptions& options) {
  return of_array("norm", x, [&](const Tensor& t) {
    const int rank = known_rank(t, {"norm", "x"});
    if (options.axis.size_ < 0 && (options.ord.is_none() || rank == 1))
      return vector_norm_of("norm", t, options.ord, None, options.keepdims);
    const std::vector<int> axes = places_of({"norm", "axis"}, options.axis, rank);
    if (axes.size() == 1) return vector_norm_of("norm", t, options.ord, axes, options.keepdims);
    if (axes.size() == 2) return matrix_norm_of("norm", t, options.ord, axes[0], axes[1], options.keepdims);
    fail<ValueError>({"norm", "axis"}, "lists ", axes.size(), " axes", kExpected, "a vector has one, a matrix two");
  });
}
Tensor vector_norm(const Operand& x, const NormOptions& options) {
  return of_array("vector_norm", x, [&](const Tensor& t) {
    return vector_norm_of("vector_norm", t, options.ord, options.axis, options.keepdims);
  });
}
Tensor matrix_norm(const Operand& x, const NormOptions& options) {
  return of_array("matrix_norm", x, [&](const Tensor& t) {
    check_matrices("matrix_norm", t);
    const int rank = Access::desc(t).rank;
    return matrix_norm_of("matrix_norm", t, options.ord, rank - 2, rank - 1, options.keepdims);
  });
}
Tensor cond(const Operand& x) {
  return of_array("cond", x, [](const Tensor& t) {
    check_matrices("cond", t);
    const Tensor s = ops::svdvals(t);
    return ops::max(s, -1) / ops::min(s, -1);
  });
}

}  // namespace linalg
}  // namespace numpy
}  // namespace kassette
