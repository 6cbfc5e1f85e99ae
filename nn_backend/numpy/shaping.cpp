// nn_backend/numpy/shaping.cpp - NumPy's functions on shapes: joining, splitting, moving, repeating.
#include <kassette/numpy/shaping.h>

#include <algorithm>
#include <numeric>

#include "core/rank.h"
#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/engine/dims.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/checked.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

int rank_of(const char* what, const Tensor& x) { return known_rank(x, {what, "x"}); }

/// x with its axes in another order.
Tensor permuted(const Tensor& x, const std::vector<int>& order) {
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int>(i)) return ops::permute(x, order);
  return x;
}
/// The order of the axes after those at `source` are brought to the places `destination`.
std::vector<int> moved(const std::vector<int>& source, const std::vector<int>& destination, int rank) {
  std::vector<int> order(static_cast<std::size_t>(rank), -1);
  for (std::size_t i = 0; i < source.size(); ++i) order[static_cast<std::size_t>(destination[i])] = source[i];
  int next = 0;
  for (int& axis : order) {
    if (axis >= 0) continue;
    while (std::find(source.begin(), source.end(), next) != source.end()) ++next;
    axis = next++;
  }
  return order;
}

/// Joins what f makes of each.
template <class F>
Tensor joined(const char* what, const Tensors& x, int axis, F&& f) {
  return attribute_errors(what, [&] {
    Tensors all = of_one_dtype(what, x);
    for (Tensor& t : all) t = f(t);
    return ops::concatenate(all, axis);
  });
}
/// x with at least one, or two axes, as atleast_1d and atleast_2d.
Tensor with_one(const Tensor& x, const char* what) { return rank_of(what, x) == 0 ? ops::expand_dims(x, 0) : x; }
Tensor with_two(const Tensor& x, const char* what) {
  const int rank = rank_of(what, x);
  return rank == 0 ? ops::expand_dims(ops::expand_dims(x, 0), 0) : rank == 1 ? ops::expand_dims(x, 0) : x;
}
Tensor with_three(const Tensor& x, const char* what) {
  const int rank = rank_of(what, x);
  if (rank == 1) return ops::expand_dims(ops::expand_dims(x, 0), 2);
  return rank >= 3 ? x : ops::expand_dims(with_two(x, what), 2);
}

/// The parts of x between these places of an axis.
Tensors parts_between(const Tensor& x, const std::vector<std::int64_t>& places, int axis) {
  Tensors parts;
  Scalar from = 0;
  for (std::int64_t at : places) {
    parts.push_back(slice_along(x, axis, from, at));
    from = at;
  }
  parts.push_back(slice_along(x, axis, from, None));
  return parts;
}
Tensors parts_at(const char* what, const Operand& x, const Operand& indices, int axis) {
  return of_array(what, x, [&](const Tensor& t) {
    const int at = place_axis(what, axis, (rank_of(what, t), Access::desc(t)));
    return parts_between(t, integers_of(indices, {what, "indices"}).values, at);
  });
}
/// `sections` parts; if they need not be equal, the first ones have one more.
Tensors sections_of(const char* what, const Operand& x, int sections, int axis, bool equal) {
  return of_array(what, x, [&](const Tensor& t) {
    const int at = place_axis(what, axis, (rank_of(what, t), Access::desc(t)));
    if (sections < 1) fail<ValueError>({what, "sections"}, "is ", sections, kExpected, "it must be at least 1");
    const std::int64_t n = known_size(t, at, {what, "x"}), each = n / sections, more = n % sections;
    if (equal && more)
      fail<ValueError>({what, "sections"}, "is ", sections, ", and axis ", axis, " of x of shape ", t.shape(),
                       " has size ", n, kExpected, "the size must be a multiple");
    std::vector<std::int64_t> places;
    for (int i = 1; i < sections; ++i) places.push_back(i * each + std::min<std::int64_t>(i, more));
    return parts_between(t, places, at);
  });
}

/// The places that an argument lists, from the front of an axis of n elements.
std::vector<std::int64_t> places_in(const Integers& index, std::int64_t n, std::int64_t last, const At& at) {
  std::vector<std::int64_t> places = index.values;
  for (std::int64_t& i : places) {
    if (i < -n || i > last) fail<ValueError>(at, "is ", i, kExpected, "the axis has ", n, " elements");
    if (i < 0) i += n;
  }
  return places;
}
/// The elements of an axis at these places, which are made on the host.
Tensor picked(const Tensor& x, const Tensor& places, int axis) {
  return ops::gather(x, x.device() == cpu ? places : places.to(x.device()), axis);
}
Tensor picked(const Tensor& x, const std::vector<std::int64_t>& places, int axis) {
  return picked(x, ops::as_tensor(places, int64, "constant"), axis);
}

/// Elements of an axis in runs, each from one place up to another.
class Runs {
 public:
  /// Appends what is not empty.
  void add(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    if (!runs_.empty() && runs_.back().second == begin) runs_.back().second = end;
    else runs_.emplace_back(begin, end);
  }
  /// A few slices, or a list of all places: that of an axis without elements beside it may be endless.
  Tensor of(const Tensor& x, int axis) const {
    constexpr std::size_t kSlices = 16;
    if (runs_.empty()) return slice_along(x, axis, 0, 0);
    if (runs_.size() <= kSlices) {
      Tensors parts;
      for (const auto& [begin, end] : runs_) parts.push_back(slice_along(x, axis, begin, end));
      return parts.size() == 1 ? parts[0] : ops::concatenate(parts, axis);
    }
    std::vector<std::int64_t> places;
    for (const auto& [begin, end] : runs_)
      for (std::int64_t i = begin; i < end; ++i) places.push_back(i);
    return picked(x, places, axis);
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> runs_;
};

/// x moved on by `shift` places along an axis of known or unknown size.
Tensor rolled(const Tensor& x, std::int64_t shift, int axis) {
  const std::int64_t n = Access::desc(x).dims[axis];
  if (n >= 0) {
    if (n == 0) return x;
    shift = ((shift % n) + n) % n;
    if (shift == 0) return x;
    return ops::concatenate({slice_along(x, axis, n - shift, None), slice_along(x, axis, 0, n - shift)}, axis);
  }
  const Tensor size = size_along(x, axis);
  return picked(x, (places_below(size, cpu) - shift) % ops::maximum(size, 1), axis);
}

}  // namespace

Tensor reshape(const Operand& x, const Dims& shape) {
  return of_array("reshape", x, [&](const Tensor& t) { return ops::reshape(t, shape); });
}
Tensor ravel(const Operand& x) {
  return of_array("ravel", x, [](const Tensor& t) { return ops::flatten(t, 0); });
}
Tensor permute_dims(const Operand& x, const Axes& axes) {
  return of_array("permute_dims", x,
                  [&](const Tensor& t) { return axes.size_ < 0 ? ops::transpose(t) : ops::permute(t, axes); });
}
Tensor matrix_transpose(const Operand& x) {
  return of_array("matrix_transpose", x, [](const Tensor& t) {
    const int rank = rank_of("matrix_transpose", t);
    if (rank < 2)
      fail<ValueError>({"matrix_transpose", "x"}, "of shape ", t.shape(), kExpected, "it must have two axes or more");
    return permuted(t, moved({rank - 1}, {rank - 2}, rank));
  });
}
Tensor swapaxes(const Operand& x, int axis1, int axis2) {
  return of_array("swapaxes", x, [&](const Tensor& t) {
    const int rank = rank_of("swapaxes", t);
    std::vector<int> order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[static_cast<std::size_t>(place_axis("swapaxes", axis1, Access::desc(t), 0, "axis1"))],
              order[static_cast<std::size_t>(place_axis("swapaxes", axis2, Access::desc(t), 0, "axis2"))]);
    return permuted(t, order);
  });
}
Tensor moveaxis(const Operand& x, const Axes& source, const Axes& destination) {
  return of_array("moveaxis", x, [&](const Tensor& t) {
    const int rank = rank_of("moveaxis", t);
    const std::vector<int> from = places_of({"moveaxis", "source"}, source, rank),
                           to = places_of({"moveaxis", "destination"}, destination, rank);
    if (from.size() != to.size())
      fail<ValueError>({"moveaxis", "destination"}, "lists ", to.size(), " axes and source ", from.size(), kExpected,
                       "both must be equally long");
    return permuted(t, moved(from, to, rank));
  });
}
Tensor squeeze(const Operand& x, const Axes& axis) {
  return of_array("squeeze", x, [&](Tensor t) {
    std::vector<int> axes = places_of({"squeeze", "axis"}, axis, rank_of("squeeze", t));
    if (axis.size_ < 0)
      axes.erase(std::remove_if(axes.begin(), axes.end(),
                                [&](int i) {
                                  return known_size(t, i, {"squeeze", "x"}) != 1;
                                }),
                 axes.end());
    std::sort(axes.rbegin(), axes.rend());
    for (int i : axes) t = ops::squeeze(t, i);
    return t;
  });
}
Tensor expand_dims(const Operand& x, const Axes& axis) {
  return of_array("expand_dims", x, [&](Tensor t) {
    if (axis.size_ == 1) return ops::expand_dims(t, axis.axes_[0]);
    if (axis.size_ < 0) fail<TypeError>({"expand_dims", "axis"}, "is None", kExpected, "it must list axes");
    check_length({"expand_dims", "axis"}, axis);
    const int rank = checked_rank("expand_dims", rank_of("expand_dims", t) + axis.size_);
    std::vector<int> axes = places_of({"expand_dims", "axis"}, axis, rank);
    std::sort(axes.begin(), axes.end());
    for (int i : axes) t = ops::expand_dims(t, i);
    return t;
  });
}
Tensor atleast_1d(const Operand& x) {
  return of_array("atleast_1d", x, [](const Tensor& t) { return with_one(t, "atleast_1d"); });
}
Tensor atleast_2d(const Operand& x) {
  return of_array("atleast_2d", x, [](const Tensor& t) { return with_two(t, "atleast_2d"); });
}
Tensor atleast_3d(const Operand& x) {
  return of_array("atleast_3d", x, [](const Tensor& t) { return with_three(t, "atleast_3d"); });
}

Tensor concatenate(const Tensors& x, const Axes& axis) {
  if (one_axis({"concatenate", "axis"}, axis).size_ < 0)
    return joined("concatenate", x, 0, [](const Tensor& t) { return ops::flatten(t, 0); });
  return joined("concatenate", x, axis.axes_[0], [](const Tensor& t) { return t; });
}
Tensor stack(const Tensors& x, int axis) {
  return attribute_errors("stack", [&] { return ops::stack(of_one_dtype("stack", x), axis); });
}
Tensor hstack(const Tensors& x) {
  const bool vectors = !x.empty() && x[0].defined() && Access::desc(x[0]).rank <= 1;
  return joined("hstack", x, vectors ? 0 : 1, [](const Tensor& t) { return with_one(t, "hstack"); });
}
Tensor vstack(const Tensors& x) {
  return joined("vstack", x, 0, [](const Tensor& t) { return with_two(t, "vstack"); });
}
Tensor dstack(const Tensors& x) {
  return joined("dstack", x, 2, [](const Tensor& t) { return with_three(t, "dstack"); });
}
Tensor column_stack(const Tensors& x) {
  return joined("column_stack", x, 1, [](const Tensor& t) {
    return rank_of("column_stack", t) < 2 ? ops::expand_dims(with_one(t, "column_stack"), 1) : t;
  });
}
Tensor block(std::initializer_list<Tensors> rows) {
  return attribute_errors("block", [&] {
    Tensors lines;
    int rank = 2;
    for (const Tensors& row : rows)
      for (const Tensor& t : row) {
        if (!t.defined()) fail_empty({"block", "rows"});
        rank = std::max(rank, known_rank(t, {"block", "rows"}));
      }
    for (const Tensors& row : rows)
      lines.push_back(joined("block", row, -1, [&](Tensor t) {
        while (Access::desc(t).rank < rank) t = ops::expand_dims(t, 0);
        return t;
      }));
    return ops::concatenate(of_one_dtype("block", lines), -2);
  });
}
Tensor append(const Operand& x, const Operand& values, const Axes& axis) {
  return attribute_errors("append", [&] {
    const ArrayArg a(x, {"append", "x"});
    const ArrayArg b(values, {"append", "values"}, a.tensor().dtype());
    Tensor first = a.tensor(), second = b.tensor();
    const int at = one_axis_of("append", first, axis);
    if (axis.size_ < 0) second = ops::flatten(second, 0);
    return ops::concatenate(of_one_dtype("append", {first, second}), at);
  });
}
Tensor insert(const Operand& x, const Operand& index, const Operand& values, const Axes& axis) {
  return attribute_errors("insert", [&] {
    const ArrayArg a(x, {"insert", "x"});
    Tensor t = a.tensor();
    (void)rank_of("insert", t);
    const int at = one_axis_of("insert", t, axis), rank = Access::desc(t).rank;
    const std::int64_t n = known_size(t, at, {"insert", "x"});
    const Integers where = integers_of(index, {"insert", "index"});
    const std::vector<std::int64_t> places = places_in(where, n, n, {"insert", "index"});
    const ArrayArg v(values, {"insert", "values"}, t.dtype());
    Tensor given = ops::cast(v, t.dtype());
    // A scalar index stands for one slice, of which values may lack the axis, or for as many as values have along it.
    const int lacking = rank - known_rank(given, {"insert", "values"});
    for (int i = 0; i < lacking; ++i)
      given = ops::expand_dims(given, where.shape.rank() == 0 && i == 0 && lacking == 1 ? at : 0);
    std::int64_t count = static_cast<std::int64_t>(places.size());
    const std::int64_t several = known_size(given, at, {"insert", "values"});
    // The order of the result: element i of x is i, value j is n + j.
    Runs runs;
    if (where.shape.rank() == 0 && several != 1) {
      count = several;
      runs.add(0, places[0]);
      runs.add(n, n + several);
      runs.add(places[0], n);
    } else {
      std::vector<std::int64_t> order(places.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
        return places[static_cast<std::size_t>(i)] < places[static_cast<std::size_t>(j)];
      });
      std::int64_t from = 0;
      for (std::int64_t value : order) {
        const std::int64_t before = places[static_cast<std::size_t>(value)];
        runs.add(from, before);
        runs.add(n + value, n + value + 1);
        from = before;
      }
      runs.add(from, n);
    }
    SizesOf shape;
    for (int i = 0; i < rank; ++i)
      if (i == at) shape.push(count);
      else shape.push_size(t, i);
    return runs.of(ops::concatenate({t, ops::broadcast_to(given, shape)}, at), at);
  });
}
Tensor delete_(const Operand& x, const Operand& index, const Axes& axis) {
  return attribute_errors("delete_", [&] {
    const ArrayArg a(x, {"delete_", "x"});
    Tensor t = a.tensor();
    (void)rank_of("delete_", t);
    const int at = one_axis_of("delete_", t, axis);
    const std::int64_t n = known_size(t, at, {"delete_", "x"});
    std::vector<std::int64_t> gone =
        places_in(integers_of(index, {"delete_", "index"}), n, n - 1, {"delete_", "index"});
    std::sort(gone.begin(), gone.end());
    Runs kept;
    std::int64_t from = 0;
    for (std::int64_t i : gone) {
      kept.add(from, i);
      from = i + 1;
    }
    kept.add(from, n);
    return kept.of(t, at);
  });
}

Tensors split(const Operand& x, const Operand& indices, int axis) { return parts_at("split", x, indices, axis); }
Tensors split(const Operand& x, int sections, int axis) { return sections_of("split", x, sections, axis, true); }
Tensors array_split(const Operand& x, const Operand& indices, int axis) {
  return parts_at("array_split", x, indices, axis);
}
Tensors array_split(const Operand& x, int sections, int axis) {
  return sections_of("array_split", x, sections, axis, false);
}
Tensors hsplit(const Operand& x, int sections) {
  return of_array("hsplit", x, [&](const Tensor& t) {
    return sections_of("hsplit", t, sections, rank_of("hsplit", t) == 1 ? 0 : 1, true);
  });
}
Tensors vsplit(const Operand& x, int sections) { return sections_of("vsplit", x, sections, 0, true); }
Tensors dsplit(const Operand& x, int sections) { return sections_of("dsplit", x, sections, 2, true); }
Tensors unstack(const Operand& x, int axis) {
  return of_array("unstack", x, [&](const Tensor& t) {
    const int at = place_axis("unstack", axis, (rank_of("unstack", t), Access::desc(t)));
    const std::int64_t n = known_size(t, at, {"unstack", "x"});
    if (n == 0) return Tensors();
    return ops::unstack(t, static_cast<int>(n), at);
  });
}

Tensor tile(const Operand& x, const Dims& times) {
  return of_array("tile", x, [&](Tensor t) {
    const int rank = rank_of("tile", t);
    for (int i = rank; i < times.size_; ++i) t = ops::expand_dims(t, 0);
    return ops::tile(t, times);
  });
}
Tensor repeat(const Operand& x, const Operand& times, const Axes& axis) {
  return of_array("repeat", x, [&](Tensor t) {
    const int at = one_axis_of("repeat", t, axis);
    const Integers counts = integers_of(times, {"repeat", "times"});
    for (std::int64_t n : counts.values)
      if (n < 0) fail<ValueError>({"repeat", "times"}, "holds ", n, kExpected, "it must not be negative");
    if (counts.values.size() == 1) {
      if (counts.values[0] == 0) return slice_along(t, at, 0, 0);
      return ops::repeat_elements(t, counts.values[0], at);
    }
    const std::int64_t n = known_size(t, at, {"repeat", "x"});
    if (counts.shape.rank() != 1 || static_cast<std::int64_t>(counts.values.size()) != n)
      fail<ValueError>({"repeat", "times"}, "of shape ", counts.shape, kExpected, "it must be a number, or ", n,
                       " of them, one for each element of the axis");
    std::vector<std::int64_t> from;
    for (std::int64_t i = 0; i < n; ++i)
      from.insert(from.end(), static_cast<std::size_t>(counts.values[static_cast<std::size_t>(i)]), i);
    return picked(t, from, at);
  });
}
Tensor broadcast_to(const Operand& x, const Dims& shape) {
  return of_array("broadcast_to", x, [&](const Tensor& t) { return ops::broadcast_to(t, shape); });
}
Shape broadcast_shapes(std::initializer_list<Shape> shapes) {
  TensorSpec all(int64, {});
  for (const Shape& shape : shapes) {
    TensorSpec one(int64, {}), both;
    for (std::int64_t n : shape) one.dims[one.rank++] = n;
    ops::broadcast_spec("broadcast_shapes", all, one, &both);
    all.set(both);
  }
  return Shape(all.dims, all.rank);
}
/// x, which must broadcast with `other`.
static Tensor broadcasting(const Tensor& x, const Tensor& other) {
  return ops::checked(x, other, [](const TensorSpec& a, const TensorSpec& b) {
    if (!ops::broadcast_together(a, b))
      fail<ValueError>({"broadcast_arrays", "x"}, "holds shapes ", b, " and ", a, kExpected, "they must broadcast");
  });
}
Tensors broadcast_arrays(const Tensors& x) {
  return attribute_errors("broadcast_arrays", [&] {
    Tensors all;
    TensorSpec common(bool_, {});
    for (const Tensor& given : x) {
      if (!given.defined()) fail_empty({"broadcast_arrays", "x"});
      (void)rank_of("broadcast_arrays", given);
      Tensor t = given;
      for (const Tensor& other : x) {
        if (Access::impl(other) == Access::impl(given)) break;
        t = broadcasting(t, other);
      }
      TensorSpec both;
      ops::broadcast_spec("broadcast_arrays", common, Access::desc(t), &both);
      common.set(both);
      all.push_back(t);
    }
    if (common.known()) {
      Dims shape(None);
      shape.size_ = common.rank;
      for (int i = 0; i < common.rank; ++i) shape.dims_[i] = Dim(common.dims[i]);
      for (Tensor& t : all) t = ops::broadcast_to(t, shape);
      return all;
    }
    Tensor zeros;  // of the shape that all broadcast to
    for (const Tensor& t : all) {
      const Tensor own = ops::cast(ops::zeros_of(t), bool_).to(x[0].device());
      zeros = zeros.defined() ? ops::logical_or(zeros, own) : own;
    }
    for (Tensor& t : all) t = ops::broadcast_like(t, zeros);
    return all;
  });
}

Tensor flip(const Operand& x, const Axes& axis) {
  return of_array("flip", x, [&](const Tensor& t) {
    return ops::reverse(t, axis.size_ < 0 ? Axes(places_of({"flip", "axis"}, axis, rank_of("flip", t))) : axis);
  });
}
Tensor fliplr(const Operand& x) {
  return of_array("fliplr", x, [](const Tensor& t) { return ops::reverse(t, 1); });
}
Tensor flipud(const Operand& x) {
  return of_array("flipud", x, [](const Tensor& t) { return ops::reverse(t, 0); });
}
Tensor roll(const Operand& x, const Dims& shift, const Axes& axis) {
  return of_array("roll", x, [&](const Tensor& t) {
    check_length({"roll", "shift"}, shift);
    for (int i = 0; i < shift.size_; ++i)
      if (shift.dims_[i].tensor_ || shift.dims_[i].value_ == Dim::kNoneDim)
        fail<TypeError>({"roll", "shift"}, "holds no number", kExpected, "it must hold integers");
    if (shift.size_ < 0) fail<TypeError>({"roll", "shift"}, "is no number", kExpected, "it must hold integers");
    if (axis.size_ < 0) {
      std::int64_t all = 0;
      for (int i = 0; i < shift.size_; ++i) all += shift.dims_[i].value_;
      return ops::reshape_like(rolled(ops::flatten(t, 0), all, 0), t);
    }
    if (shift.size_ != axis.size_ && shift.size_ != 1)
      fail<ValueError>({"roll", "shift"}, "lists ", shift.size_, " numbers, and axis ", axis.size_, " axes", kExpected,
                       "there must be one for each");
    Tensor y = t;
    (void)rank_of("roll", t);
    for (int i = 0; i < axis.size_; ++i)
      y = rolled(y, shift.dims_[shift.size_ == 1 ? 0 : i].value_, place_axis("roll", axis.axes_[i], Access::desc(t)));
    return y;
  });
}
Tensor rot90(const Operand& x, int k, const Axes& axes) {
  return of_array("rot90", x, [&](const Tensor& t) {
    const std::vector<int> plane = places_of({"rot90", "axes"}, axes, rank_of("rot90", t));
    if (plane.size() != 2)
      fail<ValueError>({"rot90", "axes"}, "lists ", plane.size(), " axes", kExpected, "there must be two");
    const int turns = ((k % 4) + 4) % 4;
    if (turns == 0) return t;
    if (turns == 2) return ops::reverse(t, plane);
    const Tensor flipped = turns == 1 ? ops::reverse(t, plane[1]) : t;
    const Tensor turned = swapaxes(flipped, plane[0], plane[1]);
    return turns == 1 ? turned : ops::reverse(turned, plane[1]);
  });
}
Tensor sliding_window_view(const Operand& x, const Dims& window, const Axes& axis) {
  return of_array("sliding_window_view", x, [&](Tensor t) {
    const char* what = "sliding_window_view";
    const int rank = rank_of(what, t);
    const std::vector<int> axes = places_of({what, "axis"}, axis, rank);
    check_length({what, "window"}, window);
    if (window.size_ != static_cast<int>(axes.size()))
      fail<ValueError>({what, "window"}, "has ", window.size_, " sizes for ", axes.size(), " axes", kExpected,
                       "there must be one for each");
    (void)checked_rank(what, rank + window.size_);
    for (int i = 0; i < window.size_; ++i) {
      const int at = axes[static_cast<std::size_t>(i)];
      const std::int64_t size = window.dims_[i].value_;
      if (window.dims_[i].tensor_ || size < 1)
        fail<ValueError>({what, "window"}, "holds ", size, kExpected, "sizes must be at least 1");
      t = ops::checked(t, [=](const TensorSpec& d) {
        if (d.rank >= 0 && d.dims[at] >= 0 && d.dims[at] < size)
          fail<ValueError>({what, "window"}, "is ", size, " along an axis of ", d.dims[at], kExpected,
                           "it must not be longer");
      });
      const Tensor starts = places_below(size_along(t, at) - (size - 1), cpu);
      const Tensor steps = places_below(ops::scalar_tensor(size, int64), cpu);
      t = picked(t, ops::expand_dims(starts, 1) + steps, at);
      const int last = Access::desc(t).rank - 1;
      t = permuted(t, moved({at + 1}, {last}, last + 1));
    }
    return t;
  });
}
Tensor resize(const Operand& x, const Dims& shape) {
  return of_array("resize", x, [&](const Tensor& t) {
    const TensorSpec to = ops::shape_from(ops::dims_tensor(shape, "resize"), t.dtype(), "resize");
    const std::int64_t n = t.size(), wanted = to.numel();
    if (n == 0 && wanted) fail<ValueError>({"resize", "x"}, "of shape ", t.shape(), " has no elements to repeat");
    const Tensor flat = ops::flatten(t, 0);
    const Tensor enough = wanted > n ? ops::tile(flat, {(wanted + n - 1) / n}) : flat;
    return ops::reshape(slice_along(enough, 0, 0, wanted), shape);
  });
}

}  // namespace numpy
}  // namespace kassette
