// ops/shape/expression.h - the indices of x(i, j, ...), parsed.
#pragma once
#include "ops/shape/positions.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {

/// The parsed indices. A tensor among them is a whole slice of `list` for each axis that it indexes; a mask without
/// axes is a new axis.
struct Expression {
  struct Selector {
    Tensor index;  // integers, or a mask
    int part, parts;
    bool mask() const { return Access::desc(index).dtype == bool_; }
  };
  Ref<IndexList> list = Ref<IndexList>::adopt(new IndexList);
  Selector tensors[kMaxRank];
  int n_tensors = 0;
  int arrays = 0, array = -1;  // how many of the tensors are not scalars, as far as is known, and the last of these

  void add(const Index& i);
  /// Which tensor a part belongs to, or -1.
  int tensor_of(int part) const;
  /// The place of the ellipsis, or the number of parts.
  int ellipsis() const;
  /// How many axes of x the parts [begin, end) take.
  int axes_taken(int begin, int end) const;
  /// How many of the parts [begin, end) have an axis in the result, besides those of arrays.
  int kept_axes(int begin, int end) const;
  /// NumPy's condition for putting the axes of arrays first: something other than integers and tensors stands between
  /// two of these.
  bool separated() const;

 private:
  void add_tensor(const Tensor& t);
};

/// The elements of x that an expression selects.
Tensor evaluate(const Tensor& x, const Expression& e);
/// The positions of these elements, for an x of known rank: of all parts of the expression.
struct Placed {
  Tensor positions;
  int axis, joined;  // as gather takes them
};
Placed place(const Tensor& x, const Expression& e);

}  // namespace kassette::ops
