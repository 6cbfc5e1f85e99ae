// core/rank.h - checks of ranks and axes. All code that computes a rank from user input, or accepts a negative axis,
// uses these.
#pragma once
#include "core/text.h"

namespace kassette {

constexpr bool is_rank(std::int64_t rank) { return rank >= 0 && rank <= kMaxRank; }
/// Throws the ValueError of checked_rank().
template <class... Given>
[[noreturn]] __attribute__((noinline, cold)) void fail_rank(const char* what, std::int64_t rank,
                                                            const Given&... given) {
  std::string of = text("", given...);
  fail<ValueError>({what}, of, of.empty() ? "" : ": ", "rank ", rank, kExpected, "a tensor has 0 to ", kMaxRank,
                   " axes");
}
/// `rank` as a TensorSpec holds it. Throws ValueError if it is not 0 to kMaxRank: "dot: (2, 3) x (4,): rank 9; ...",
/// where `given` are the parts of the text between the function and the rank.
template <class... Given>
std::int8_t checked_rank(const char* what, std::int64_t rank, const Given&... given) {
  if (!is_rank(rank)) fail_rank(what, rank, given...);
  return static_cast<std::int8_t>(rank);
}
/// Throws ValueError if an argument has another rank: "conv2d: x of shape (5, 6, 3); the rank must be 4: (batch,
/// rows, columns, channels)". `form` are the parts of the text after the rank. An unknown rank is accepted.
template <class... Form>
void check_rank(const At& at, const TensorSpec& given, int rank, const Form&... form) {
  if (differ(given.rank, rank)) fail<ValueError>(at, "of shape ", given, kExpected, "the rank must be ", rank, form...);
}
/// Throws ValueError for an argument whose rank must be known.
[[noreturn]] void fail_unknown_rank(const At& at);

/// `axis` counted from the front; -1 if it is outside [-rank, rank).
constexpr int from_front(std::int64_t axis, int rank) {
  return axis < -rank || axis >= rank ? -1 : static_cast<int>(axis < 0 ? axis + rank : axis);
}
/// from_front() for an axis of `x`, or of x with `added` more axes. Throws ValueError if there is no such axis. `name`:
/// the argument, "axis", or one that lists axes.
int place_axis(const char* op, std::int64_t axis, const TensorSpec& x, int added = 0, const char* name = "axis");
[[noreturn]] void fail_axis(const char* op, std::int64_t axis, const TensorSpec& x, int added = 0,
                            const char* name = "axis");

[[noreturn]] void fail_length(const At& at, int length);
/// Throws ValueError if an argument, a shape or axes, lists more numbers than a tensor has axes: only the first
/// kMaxRank of them are there.
template <class List>
void check_length(const At& at, const List& list) {
  if (list.size_ > kMaxRank) fail_length(at, list.size_);
}

}  // namespace kassette
