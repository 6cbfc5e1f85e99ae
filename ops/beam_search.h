// ops/beam_search.h - the best labels of one sample, by prefix search over a beam (Graves 2012, as TensorFlow does it).
#pragma once
#include <cstdint>
#include <vector>

namespace kassette {

/// A label and the logarithm of the probability that was found for it.
struct BeamPath {
  std::vector<std::int64_t> label;
  double log_probability;
};

/// Scores of a prefix, as logarithms: of what ends in a blank, of what ends in its last label, and of both.
struct PrefixScores {
  double blank, label, total;
};

class BeamSearch {
 public:
  BeamSearch(std::int64_t classes, std::int64_t width);
  /// One time step: logarithms of the probabilities of the classes, the blank last.
  void step(const double* log_q);
  /// The best paths, best first; fewer where there are not as many prefixes.
  std::vector<BeamPath> best(std::int64_t paths) const;

 private:
  /// A prefix that was ever in the beam. All that are or were there stay, so that one that comes back is the same to its children.
  struct Prefix {
    std::int32_t parent, symbol;
    std::int32_t place;  // in the beam, or -1
  };
  /// A prefix of the beam; `old` are its scores before the step.
  struct Member {
    std::int32_t prefix;
    PrefixScores now, old;
  };
  /// What may be in the beam after a step: a member that stays (symbol -1), or one with a symbol appended.
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
  std::vector<std::int32_t> index_;  // prefixes by parent and symbol: open addressing, a power of two
  std::vector<Member> beam_, next_;  // best first
  std::vector<Candidate> kept_;      // a heap, worst on top, once it is full
  std::vector<std::int32_t> first_child_, next_child_;     // members whose prefix is a child of a member's
  std::vector<std::int32_t> child_of_;                     // by symbol: the child of the member that is extended, or -1
  enum class Fate : std::uint8_t { stays, gone, passed };  // in this step; passed: gone, and its parent came upon it
  std::vector<Fate> fate_;                                 // of members
};

}  // namespace kassette
