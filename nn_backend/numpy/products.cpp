// nn_backend/numpy/products.cpp - NumPy's products of matrices, vectors and tensors.
#include <kassette/numpy/products.h>

#include <kassette/numpy/linalg.h>

#include <numeric>

#include "core/rank.h"
#include "core/text.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/labels.h"
#include "ops/engine/dims.h"
#include "ops/product/contraction.h"
#include "ops/product/distance.h"
#include "ops/product/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/checked.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// Two promoted arguments as tensors of known rank.
struct Two {
  Two(const char* what, const Operand& a, const Operand& b) {
    const Pair pair(a, b, what);
    const DType own = own_dtype(pair.x()), weak = own.given() ? own : own_dtype(pair.y());
    x = ArrayArg(pair.x(), {what, "x"}, weak);
    y = ArrayArg(pair.y(), {what, "y"}, weak);
    rank_x = known_rank(x, {what, "x"});
    rank_y = known_rank(y, {what, "y"});
    if (!rank_x || !rank_y) return;
    if (ops::is_tensor_operand(a)) y = beside(x, b, y, {what, "y"});
    else x = beside(y, a, x, {what, "x"});
  }
  Tensor x, y;
  int rank_x, rank_y;
};
template <class F>
Tensor of_two(const char* what, const Operand& x, const Operand& y, F&& f) {
  return attribute_errors(what, [&] {
    const Two two(what, x, y);
    return f(two);
  });
}
LabelList counting(int from, int n) {
  LabelList labels(static_cast<std::size_t>(n));
  std::iota(labels.begin(), labels.end(), from);
  return labels;
}
/// x, whose axis i must have the size of axis j of y: they are summed over together.
Tensor fitting(const char* what, const Tensor& x, int i, const Tensor& y, int j) {
  return ops::checked(x, y, [=](const TensorSpec& a, const TensorSpec& b) {
    if (a.rank >= 0 && b.rank >= 0 && differ(a.dims[i], b.dims[j]))
      fail<ValueError>({what}, a, " x ", b, ": axis ", i, " of x and axis ", j, " of y differ in size");
  });
}
/// The product summed over these axes of x and of y; the result has the other axes of x, then those of y.
Tensor summed(const char* what, const Tensor& x, const std::vector<int>& x_axes, const Tensor& y,
              const std::vector<int>& y_axes) {
  Labelled a{x, counting(0, Access::desc(x).rank)}, b{y, counting(100, Access::desc(y).rank)};
  for (std::size_t k = 0; k < x_axes.size(); ++k) {
    a.tensor = fitting(what, a.tensor, x_axes[k], y, y_axes[k]);
    b.labels[static_cast<std::size_t>(y_axes[k])] = x_axes[k];
  }
  LabelList out;
  for (int label : a.labels)
    if (!has(b.labels, label)) out.push_back(label);
  for (int label : b.labels)
    if (!has(a.labels, label)) out.push_back(label);
  (void)checked_rank(what, static_cast<std::int64_t>(out.size()), x.shape(), " x ", y.shape());
  return contract(a, b, out);
}

}  // namespace

Tensor contract(const Labelled& a, const Labelled& b, const LabelList& out) {
  const bool sums = std::any_of(a.labels.begin(), a.labels.end(), [&](int label) { return !has(out, label); });
  if (!sums) {  // an elementwise product of tensors that broadcast
    auto spread = [&](const Labelled& x) {
      std::vector<int> order;
      for (int label : out)
        if (has(x.labels, label))
          order.push_back(static_cast<int>(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin()));
      Tensor t = ops::permute(x.tensor, order);
      for (std::size_t i = 0; i < out.size(); ++i)
        if (!has(x.labels, out[i])) t = ops::expand_dims(t, static_cast<int>(i));
      return t;
    };
    return spread(a) * spread(b);
  }
  ops::ContractionForm form;
  LabelList known;
  auto number = [&](int label) {
    if (!has(known, label)) known.push_back(label);
    return static_cast<int>(std::find(known.begin(), known.end(), label) - known.begin());
  };
  for (int label : a.labels) form.a.push(number(label));
  for (int label : b.labels) form.b.push(number(label));
  for (int label : out) form.out.push(number(label));
  if (known.size() >= ops::kNewAxis)
    fail<ValueError>({"contract"}, known.size(), " labels in a product of two tensors", kExpected, "at most ",
                     ops::kNewAxis - 1);
  return ops::apply1(ops::matmul_op, form, {a.tensor, b.tensor});
}

Tensor matmul(const Operand& x, const Operand& y) {
  return of_two("matmul", x, y, [](const Two& two) {
    const int rx = two.rank_x, ry = two.rank_y;
    if (rx == 0 || ry == 0)
      fail<ValueError>({"matmul"}, two.x.shape(), " x ", two.y.shape(), kExpected, "both must have at least one axis",
                       kRemedy, "use multiply for a number");
    if (rx >= 2 && ry >= 2) return ops::matmul(two.x, two.y);
    // A vector: the labels of batches count from the right, then come the row, the sum and the column.
    constexpr int kRow = 20, kSum = 21, kColumn = 22;
    auto labels = [](int rank, int last_but_one, int last) {
      LabelList of;
      for (int i = rank; i-- > 2;) of.push_back(i - 2);
      if (rank >= 2) of.push_back(last_but_one);
      of.push_back(last);
      return of;
    };
    const Tensor left = fitting("matmul", two.x, rx - 1, two.y, std::max(0, ry - 2));
    const Labelled a{left, labels(rx, kRow, kSum)}, b{two.y, ry == 1 ? LabelList{kSum} : labels(ry, kSum, kColumn)};
    LabelList out;
    for (const LabelList* of : {&a.labels, &b.labels})
      for (int label : *of)
        if (label != kSum) out.push_back(label);
    return contract(a, b, out);
  });
}
Tensor dot(const Operand& x, const Operand& y) {
  return of_two("dot", x, y, [](const Two& two) {
    return two.rank_x == 0 || two.rank_y == 0 ? two.x * two.y : ops::dot(two.x, two.y);
  });
}
Tensor vdot(const Operand& x, const Operand& y) {
  return of_two("vdot", x, y, [](const Two& two) {
    return summed("vdot", ops::flatten(two.x, 0), {0}, ops::flatten(two.y, 0), {0});
  });
}
Tensor vecdot(const Operand& x, const Operand& y, int axis) {
  return of_two("vecdot", x, y, [&](const Two& two) {
    const int i = place_axis("vecdot", axis, Access::desc(two.x)), j = place_axis("vecdot", axis, Access::desc(two.y));
    return ops::sum(fitting("vecdot", two.x, i, two.y, j) * two.y,
                    axis < 0 ? axis : axis - std::max(two.rank_x, two.rank_y));
  });
}
Tensor inner(const Operand& x, const Operand& y) {
  return of_two("inner", x, y, [](const Two& two) {
    if (two.rank_x == 0 || two.rank_y == 0) return two.x * two.y;
    return summed("inner", two.x, {two.rank_x - 1}, two.y, {two.rank_y - 1});
  });
}
Tensor outer(const Operand& x, const Operand& y) {
  return of_two("outer", x, y,
                [](const Two& two) { return ops::expand_dims(ops::flatten(two.x, 0), 1) * ops::flatten(two.y, 0); });
}
Tensor tensordot(const Operand& x, const Operand& y, int axes) {
  return of_two("tensordot", x, y, [&](const Two& two) {
    if (axes < 0 || axes > std::min(two.rank_x, two.rank_y))
      fail<ValueError>({"tensordot", "axes"}, "is ", axes, ", and the ranks are ", two.rank_x, " and ", two.rank_y,
                       kExpected, "it must be from 0 to the smaller rank");
    return summed("tensordot", two.x, counting(two.rank_x - axes, axes), two.y, counting(0, axes));
  });
}
Tensor tensordot(const Operand& x, const Operand& y, const Axes& x_axes, const Axes& y_axes) {
  return of_two("tensordot", x, y, [&](const Two& two) {
    const std::vector<int> a = places_of({"tensordot", "x_axes"}, x_axes, two.rank_x),
                           b = places_of({"tensordot", "y_axes"}, y_axes, two.rank_y);
    if (a.size() != b.size())
      fail<ValueError>({"tensordot", "y_axes"}, "lists ", b.size(), " axes, and x_axes ", a.size(), kExpected,
                       "both must be equally long");
    return summed("tensordot", two.x, a, two.y, b);
  });
}
Tensor kron(const Operand& x, const Operand& y) {
  return of_two("kron", x, y, [](const Two& two) {
    const int rank = std::max(two.rank_x, two.rank_y);
    (void)checked_rank("kron", 2 * rank, two.x.shape(), " x ", two.y.shape());
    Tensor a = two.x, b = two.y;
    for (int i = two.rank_x; i < rank; ++i) a = ops::expand_dims(a, 0);
    for (int i = two.rank_y; i < rank; ++i) b = ops::expand_dims(b, 0);
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < rank; ++i) sizes.push_back(known_size(a, i, {"kron", "x"}) * known_size(b, i, {"kron", "y"}));
    for (int i = 0; i < rank; ++i) {
      a = ops::expand_dims(a, 2 * i + 1);
      b = ops::expand_dims(b, 2 * i);
    }
    return ops::reshape(a * b, sizes);
  });
}
Tensor cross(const Operand& x, const Operand& y, int axis) {
  return of_two("cross", x, y, [&](const Two& two) {
    const int i = place_axis("cross", axis, Access::desc(two.x)), j = place_axis("cross", axis, Access::desc(two.y));
    const Tensor left = ops::checked(two.x, two.y, [=](const TensorSpec& a, const TensorSpec& b) {
      for (std::int64_t n : {a.rank < 0 ? 3 : a.dims[i], b.rank < 0 ? 3 : b.dims[j]})
        if (differ(n, 3))
          fail<ValueError>({"cross"}, a, " x ", b, ": axis ", axis, " has size ", n, kExpected,
                           "vectors must have three elements");
    });
    const Device device = left.device();
    const Tensor next = ops::as_tensor({1, 2, 0}, int64, "cross").to(device),
                 after = ops::as_tensor({2, 0, 1}, int64, "cross").to(device);
    return ops::gather(left, next, i) * ops::gather(two.y, after, j) -
           ops::gather(left, after, i) * ops::gather(two.y, next, j);
  });
}
Tensor cdist(const Operand& x, const Operand& y, double p) {
  return of_two("cdist", x, y, [&](const Two& two) {
    if (!(p > 0)) fail<ValueError>({"cdist", "p"}, "is ", p, kExpected, "it must be above 0");
    if (p == 2) return ops::cdist(two.x, two.y);
    const Tensor rows = ops::checked(two.x, two.y, ops::check_rows);  // which would broadcast
    return linalg::vector_norm(ops::expand_dims(rows, -2) - ops::expand_dims(two.y, -3), {.ord = p, .axis = -1});
  });
}
Tensor trace(const Operand& x, int offset, int axis1, int axis2) {
  return attribute_errors("trace", [&] {
    const ArrayArg array(x, {"trace", "x"});
    const Tensor& t = array.tensor();
    const std::vector<int> axes = places_of({"trace", "axis1"}, {axis1, axis2}, known_rank(t, {"trace", "x"}));
    return ops::sum(ops::cast(diagonal_of(t, axes[0], axes[1], offset), widest(t.dtype())), -1);
  });
}

}  // namespace numpy
}  // namespace kassette
