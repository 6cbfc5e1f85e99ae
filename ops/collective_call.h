// ops/collective_call.h - one call of an op that all ranks run together: compared with theirs, and what fails on one rank is said on all.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/text.h"
#include "ops/collective_parts.h"

namespace kassette {

/// Equal for calls that go together. Sizes of the first axis may differ where `rows_differ`.
std::uint64_t number_of(const OpCall& call, bool rows_differ);
/// "all_reduce(sum) of float32 (2, 3)"
std::string words_of(const OpCall& call);

Combine combine_of(Reduction how);
/// Within the call: the bytes that each rank gives to all_gather. Sets the rows of the output.
std::vector<std::int64_t> gathered_bytes(const OpCall& call, RankGroup& group);
/// Within the call: the elements of input 0 that each rank gets of reduce_scatter, whose second input, where there is one, has the
/// rows of this rank.
std::vector<std::int64_t> scattered_counts(const OpCall& call, RankGroup& group);

/// exchange(group), while the group is this call's: compared with that of the other ranks, and named should it get stuck.
template <class F>
void together(const OpCall& call, bool rows_differ, F exchange) {
  RankGroup& group = group_of(call.attrs);
  const std::function<std::string()> words = [&] { return words_of(call); };
  RankCall held(group, group.comm ? number_of(call, rows_differ) : 0, words);
  try {
    exchange(group);
  } catch (...) {
    rethrow_transport_error();
  }
}
template <class F>
void together(const OpCall& call, F exchange) {
  together(call, /*rows_differ=*/false, exchange);
}

/// make(), whose error the other ranks get too: they are about to wait for this one.
template <class F>
auto prepared(const OpCall& call, F make) {
  try {
    return make();
  } catch (const std::exception& e) {
    refuse_call(group_of(call.attrs), e.what());
    throw;
  }
}

/// make() in the midst of a call: where it fails on one rank it fails on all of them.
template <class F>
auto agreed(RankGroup& group, F make) {
  std::optional<decltype(make())> made;
  std::exception_ptr error;
  try {
    made.emplace(make());
  } catch (...) {
    error = std::current_exception();
  }
  const bool all_made = holds_on_all(group, !error);
  if (error) std::rethrow_exception(error);
  if (!all_made) fail<RuntimeError>("all_gather: another rank has no memory for the result");
  return std::move(*made);
}

}  // namespace kassette
