// ops/order/order.h - sorting along an axis, the largest elements, and search in sorted sequences, as functions of
// tensors. NaN comes last, and equal elements keep their order.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// The attributes of sort and argsort.
struct SortAttrs {
  static constexpr const char* attrs_name = "sort";
  std::int64_t axis;
  bool descending;
};
/// The attributes of top_k.
struct TopKAttrs {
  static constexpr const char* attrs_name = "top_k";
  std::int64_t axis, k;
};
/// The attributes of searchsorted.
struct SearchAttrs {
  static constexpr const char* attrs_name = "searchsorted";
  bool right;
};

// ---- sort.cpp
extern const OpDef sort_op, argsort_op;
Tensor sort(const Tensor& x, int axis = -1, bool descending = false);
/// The int64 positions along the axis of the sorted elements. No gradient.
Tensor argsort(const Tensor& x, int axis = -1, bool descending = false);

// ---- top_k.cpp
struct TopK {
  Tensor values, indices;
};
extern const OpDef top_k_op;
/// The first k elements along the axis in descending order, and their int64 positions.
TopK top_k(const Tensor& x, std::int64_t k, int axis = -1);

// ---- places.cpp
extern const OpDef take_places_op, put_places_like_op, flat_places_op;
/// x at int64 places along an axis, which differ from one another and are in range; of the shape of `places`.
Tensor take_places(const Tensor& x, const Tensor& places, int axis);
/// Zeros of the shape of `like`, with the elements of x at `places`: the adjoint of take_places.
Tensor put_places_like(const Tensor& x, const Tensor& places, const Tensor& like, int axis);
/// The places in the flattened x of int64 indices along an axis, which may repeat and count from the end if they are
/// negative. They have the shape of x but for that axis. No gradient. Throws ValueError for one out of range.
Tensor flat_places(const Tensor& indices, const Tensor& x, int axis);

// ---- search.cpp
enum class Side : std::uint8_t { left, right };
extern const OpDef searchsorted_op;
/// How many elements of the ascending `a` come before each of `v` (left), or before or with it (right), as int64. `a`
/// has rank 1, or the shape of v but for the last axis, along which it is searched. No gradient.
Tensor searchsorted(const Tensor& a, const Tensor& v, Side side = Side::left);

}  // namespace kassette::ops
