// ops/order/search.cpp - searchsorted.
#include "ops/math/math.h"
#include "ops/order/keys.h"
#include "ops/order/order.h"
#include "ops/order/rows.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kSearchGrain = 1 << 11;  // values that are worth a thread: Note [Worth a thread]

void search_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &a = call.spec(0), &v = call.spec(1);
  if (a.dtype != v.dtype)
    fail<TypeError>({"searchsorted", "v"}, "is ", v.dtype, ", a is ", a.dtype, kRemedy, "cast one of them");
  if (a.rank == 0) fail<ValueError>({"searchsorted", "a"}, "is a scalar", kExpected, "the rank must be at least 1");
  out->set(v);
  out->dtype = int64;
  if (a.rank <= 1 || v.rank < 0) return;
  bool fits = a.rank == v.rank;
  for (int i = 0; fits && i < a.rank - 1; ++i) fits = !differ(a.dims[i], v.dims[i]);
  if (!fits)
    fail<ValueError>({"searchsorted"}, "v of shape ", v, " and a of shape ", a, kExpected,
                     "a must have rank 1, or the shape of v but for the last axis");
}

/// Halves the range without a branch that could be mispredicted.
template <bool kRight, class U>
std::int64_t find(const U* a, std::int64_t n, U v, const SortKeys<U>& keys) {
  std::int64_t first = 0;
  while (n > 0) {
    const std::int64_t half = (n + 1) / 2;
    const U key = keys(a[first + half - 1]);
    first += (kRight ? key <= v : key < v) ? half : 0;
    n -= half;
  }
  return first;
}

template <bool kRight, class U>
void search(const OpCall& call) {
  const TensorSpec &a = call.spec(0), &v = call.spec(1);
  const std::int64_t n = a.dims[a.rank - 1], each = a.rank == 1 ? v.numel() : v.dims[v.rank - 1];
  const auto keys = sort_keys<U>(a.dtype, /*descending=*/false);
  const U *sorted = call.in[0].as<U>(), *values = call.in[1].as<U>();
  auto* out = call.out_as<std::int64_t>();
  devices::parallel_for(v.numel(), kSearchGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = find<kRight>(sorted + i / each * n, n, keys(values[i]), keys);
  });
}

void search_kernel(const OpCall& call) {
  with_bits(call.spec(0).dtype.size(), [&](auto* null) {
    using U = std::remove_pointer_t<decltype(null)>;
    if (call.attrs.as<SearchAttrs>().right) search<true, U>(call);
    else search<false, U>(call);
  });
}

}  // namespace

constinit const OpDef searchsorted_op{
    .name = "searchsorted", .rule = search_rule, .cpu = search_kernel, .inputs = "a v"};

Tensor searchsorted(const Tensor& a, const Tensor& v, Side side) {
  return apply1(searchsorted_op, SearchAttrs{side == Side::right}, {a, v});
}

}  // namespace kassette::ops
