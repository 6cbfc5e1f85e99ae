// ops/ctc/beam_search.cpp - prefix beam search.
#include "ops/ctc/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kassette::ops {
namespace {

constexpr double kZero = -std::numeric_limits<double>::infinity();  // log 0

/// log(exp(a) + exp(b))
double log_sum(double a, double b) {
  const double most = a > b ? a : b, least = a > b ? b : a;
  if (!(least - most > -40)) return a != a || b != b ? a + b : most;  // below the last place, or both are log 0
  return most + std::log1p(std::exp(least - most));
}
/// The order of candidates, best first; earlier candidates win ties. A heap with this order has the worst on top.
constexpr auto kBetter = [](const auto& a, const auto& b) {
  if (a.total != b.total) return a.total > b.total;
  if ((a.symbol < 0) != (b.symbol < 0)) return a.symbol < 0;
  return a.member != b.member ? a.member < b.member : a.symbol < b.symbol;
};
std::uint64_t mixed(std::int32_t parent, std::int32_t symbol) {
  std::uint64_t h =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(parent)) << 32 | static_cast<std::uint32_t>(symbol)) *
      0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

}  // namespace

BeamSearch::BeamSearch(std::int64_t classes, std::int64_t width)
    : classes_(classes), width_(width), prefixes_{{-1, -1, 0}}, index_(64, -1), beam_{{0, {0, kZero, 0}, {}}} {}

void BeamSearch::step(const double* log_q) {
  advance_members(log_q);
  extend_members(log_q);
  // Drop the members that are not kept, and assign places in the beam, best first.
  for (const Member& m : beam_) prefixes_[m.prefix].place = -1;
  std::sort(kept_.begin(), kept_.end(), kBetter);
  next_.clear();
  for (const Candidate& c : kept_) {
    const Member& from = beam_[c.member];
    if (c.symbol < 0) next_.push_back(from);
    else next_.push_back({child(from.prefix, c.symbol), {kZero, c.total, c.total}, {}});
    prefixes_[next_.back().prefix].place = static_cast<std::int32_t>(next_.size() - 1);
  }
  beam_.swap(next_);
}

/// Updates the scores of all members for the step, and makes each a candidate to stay.
void BeamSearch::advance_members(const double* log_q) {
  const double blank = log_q[classes_ - 1];
  const auto n = static_cast<std::int32_t>(beam_.size());
  first_child_.assign(beam_.size(), -1);
  next_child_.assign(beam_.size(), -1);
  kept_.clear();
  for (Member& m : beam_) m.old = m.now;
  for (std::int32_t i = 0; i < n; ++i) {
    Member& m = beam_[i];
    const Prefix& p = prefixes_[m.prefix];
    m.now.label = kZero;
    if (p.parent >= 0) {
      double label = m.old.label;
      const Prefix& parent = prefixes_[p.parent];
      if (parent.place >= 0) {
        const PrefixScores& s = beam_[parent.place].old;
        label = log_sum(label, p.symbol == parent.symbol ? s.blank : s.total);
        next_child_[i] = first_child_[parent.place];
        first_child_[parent.place] = i;
      }
      m.now.label = label + log_q[p.symbol];
    }
    m.now.blank = m.old.total + blank;
    m.now.total = log_sum(m.now.blank, m.now.label);
    kept_.push_back({m.now.total, i, -1});
  }
}

/// Keeps a candidate if there is room or if it is better than the worst one, which is then dropped.
void BeamSearch::offer(const Candidate& c) {
  if (full()) {
    if (!(c.total > kept_.front().total)) return;
    std::pop_heap(kept_.begin(), kept_.end(), kBetter);
    if (kept_.back().symbol < 0) fate_[kept_.back().member] = Fate::gone;
    kept_.back() = c;
    std::push_heap(kept_.begin(), kept_.end(), kBetter);
    return;
  }
  kept_.push_back(c);
  if (full()) std::make_heap(kept_.begin(), kept_.end(), kBetter);
}

/// Offers each member, best first, extended by each symbol. As in TensorFlow, a member that has been dropped is still
/// extended, unless its parent is extended after it was dropped.
void BeamSearch::extend_members(const double* log_q) {
  child_of_.assign(classes_, -1);
  fate_.assign(beam_.size(), Fate::stays);
  if (full()) std::make_heap(kept_.begin(), kept_.end(), kBetter);
  const auto n = static_cast<std::int32_t>(beam_.size()), symbols = static_cast<std::int32_t>(classes_ - 1);
  for (std::int32_t i = 0; i < n; ++i) {
    const Member& m = beam_[i];
    if (!(m.old.total > kZero) || (full() && !(m.old.total > kept_.front().total))) return;
    if (fate_[i] == Fate::passed) continue;
    auto each_child = [&](auto f) {
      for (std::int32_t c = first_child_[i]; c >= 0; c = next_child_[c])
        f(child_of_[prefixes_[beam_[c].prefix].symbol], c);
    };
    each_child([](std::int32_t& at, std::int32_t c) { at = c; });
    const std::int32_t last = prefixes_[m.prefix].symbol;
    for (std::int32_t k = 0; k < symbols; ++k) {
      if (const std::int32_t c = child_of_[k]; c >= 0) {
        Fate& fate = fate_[c];
        if (fate == Fate::gone) fate = Fate::passed;
        continue;
      }
      const double total = log_q[k] + (k == last ? m.old.blank : m.old.total);
      if (total > kZero) offer({total, i, k});
    }
    each_child([](std::int32_t& at, std::int32_t) { at = -1; });
  }
}

std::size_t BeamSearch::find(std::int32_t parent, std::int32_t symbol) const {
  const std::size_t mask = index_.size() - 1;
  std::size_t at = mixed(parent, symbol) & mask;
  while (index_[at] >= 0) {
    const Prefix& p = prefixes_[index_[at]];
    if (p.parent == parent && p.symbol == symbol) break;
    at = (at + 1) & mask;
  }
  return at;
}
void BeamSearch::grow_index() {
  index_.assign(index_.size() * 2, -1);
  for (std::size_t i = 1; i < prefixes_.size(); ++i)
    index_[find(prefixes_[i].parent, prefixes_[i].symbol)] = static_cast<std::int32_t>(i);
}
std::int32_t BeamSearch::child(std::int32_t parent, std::int32_t symbol) {
  if (prefixes_.size() * 2 > index_.size()) grow_index();
  const std::size_t at = find(parent, symbol);
  if (index_[at] < 0) {
    index_[at] = static_cast<std::int32_t>(prefixes_.size());
    prefixes_.push_back({parent, symbol, -1});
  }
  return index_[at];
}

std::vector<BeamPath> BeamSearch::best(std::int64_t paths) const {
  std::vector<BeamPath> out;
  for (const Member& m : beam_) {
    if (static_cast<std::int64_t>(out.size()) == paths) break;
    BeamPath path{{}, m.now.total};
    for (std::int32_t p = m.prefix; p > 0; p = prefixes_[p].parent) path.label.push_back(prefixes_[p].symbol);
    std::reverse(path.label.begin(), path.label.end());
    out.push_back(std::move(path));
  }
  return out;
}

}  // namespace kassette::ops
