// ops/order/sort.cpp - sort and argsort along an axis.
#include <algorithm>
#include <atomic>

#include "core/rank.h"
#include "ops/math/math.h"
#include "ops/order/keys.h"
#include "ops/order/order.h"
#include "ops/order/radix.h"
#include "ops/order/rows.h"

namespace kassette::ops {
namespace {

// Elements that are worth a thread: a pass over 2^14 of them takes some 15 us (Note [Worth a thread]).
constexpr std::int64_t kSortGrain = 1 << 14;

void sort_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  if (x.rank >= 0) place_axis(call.op.name, call.attrs.as<SortAttrs>().axis, x);
  out->set(x);
}
void argsort_rule(const OpCall& call, TensorSpec* out) {
  sort_rule(call, out);
  out->dtype = int64;
}

/// Writes the zeros and NaNs of a row in their order over those that their keys gave back.
template <class U>
void restore(const U* x, const U* sorted_keys, std::int64_t n, const SortKeys<U>& keys, U* out) {
  const U zero = keys(U(0));
  std::int64_t at = std::lower_bound(sorted_keys, sorted_keys + n, zero) - sorted_keys,
               nan = std::lower_bound(sorted_keys, sorted_keys + n, SortKeys<U>::kNaN) - sorted_keys;
  for (std::int64_t i = 0; i < n; ++i) {
    const U key = keys(x[i]);
    if (key == zero) out[at++] = x[i];
    else if (key == SortKeys<U>::kNaN) out[nan++] = x[i];
  }
}

template <class U>
void sort_row(RadixSort<U>& sorter, const U* x, U* out, std::int64_t n, const SortKeys<U>& keys) {
  U* items = sorter.items();
  std::atomic<bool> loses = false;
  devices::parallel_for(n, kSortGrain, [&](std::int64_t begin, std::int64_t end) {
    bool some = false;
    for (std::int64_t i = begin; i < end; ++i) {
      items[i] = keys(x[i]);
      some |= keys.loses(x[i]);
    }
    if (some) loses = true;
  });
  const U* sorted = sorter.sort(n, 0, 8 * sizeof(U));
  devices::parallel_for(n, kSortGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = keys.bits(sorted[i]);
  });
  if (loses) restore(x, sorted, n, keys, out);
}

/// Sorts keys with the positions in the lower halves of one number, or beside them if that has no room for both.
template <class Item, class U>
void argsort_row(RadixSort<Item>& sorter, const U* x, std::int64_t* out, std::int64_t n, const SortKeys<U>& keys) {
  constexpr bool kPacked = std::is_same_v<Item, std::uint64_t>;
  constexpr int kLow = kPacked ? 32 : 0;
  Item* items = sorter.items();
  devices::parallel_for(n, kSortGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto place = static_cast<std::uint64_t>(i);
      if constexpr (kPacked) items[i] = std::uint64_t(keys(x[i])) << 32 | place;
      else items[i] = {keys(x[i]), place};
    }
  });
  const Item* sorted = sorter.sort(n, kLow, kLow + 8 * static_cast<int>(sizeof(U)));
  devices::parallel_for(n, kSortGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if constexpr (kPacked) out[i] = static_cast<std::int64_t>(sorted[i] & 0xffffffffu);
      else out[i] = static_cast<std::int64_t>(sorted[i].place);
    }
  });
}

/// Calls f(sorter, row) for each row. A single row is shared by the threads, several are divided among them.
template <class Item, class F>
void each_row(std::int64_t rows, std::int64_t n, F f) {
  devices::parallel_for(rows, std::max<std::int64_t>(1, kSortGrain / n), [&](std::int64_t begin, std::int64_t end) {
    RadixSort<Item> sorter(n);
    for (std::int64_t r = begin; r < end; ++r) f(sorter, r);
  });
}

void sort_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (x.numel() == 0) return;
  const auto& attrs = call.attrs.as<SortAttrs>();
  const AxisSplit s(x, from_front(attrs.axis, x.rank));
  with_bits(x.dtype.size(), [&](auto* null) {
    using U = std::remove_pointer_t<decltype(null)>;
    const auto keys = sort_keys<U>(x.dtype, attrs.descending);
    by_rows(s, s, call.in[0].as<U>(), call.out_as<U>(), [&](const U* from, U* to) {
      each_row<U>(s.outer * s.inner, s.n, [&](RadixSort<U>& sorter, std::int64_t r) {
        sort_row(sorter, from + r * s.n, to + r * s.n, s.n, keys);
      });
    });
  });
}

template <class Item, class U>
void argsort_rows(const U* x, std::int64_t* out, const AxisSplit& s, const SortKeys<U>& keys) {
  by_rows(s, s, x, out, [&](const U* from, std::int64_t* to) {
    each_row<Item>(s.outer * s.inner, s.n, [&](RadixSort<Item>& sorter, std::int64_t r) {
      argsort_row(sorter, from + r * s.n, to + r * s.n, s.n, keys);
    });
  });
}

void argsort_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (x.numel() == 0) return;
  const auto& attrs = call.attrs.as<SortAttrs>();
  const AxisSplit s(x, from_front(attrs.axis, x.rank));
  with_bits(x.dtype.size(), [&](auto* null) {
    using U = std::remove_pointer_t<decltype(null)>;
    const auto keys = sort_keys<U>(x.dtype, attrs.descending);
    const U* from = call.in[0].as<U>();
    auto* to = call.out_as<std::int64_t>();
    if (sizeof(U) <= 4 && s.n <= std::int64_t(0xffffffff)) argsort_rows<std::uint64_t>(from, to, s, keys);
    else argsort_rows<PlacedKey>(from, to, s, keys);
  });
}

void sort_vjp(const VjpContext& ctx) {
  const auto& attrs = ctx.attrs.as<SortAttrs>();
  const int axis = static_cast<int>(attrs.axis);
  ctx.din(0) = put_places_like(ctx.dy(), argsort(ctx.in(0), axis, attrs.descending), ctx.in(0), axis);
}

}  // namespace

constinit const OpDef sort_op{.name = "sort", .rule = sort_rule, .cpu = sort_kernel, .vjp = sort_vjp, .saves_in = 1};
constinit const OpDef argsort_op{.name = "argsort", .rule = argsort_rule, .cpu = argsort_kernel};

Tensor sort(const Tensor& x, int axis, bool descending) { return apply1(sort_op, SortAttrs{axis, descending}, {x}); }
Tensor argsort(const Tensor& x, int axis, bool descending) {
  return apply1(argsort_op, SortAttrs{axis, descending}, {x});
}

}  // namespace kassette::ops
