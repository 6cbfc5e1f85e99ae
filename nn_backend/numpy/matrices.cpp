// nn_backend/numpy/matrices.cpp - np::linalg: functions of matrices, systems of equations as tensors, and matrices that
// are made of others.
#include <kassette/numpy/linalg.h>
#include <kassette/numpy/selection.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/linalg.h"
#include "nn_backend/numpy/numbers.h"
#include "ops/engine/stop.h"
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

/// How often x is halved so that Pade's approximant of order 13 is exact to the last digit, as (..., 1, 1). Frobenius'
/// norm bounds the one for which Higham (2005), table 2.3, gives the number, and is 0 for no elements.
Tensor halvings(const Tensor& x) {
  const Tensor norm = ops::sqrt(ops::sum(ops::square(ops::stop_gradient(x)), {-2, -1}, /*keepdims=*/true));
  return ops::maximum(ops::ceil(ops::log2(norm / 5.371920351148152)), 0.0);
}
/// Pade's approximant of order 13 of e^a.
Tensor approximant(const Tensor& a) {
  // The coefficients, each divided by the first, 64764752532480000, so that float32 holds what is made of them.
  constexpr double kFirst = 64764752532480000;
  constexpr double b[] = {1,
                          32382376266240000 / kFirst,
                          7771770303897600 / kFirst,
                          1187353796428800 / kFirst,
                          129060195264000 / kFirst,
                          10559470521600 / kFirst,
                          670442572800 / kFirst,
                          33522128640 / kFirst,
                          1323241920 / kFirst,
                          40840800 / kFirst,
                          960960 / kFirst,
                          16380 / kFirst,
                          182 / kFirst,
                          1 / kFirst};
  const Tensor one = ops::identity_like(a), a2 = ops::matmul(a, a), a4 = ops::matmul(a2, a2), a6 = ops::matmul(a4, a2);
  auto sum = [&](int i) { return a6 * b[i + 6] + a4 * b[i + 4] + a2 * b[i + 2] + one * b[i]; };
  auto upper = [&](int i) { return ops::matmul(a6, a6 * b[i + 12] + a4 * b[i + 10] + a2 * b[i + 8]); };
  const Tensor odd = ops::matmul(a, upper(1) + sum(1)), even = upper(0) + sum(0);
  return ops::solve(even - odd, even + odd);
}
Tensor exponential(const Tensor& x) {
  const int digits = x.dtype() == float64 ? 53 : 24;
  const Tensor s = halvings(x);
  int most = digits;
  if (!s.symbolic()) {
    const double largest = largest_of(ops::where(ops::equal(s, s), s, ops::number_like(0, s)));
    most = static_cast<int>(std::min<double>(largest, digits));
  }
  Tensor y = approximant(x * ops::exp2(-s));
  for (int i = 0; i < most; ++i) y = ops::where(ops::less(ops::number_like(i, s), s), ops::matmul(y, y), y);
  return ops::where(ops::greater(s, digits), ops::number_like(NAN, y), y);
}

/// x as a matrix: the axes before `from` are one, and those from there on the other.
Tensor as_matrix(const Tensor& x, int from) {
  Tensor flat = ops::flatten(x, from);
  if (from == 1) return flat;
  // A -1 could not be inferred without elements.
  Tensor rows = ops::scalar_tensor(1, int64);
  std::int64_t known = 1;
  for (int i = 0; i < from; ++i) {
    const std::int64_t n = Access::desc(x).dims[i];
    known = known < 0 || n < 0 ? -1 : known * n;
  }
  for (int i = 0; known < 0 && i < from; ++i) rows = rows * size_along(x, i);
  SizesOf shape;
  if (known < 0) shape.push(rows);
  else shape.push(known);
  shape.push_size(flat, from);
  return ops::reshape(flat, shape);
}
/// x, whose axes before `from` must have as many elements as the others.
Tensor with_as_many(const char* what, const char* name, const Tensor& x, int from) {
  return ops::checked(x, [=](const TensorSpec& d) {
    std::int64_t sizes[] = {1, 1};
    for (int i = 0; i < d.rank; ++i) {
      std::int64_t& size = sizes[i >= from];
      size = size < 0 || d.dims[i] < 0 ? -1 : size * d.dims[i];
    }
    if (differ(sizes[0], sizes[1]))
      fail<ValueError>({what, name}, "of shape ", d, kExpected, "its first ", from,
                       " axes must have as many elements as the others");
  });
}

}  // namespace

Tensor logdet(const Operand& x) {
  return of_array("logdet", x, [](const Tensor& t) {
    const ops::SignLogDet d = ops::slogdet(t);
    return ops::where(ops::less(d.sign, 0), ops::number_like(NAN, d.logabsdet), d.logabsdet);
  });
}
LuMatrices lu(const Operand& x) {
  return of_array("lu", x, [](const Tensor& given) {
    const At at{"lu", "x"};
    check_float(given, at);
    const int rank = known_rank(given, at), i = rank - 2, j = rank - 1;
    if (rank < 2) fail<ValueError>(at, "of shape ", given.shape(), kExpected, "it must have matrices in its last axes");
    const bool known = Access::desc(given).dims[i] >= 0 && Access::desc(given).dims[j] >= 0;
    // Sizes that are not known are taken to be equal.
    const Tensor t = known ? given : ops::checked(given, [at](const TensorSpec& s) {
      if (s.rank >= 2 && differ(s.dims[s.rank - 2], s.dims[s.rank - 1]))
        fail<ValueError>(at, "of shape ", s, kExpected,
                         "the sizes of matrices must be known when a function is made, unless they are square");
    });
    const TensorDesc& d = Access::desc(t);
    const std::int64_t m = known ? d.dims[i] : 0, n = known ? d.dims[j] : 0;
    // As square matrices: zeros behind the others are not exchanged.
    ops::Pads zeros{.rank = rank};
    zeros.after[i] = std::max<std::int64_t>(0, n - m);
    zeros.after[j] = std::max<std::int64_t>(0, m - n);
    const ops::Lu f = ops::lu(m == n ? t : ops::pad(t, zeros));
    auto part = [&](const Tensor& y, std::int64_t rows, std::int64_t columns) {
      return m == n ? y : slice_along(slice_along(y, i, 0, rows), j, 0, columns);
    };
    // Row rows[i] of x is row i of l u.
    const Tensor row = ops::expand_dims(places_along(t, i), 1), rows = m == n ? f.rows : slice_along(f.rows, i, 0, m);
    const Tensor p = ops::cast(ops::equal(row, ops::expand_dims(rows, i)), t.dtype());
    const Tensor l = tril(f.lu, -1) + ops::identity_like(f.lu);
    return LuMatrices{p, part(l, m, std::min(m, n)), part(triu(f.lu), std::min(m, n), n)};
  });
}
EigvalsResult eigvals(const Operand& x) {
  return of_array("eigvals", x, [](const Tensor& t) {
    const ops::Eig f = ops::eig(t);
    return EigvalsResult{f.w_real, f.w_imaginary};
  });
}
Tensor matrix_exp(const Operand& x) {
  return of_array("matrix_exp", x, [](const Tensor& given) {
    const Tensor t = square_matrices("matrix_exp", given);
    if (t.dtype() == float64 || t.dtype() == float32) return exponential(t);
    return ops::cast(exponential(ops::cast(t, float32)), t.dtype());
  });
}

Tensor tensorsolve(const Operand& a, const Operand& b, const Axes& axes) {
  return attribute_errors("tensorsolve", [&] {
    const Tensors in = promoted_tensors("tensorsolve", {{"a", a}, {"b", b}});
    check_float(in[0], {"tensorsolve", "a"});
    Tensor left = in[0];
    const int rank = known_rank(left, {"tensorsolve", "a"}), rows = known_rank(in[1], {"tensorsolve", "b"});
    if (axes.size_ > 0) {
      const std::vector<int> moved = places_of({"tensorsolve", "axes"}, axes, rank);
      std::vector<int> order;
      for (int i = 0; i < rank; ++i)
        if (std::find(moved.begin(), moved.end(), i) == moved.end()) order.push_back(i);
      order.insert(order.end(), moved.begin(), moved.end());
      left = ops::permute(left, order);
    }
    if (rank < rows)
      fail<ValueError>({"tensorsolve", "a"}, "has fewer axes than b", kExpected, "its first are those of b");
    left = with_as_many("tensorsolve", "a", left, rows);
    SizesOf shape;
    for (int i = rows; i < rank; ++i) shape.push_size(left, i);
    const Tensor right = ops::expand_dims(ops::flatten(in[1], 0), 1);
    return ops::reshape(ops::solve(as_matrix(left, rows), right), shape);
  });
}
Tensor tensorinv(const Operand& x, int ind) {
  return of_array("tensorinv", x, [&](const Tensor& t) {
    const int rank = known_rank(t, {"tensorinv", "x"});
    check_float(t, {"tensorinv", "x"});
    if (ind < 1 || ind > rank)
      fail<ValueError>({"tensorinv", "ind"}, "is ", ind, kExpected, "x has ", rank, " axes, of which it counts some");
    const Tensor matrix = as_matrix(with_as_many("tensorinv", "x", t, ind), ind);
    SizesOf shape;
    for (int i = 0; i < rank; ++i) shape.push_size(t, (i + ind) % rank);
    return ops::reshape(ops::solve(matrix, ops::identity_like(matrix)), shape);
  });
}

Tensor toeplitz(const Operand& c, const Operand& r) {
  return attribute_errors("toeplitz", [&] {
    const bool symmetric = r.is_none();
    const Tensors in = promoted_tensors("toeplitz", {{"c", c}, {"r", symmetric ? c : r}});
    const char* names[] = {"c", "r"};
    for (int i = 0; i < 2; ++i)
      if (known_rank(in[i], {"toeplitz", names[i]}) != 1)
        fail<ValueError>({"toeplitz", names[i]}, "of shape ", in[i].shape(), kExpected, "it must be a vector");
    // c from its end, then r: element (i, j) is j - i places behind c[0].
    const Tensor all = ops::concatenate({ops::reverse(in[0], 0), slice_along(in[1], 0, 1, None)}, 0);
    const Tensor row = ops::expand_dims(places_along(in[0], 0), 1), column = places_along(in[1], 0);
    const Tensor last = (size_along(in[0], 0) - 1).to(all.device());
    return ops::gather(all, column - row + last);
  });
}
Tensor block_diag(const Tensors& x) {
  return attribute_errors("block_diag", [&] {
    Tensors blocks = of_one_dtype("block_diag", x);
    for (std::int64_t i = 0; i < blocks.size(); ++i) {
      const int rank = known_rank(blocks[i], {"block_diag", "x"});
      if (rank > 2)
        fail<ValueError>({"block_diag", "x"}, "holds a tensor of shape ", x[i].shape(), kExpected,
                         "they must be matrices");
      check_device(blocks[i], blocks[0], {"block_diag", "x"});
      for (int k = rank; k < 2; ++k) blocks[i] = ops::expand_dims(blocks[i], 0);
    }
    Tensors lines;
    for (std::int64_t i = 0; i < blocks.size(); ++i) {
      Tensors line;
      for (std::int64_t k = 0; k < blocks.size(); ++k) {
        SizesOf shape;
        shape.push_size(blocks[i], 0);
        shape.push_size(blocks[k], 1);
        line.push_back(i == k ? blocks[i] : ops::broadcast_to(ops::number_like(0, blocks[i]), shape));
      }
      lines.push_back(ops::concatenate(line, 1));
    }
    return ops::concatenate(lines, 0);
  });
}

}  // namespace linalg
}  // namespace numpy
}  // namespace kassette
