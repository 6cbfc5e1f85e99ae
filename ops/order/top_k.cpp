// ops/order/top_k.cpp - the largest elements along an axis, without sorting the others.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/rank.h"
#include "ops/order/keys.h"
#include "ops/order/order.h"
#include "ops/order/radix.h"
#include "ops/order/rows.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kTopGrain = 1 << 15;  // elements that are worth a thread: Note [Worth a thread]
constexpr std::int64_t kFewest = 64;         // as many are kept sorted by insertion; more are selected

/// The unsigned type of an element's size, and the bits of an element.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
template <class U, class T>
U bits_of(const T& x) {
  U bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

void top_k_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  const auto& attrs = call.attrs.as<TopKAttrs>();
  if (attrs.k < 0) fail<ValueError>({"top_k", "k"}, "is ", attrs.k, kExpected, "it must not be negative");
  out->set(x);
  out->dtype = int64;
  if (x.rank < 0) return;
  const int axis = place_axis("top_k", attrs.axis, x);
  if (x.dims[axis] >= 0 && attrs.k > x.dims[axis])
    fail<ValueError>({"top_k", "k"}, "is ", attrs.k, ", x of shape ", x, " has ", x.dims[axis], " along axis ", axis);
  out->dims[axis] = attrs.k;
}

/// A lesser item comes first: the larger element, and among equals the earlier one.
bool before(const PlacedKey& a, const PlacedKey& b) { return a.key < b.key || (a.key == b.key && a.place < b.place); }

constexpr std::int64_t kBlock = 64;

/// Whether one of the elements of a block comes before that of key `last`. Numbers are compared as such: their keys
/// would take twice the time.
template <class T, class U>
bool some_before(const T* x, U last, const SortKeys<U>& keys) {
  if constexpr (kIsHalf<T>) {
    U some = 0;
    for (std::int64_t i = 0; i < kBlock; ++i) some = static_cast<U>(some | U(keys(bits_of<U>(x[i])) < last));
    return some != 0;
  } else {
    T bound;
    const U bits = keys.bits(last);
    std::memcpy(&bound, &bits, sizeof bound);
    if (bound != bound) return true;  // any number comes before a NaN
    U some = 0;
    for (std::int64_t i = 0; i < kBlock; ++i) some = static_cast<U>(some | U(x[i] > bound));
    return some != 0;
  }
}

/// Keeps the k first so far in order. Most blocks have no element that comes before the last of them.
template <class T, class U>
void keep_few(const T* x, std::int64_t n, std::int64_t k, const SortKeys<U>& keys, PlacedKey* kept) {
  std::int64_t held = 0;
  U last = SortKeys<U>::kNaN;
  for (std::int64_t at = 0; at < n; at += kBlock) {
    const std::int64_t end = std::min(n, at + kBlock);
    if (held == k && end - at == kBlock && !some_before(x + at, last, keys)) continue;
    for (std::int64_t i = at; i < end; ++i) {
      const U key = keys(bits_of<U>(x[i]));
      if (held == k && key >= last) continue;
      std::int64_t to = held < k ? held++ : k - 1;
      for (; to > 0 && key < kept[to - 1].key; --to) kept[to] = kept[to - 1];
      kept[to] = {key, static_cast<std::uint64_t>(i)};
      if (held == k) last = static_cast<U>(kept[k - 1].key);
    }
  }
}

template <class T, class U>
void top_rows(const T* x, std::int64_t* out, std::int64_t rows, std::int64_t n, std::int64_t k,
              const SortKeys<U>& keys) {
  devices::parallel_for(rows, std::max<std::int64_t>(1, kTopGrain / n), [&](std::int64_t begin, std::int64_t end) {
    std::vector<PlacedKey> items(static_cast<std::size_t>(k <= kFewest ? k : n));
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = x + r * n;
      if (k <= kFewest) {
        keep_few(row, n, k, keys, items.data());
      } else {
        for (std::int64_t i = 0; i < n; ++i) items[i] = {keys(bits_of<U>(row[i])), static_cast<std::uint64_t>(i)};
        if (k < n) std::nth_element(items.begin(), items.begin() + k, items.end(), before);
        std::sort(items.begin(), items.begin() + k, before);
      }
      for (std::int64_t i = 0; i < k; ++i) out[r * k + i] = static_cast<std::int64_t>(items[i].place);
    }
  });
}

void top_k_kernel(const OpCall& call) {
  const TensorSpec &x = call.spec(0), &out = *call.out[0];
  if (out.numel() == 0) return;
  const auto& attrs = call.attrs.as<TopKAttrs>();
  const int axis = from_front(attrs.axis, x.rank);
  const AxisSplit s(x, axis), result(out, axis);
  dispatch(x.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    using U = BitsOf<T>;
    const auto keys = sort_keys<U>(x.dtype, /*descending=*/true);
    by_rows(s, result, call.in[0].as<T>(), call.out_as<std::int64_t>(),
            [&](const T* from, std::int64_t* to) { top_rows(from, to, s.outer * s.inner, s.n, attrs.k, keys); });
  });
}

}  // namespace

constinit const OpDef top_k_op{.name = "top_k", .rule = top_k_rule, .cpu = top_k_kernel};

TopK top_k(const Tensor& x, std::int64_t k, int axis) {
  Tensor indices = apply1(top_k_op, TopKAttrs{axis, k}, {x});
  return {take_places(x, indices, axis), indices};
}

}  // namespace kassette::ops
