// ops/ctc/beam_search.h - CTC decoding of one sample by prefix beam search (Graves 2012), with the same results as
// TensorFlow's.
#pragma once
#include <cstdint>
#include <vector>

namespace kassette::ops {

/// A decoded label, and the log of the probability that the search found for it.
struct BeamPath {
  std::vector<std::int64_t> label;
  double log_probability;
};

/// Log probabilities of a prefix: of the paths that end in a blank, of those that end in its last symbol, and of all
/// paths.
struct PrefixScores {
  double blank, label, total;
};

/// The beam: the `width` best prefixes after the time steps so far.
class BeamSearch {
 public:
  BeamSearch(std::int64_t classes, std::int64_t width);
  /// Advances by one time step. log_q: log probabilities of the classes, the blank last.
  void step(const double* log_q);
  /// The best paths, best first; fewer if the beam has fewer prefixes.
  std::vector<BeamPath> best(std::int64_t paths) const;

 private:
  /// A node of the prefix tree. Nodes are never removed: a prefix that re-enters the beam must keep its identity for
  /// its children.
  struct Prefix {
    std::int32_t parent, symbol;
    std::int32_t place;  // in the beam, or -1
  };
  /// A prefix in the beam; `old` holds its scores before the current step.
  struct Member {
    std::int32_t prefix;
    PrefixScores now, old;
  };
  /// A candidate for the beam after the step: a member unchanged (symbol -1), or extended by a symbol.
  struct Candidate {
    double total;
    std::int32_t member, symbol;
  };
  void advance_members(const double* log_q);
  void extend_members(const double* log_q);
  void offer(const Candidate& candidate);
  bool full() const { return static_cast<std::int64_t>(kept_.size()) == width_; }
  std::int32_t child(std::int32_t parent, std::int32_t symbol);
  void grow_index();
  std::size_t find(std::int32_t parent, std::int32_t symbol) const;

  const std::int64_t classes_, width_;
  std::vector<Prefix> prefixes_;
  std::vector<std::int32_t> index_;  // hash table of prefixes by parent and symbol; its size is a power of two
  std::vector<Member> beam_, next_;  // best first
  std::vector<Candidate> kept_;      // once full, a heap with the worst on top
  std::vector<std::int32_t> first_child_, next_child_;     // linked lists: the members that are children of a member
  std::vector<std::int32_t> child_of_;                     // by symbol: the child of the member being extended, or -1
  enum class Fate : std::uint8_t { stays, gone, passed };  // passed: dropped before its parent was extended
  std::vector<Fate> fate_;                                 // of each member, in the current step
};

}  // namespace kassette::ops
