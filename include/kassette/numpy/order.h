// include/kassette/numpy/order.h - sorting, and search in what is sorted, as NumPy has them.
#ifndef KASSETTE_NUMPY_ORDER_H
#define KASSETTE_NUMPY_ORDER_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// NaN comes last, in descending order too. Equal elements keep their order, whatever `stable` says. Positions are
// int64, and have no gradient.

/// The arguments of sorts: one axis, or None for the flattened tensor.
struct SortOptions {
  Named only_by_name{0};
  Axes axis = -1;
  bool descending = false;
  bool stable = true;
};
/// The elements in ascending or descending order along an axis.
template <int = 0>
KASSETTE_API Tensor sort(const Operand& x, const Axes& axis = -1);
KASSETTE_API Tensor sort(const Operand& x, const SortOptions& options);
/// The positions in x of the sorted elements.
template <int = 0>
KASSETTE_API Tensor argsort(const Operand& x, const Axes& axis = -1);
KASSETTE_API Tensor argsort(const Operand& x, const SortOptions& options);
/// The positions that sort by several keys of one shape along an axis, of which the last one comes first.
KASSETTE_API Tensor lexsort(const Tensors& keys, int axis = -1);
/// The elements in an order in which element kth, or each of a list, is where the sorted tensor has it, and no smaller
/// one comes after it; and their positions. All elements are sorted. Throws ValueError if kth is known to be out of
/// range.
KASSETTE_API Tensor partition(const Operand& x, const Axes& kth, const Axes& axis = -1);
KASSETTE_API Tensor argpartition(const Operand& x, const Axes& kth, const Axes& axis = -1);

/// The result of top_k.
struct TopK {
  Tensor values, indices;
};
/// The k largest elements along an axis in descending order, and their positions. NaN counts as the smallest.
KASSETTE_API TopK top_k(const Operand& x, std::int64_t k, int axis = -1);

/// The arguments of searchsorted: `sorter` are indices that sort a, if it is not sorted.
struct SearchOptions {
  Named only_by_name{0};
  Name side = "left";
  Tensor sorter = None;
};
/// Where the elements of v would be inserted in the ascending vector a: in front of equal elements (side "left") or
/// behind them ("right"). For a of more axes: the last one is searched for v with the same other axes.
template <int = 0>
KASSETTE_API Tensor searchsorted(const Operand& a, const Operand& v, Name side = "left");
KASSETTE_API Tensor searchsorted(const Operand& a, const Operand& v, const SearchOptions& options);
/// The arguments of digitize: whether a bin includes its right edge in place of its left one.
struct DigitizeOptions {
  Named only_by_name{0};
  bool right = false;
};
/// The number of the bin of each element: i for bins[i - 1] <= x < bins[i]. `bins` is a vector in ascending or in
/// descending order, which is not checked.
KASSETTE_API Tensor digitize(const Operand& x, const Operand& bins, const DigitizeOptions& options = {});

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_ORDER_H
