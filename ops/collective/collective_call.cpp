// ops/collective/collective_call.cpp - one call of a collective op: its hash and description, and the sizes of each
// rank's part.
#include "ops/collective/collective_call.h"

#include <algorithm>

#include "core/text.h"

namespace kassette::ops {
namespace {

void mix(std::uint64_t& hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
}

/// The op as messages name it: all_reduce and reduce_scatter are two ops each, which differ in their adjoints alone.
const OpDef& shown_op(const OpDef& op) {
  return &op == &all_reduce_nonlinear_op ? all_reduce_op : &op == &reduce_scatter_nonlinear_op ? reduce_scatter_op : op;
}

}  // namespace

std::uint64_t number_of(const OpCall& call, bool rows_differ) {
  std::uint64_t hash = devices::call_number(call.op.name);
  mix(hash, static_cast<std::uint64_t>(reduction_of(call.attrs)));
  mix(hash, static_cast<std::uint64_t>(root_of(call.attrs)));
  mix(hash, static_cast<std::uint64_t>(call.n_in));
  mix(hash, call.device.type());  // must be the same on all ranks, since GPUs may exchange directly
  for (int i = 0; i < call.n_in; ++i) {
    const TensorSpec& s = call.spec(i);
    mix(hash, s.dtype.code());
    mix(hash, static_cast<std::uint64_t>(s.rank));
    for (int k = rows_differ && s.rank > 0; k < s.rank; ++k) mix(hash, static_cast<std::uint64_t>(s.dims[k]));
  }
  return hash;
}

std::string words_of(const OpCall& call) {
  const Reduction how = reduction_of(call.attrs);
  const OpDef& op = shown_op(call.op);
  std::string words = op.name;
  if (&op == &all_reduce_op || &op == &reduce_scatter_op) words += text("(", reduction_name(how), ")");
  if (&op == &broadcast_op) words += text(" from rank ", root_of(call.attrs));
  if (&op == &reduce_op) words += text(" to rank ", root_of(call.attrs), ", the gradient of broadcast,");
  words += " of ";
  constexpr int kShown = 3;
  for (int i = 0; i < std::min(call.n_in, kShown); ++i)
    words += text(i ? ", " : "", call.spec(i).dtype, " ", shape_text(call.spec(i)));
  if (call.n_in > kShown) words += text(" and ", call.n_in - kShown, " more");
  if (call.device != cpu) words += " on a GPU";  // its index may differ between ranks
  return words;
}

std::vector<std::int64_t> gathered_bytes(const OpCall& call, RankGroup& group) {
  const TensorSpec& in = call.spec(0);
  std::vector<std::int64_t> bytes(group.size, in.bytes());
  if (in.rank == 0) return bytes;
  std::vector<std::int64_t> rows(bytes.size());
  const std::vector<std::int64_t> one(bytes.size(), sizeof(std::int64_t));
  group.comm->all_gather(&in.dims[0], rows.data(), one.data());
  std::int64_t row = in.dtype.size(), total = 0;
  for (int i = 1; i < in.rank; ++i) row *= in.dims[i];
  for (std::size_t r = 0; r < rows.size(); ++r) {
    bytes[r] = rows[r] * row;
    total += rows[r];
  }
  call.out[0]->dims[0] = total;
  return bytes;
}

std::vector<std::int64_t> scattered_counts(const OpCall& call, RankGroup& group) {
  const TensorSpec &in = call.spec(0), &out = *call.out[0];
  std::vector<std::int64_t> counts(group.size);
  if (call.n_in > 1) {
    const std::vector<std::int64_t> one(counts.size(), sizeof(std::int64_t));
    group.comm->all_gather(&out.dims[0], counts.data(), one.data());
  } else {
    for (int r = 0; r < group.size; ++r) {
      const RowRange rows = rows_of(in.dims[0], r, group.size);
      counts[r] = rows.end - rows.begin;
    }
  }
  std::int64_t row = 1;
  for (int i = 1; i < in.rank; ++i) row *= in.dims[i];
  for (std::int64_t& c : counts) c *= row;
  return counts;
}

}  // namespace kassette::ops
