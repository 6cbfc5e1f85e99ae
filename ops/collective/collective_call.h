// ops/collective/collective_call.h - one call of a collective op: the ranks check that their calls match, and an error
// on one rank is thrown on all.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/text.h"
#include "ops/collective/collective_parts.h"

namespace kassette::ops {

/// A hash that is equal on all ranks if their calls match. If `rows_differ`, the sizes of the first axis may differ.
std::uint64_t number_of(const OpCall& call, bool rows_differ);
/// Describes the call for messages: "all_reduce(sum) of float32 (2, 3)".
std::string words_of(const OpCall& call);

/// Call it within together(): the ranks exchange their row counts. Returns how many bytes each rank contributes to
/// all_gather, and sets the number of rows of the output.
std::vector<std::int64_t> gathered_bytes(const OpCall& call, RankGroup& group);
/// Call it within together(): returns how many elements of input 0 each rank gets from reduce_scatter. If there is a
/// second input, each rank gets as many rows as its own has, and the ranks exchange these numbers.
std::vector<std::int64_t> scattered_counts(const OpCall& call, RankGroup& group);

/// Runs exchange(group) inside a RankCall: with the group locked, after a check that the calls of all ranks match, and
/// with a description for the message if the call gets stuck.
template <class F>
void together(const OpCall& call, bool rows_differ, F exchange) {
  RankGroup& group = group_of(call.attrs);
  const std::function<std::string()> words = [&] { return words_of(call); };
  devices::RankCall held(group, group.comm ? number_of(call, rows_differ) : 0, words);
  try {
    exchange(group);
  } catch (...) {
    devices::rethrow_transport_error();
  }
}
template <class F>
void together(const OpCall& call, F exchange) {
  together(call, /*rows_differ=*/false, exchange);
}

/// Returns make(), for preparations before together(). If make() throws, the other ranks, which are about to wait for
/// this one, throw as well.
template <class F>
auto prepared(const OpCall& call, F make) {
  try {
    return make();
  } catch (const std::exception& e) {
    devices::refuse_call(group_of(call.attrs), e.what());
    throw;
  }
}

/// Returns make(), which allocates the result of all_gather, within together(). If that throws on one rank, agreed()
/// throws on all.
template <class F>
auto agreed(RankGroup& group, F make) {
  std::optional<decltype(make())> made;
  std::exception_ptr error;
  try {
    made.emplace(make());
  } catch (...) {
    error = std::current_exception();
  }
  const bool all_made = devices::holds_on_all(group, !error);
  if (error) std::rethrow_exception(error);
  if (!all_made) fail<RuntimeError>({"all_gather"}, "another rank has no memory for the result");
  return std::move(*made);
}

}  // namespace kassette::ops
