// core/rank.h - what a rank and an axis may be. Whatever makes a rank of sizes that it was given, or counts an axis from the end,
// asks here.
#pragma once
#include "core/text.h"

namespace kassette {

constexpr bool is_rank(std::int64_t rank) { return rank >= 0 && rank <= kMaxRank; }

/// `rank`, as a TensorSpec holds it. Throws ValueError where no tensor has it: "dot: (2, 3) x (4,): rank 9; ...", with what was given.
template <class... Given>
std::int8_t checked_rank(const char* what, std::int64_t rank, const Given&... given) {
  if (!is_rank(rank)) {
    std::string of = text("", given...);
    fail<ValueError>(what, ": ", of, of.empty() ? "" : ": ", "rank ", rank, "; a tensor has 0 to ", kMaxRank, " axes");
  }
  return static_cast<std::int8_t>(rank);
}

/// `axis` counted from the front; -1 where it is outside [-rank, rank).
constexpr int from_front(std::int64_t axis, int rank) {
  return axis < -rank || axis >= rank ? -1 : static_cast<int>(axis < 0 ? axis + rank : axis);
}
/// The same for an axis of `x`, or of x with `added` axes more. Throws ValueError where there is none.
int place_axis(const char* op, std::int64_t axis, const TensorSpec& x, int added = 0);
[[noreturn]] void fail_axis(const char* op, std::int64_t axis, const TensorSpec& x, int added = 0);

}  // namespace kassette
