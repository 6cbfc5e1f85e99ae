// tests/fuzz/random_programs.cpp - runs random programs in every way there is: `kassette_random_programs [seconds [seed
// [how many]]]`. Values have the same bits, except for the sign of zero. Gradients of programs with loops, branches or
// calls agree within 1e-11 of the largest (1e-3 unless float64), second gradients within 1e-10 (1e-8 with nested
// bodies, 1e-4 where something is cast to float32), and some gradients are compared with finite differences. A finding
// is printed with the seed of its program: `kassette_random_programs 0 SEED 1` runs only that program again; with a
// text after that, it looks for a smaller program that has a finding with that text. This file is one piece: each way
// of playing a program is compared with the others.
#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/print.h>
#include <kassette/runtime.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "autograd/tape/backward.h"
#include "core/context.h"
#include "core/fast_paths.h"
#include "core/impl.h"
#include "tests/fuzz/programs.h"
#ifdef KASSETTE_REFUSED
#include "tests/memory/refused.h"
#endif
#include "tests/messages.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

char now[256];
void say_where(int signal) {
  (void)!write(2, now, std::strlen(now));
  (void)!write(2, "\n", 1);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

/// The outcome of one way to run a program: results, gradients, second gradients and what the weights are then, or what
/// was thrown.
struct Outcome {
  Tensors results, first, second, weights;
  std::string error;
};

template <class F>
Outcome outcome_of(F f) {
  Outcome o;
  try {
    f(o);
  } catch (const Error& e) {
    o.error = without_steps(e.what());
  }
  return o;
}

Tensors evaluated(const Tensors& ts) {
  Tensors all;
  for (const Tensor& t : ts) all.push_back(t.defined() ? K::get_value(t) : t);
  return all;
}

Tensors variables_of(const Program& p, const Tensors& values) {
  Tensors all;
  for (const Tensor& v : values) all.push_back(K::variable(v, p.dtype));
  return all;
}

/// The function of which second gradients are taken.
Tensor penalty_of(const Tensors& gradients) {
  Tensor sum;
  for (const Tensor& g : gradients)
    if (g.defined()) sum = sum.defined() ? sum + K::sum(K::square(g)) : K::sum(K::square(g));
  return sum;
}

std::vector<double> doubles(const Tensor& t) {
  const auto v = t.to_vector<double>();
  return {v.begin(), v.end()};
}

constexpr const char *kRefused = "no memory", *kNoMemoryToSayIt = "kassette: out of memory";

/// How many orders to compute: values, gradients, second gradients.
enum Depth : int { kValues, kFirst, kSecond };

/// `released`: the loss is moved into gradients(); the weights may change before the pass and again before second
/// derivatives.
Outcome eagerly(const Program& p, const Tensors& values, Depth depth, bool expanded, bool released = false) {
  return outcome_of([&](Outcome& o) {
    K::LearningPhaseScope train(1);
    Tensors xs = variables_of(p, values), changed;
    Tensors results = play(p, xs, {}, released ? nullptr : &changed);
    o.results = evaluated(results);
    if (released) {
      Tensor loss = loss_of(p, results);
      results = Tensors();
      auto change = [&] {
        for (auto i = static_cast<std::int64_t>(p.inputs.size()); i < xs.size(); ++i)
          K::update(xs[i], K::get_value(xs[i]) * 1.5);
      };
      if (p.seed % 3 == 0) change();
      const Tensors g = K::gradients(std::move(loss), xs);
      o.first = evaluated(g);
      change();
      if (Tensor s = penalty_of(g); s.defined()) o.second = evaluated(K::gradients(s, xs));
      return;
    }
    if (depth >= kFirst) {
      Tensor loss = loss_of(p, results);
      Tensors g;
      if (expanded) {
        Scoped<bool> on(context().recording, true);
        const Tensor one = K::constant(1, p.dtype, Dims(std::initializer_list<Dim>{}));
        if (Access::desc(loss).node) g = autograd::backward({loss}, xs, {one});
        else g = K::gradients(loss, xs);
      } else {
        g = K::gradients(loss, xs);
      }
      o.first = evaluated(g);
      if (depth >= kSecond)
        if (Tensor s = penalty_of(g); s.defined()) o.second = evaluated(K::gradients(s, xs));
    }
    const auto n = static_cast<std::int64_t>(p.inputs.size());
    changed = evaluated(changed);  // all of them from what the weights are before any changes
    for (std::size_t k = 0; k < p.changes.size(); ++k) {
      const Change& c = p.changes[k];
      const Tensor &w = xs[c.weight], &v = changed[static_cast<std::int64_t>(k)];
      if (c.mode == 0) K::update(w, v);
      else if (c.mode == 1) K::update_add(w, v);
      else K::update_sub(w, v);
    }
    for (std::int64_t i = n; i < xs.size(); ++i) o.weights.push_back(K::get_value(xs[i]));
  });
}

/// A function of a program, whose results are split into their parts.
class Made {
 public:
  struct How {
    Depth depth;
    bool unknown, nested;
    bool any_rank = false;  // of inputs
  };
  Made(const Program& p, const Tensors& values, const How& how) : p_(p) {
    K::symbolic([&] {
      make(values, how);
      return 0;
    })();
  }
  /// `refused`: the number of the allocation that fails, from 1; 0: none.
  Outcome call(const Tensors& values, std::int64_t refused = 0) const {
    return outcome_of([&](Outcome& o) {
      set_weights(values);
      Tensors feeds;
      for (std::size_t i = 0; i < p_.inputs.size(); ++i) feeds.push_back(values[static_cast<std::int64_t>(i)]);
      feeds.push_back(K::constant(1, "int32"));
      Tensors out = refused ? call_refused(feeds, refused) : f_(feeds);
      std::int64_t at = 0;
      for (int k = 0; k < n_results_; ++k) o.results.push_back(out[at++]);
      for (bool has : has_first_) o.first.push_back(has ? out[at++] : Tensor());
      for (bool has : has_second_) o.second.push_back(has ? out[at++] : Tensor());
      for (const Tensor& w : weights_) o.weights.push_back(K::get_value(w));
    });
  }

 private:
  void set_weights(const Tensors& values) const {
    for (std::int64_t i = 0; i < weights_.size(); ++i)
      K::set_value(weights_[i], values[static_cast<std::int64_t>(p_.inputs.size()) + i] * 1.0);  // memory of its own
  }
  Tensors call_refused(const Tensors& feeds, std::int64_t nth) const {
#ifdef KASSETTE_REFUSED
    struct Armed {
      explicit Armed(std::int64_t n) { allocations::left = n; }
      ~Armed() { allocations::left = 0; }
    };
    const Tensors before = evaluated(weights_);
    try {
      Armed armed(nth);
      return f_(feeds);
    } catch (const std::bad_alloc&) {
    } catch (const MemoryError&) {
    }
    const Tensors after = evaluated(weights_);
    for (std::int64_t i = 0; i < after.size(); ++i)
      if (doubles(after[i]) != doubles(before[i])) throw RuntimeError("a call that threw has changed a weight");
    throw RuntimeError(kRefused);
#else
    return static_cast<void>(nth), f_(feeds);
#endif
  }
  void make(const Tensors& values, const How& how) {
    Tensors placeholders;
    for (std::size_t i = 0; i < p_.inputs.size(); ++i) {
      const Tensor& v = values[static_cast<std::int64_t>(i)];
      if (how.any_rank) {
        placeholders.push_back(K::placeholder(K::None, K::None, p_.dtype));
        continue;
      }
      if (!how.unknown) {
        placeholders.push_back(K::placeholder(v.shape(), K::None, p_.dtype));
        continue;
      }
      std::vector<Dim> dims;
      for (int d : p_.inputs[i]) dims.push_back(d < 0 ? Dim(K::None) : Dim(d));
      placeholders.push_back(K::placeholder(dims, K::None, p_.dtype));
    }
    for (std::int64_t i = static_cast<std::int64_t>(p_.inputs.size()); i < values.size(); ++i)
      weights_.push_back(K::variable(values[i], p_.dtype));
    Tensors xs = placeholders;
    for (const Tensor& w : weights_) xs.push_back(w);
    Tensors changed;
    Tensors results;
    Playing playing{.functions = true, .unknown = how.unknown};
    if (how.nested) {
      Tensors inner;
      for (const Tensor& x : placeholders) inner.push_back(K::placeholder(x.shape(), K::None, p_.dtype));
      Tensors inner_xs = inner;
      for (const Tensor& w : weights_) inner_xs.push_back(w);
      Tensors all = play(p_, inner_xs, playing, &changed);
      const std::int64_t n = all.size();
      for (const Tensor& c : changed) all.push_back(c);
      inner.push_back(K::learning_phase());
      auto f = K::function(inner, all);
      Tensors given = placeholders;
      given.push_back(K::learning_phase());
      Tensors got = f(given);
      changed.clear();
      for (std::int64_t i = 0; i < got.size(); ++i) (i < n ? results : changed).push_back(got[i]);
    } else {
      results = play(p_, xs, playing, &changed);
    }
    n_results_ = static_cast<int>(results.size());
    Tensors outputs = results;
    if (how.depth >= kFirst) {
      Tensors g = K::gradients(loss_of(p_, results), xs);
      for (const Tensor& t : g) {
        has_first_.push_back(t.defined());
        if (t.defined()) outputs.push_back(t);
      }
      if (Tensor s = how.depth >= kSecond ? penalty_of(g) : Tensor(); s.defined())
        for (const Tensor& t : K::gradients(s, xs)) {
          has_second_.push_back(t.defined());
          if (t.defined()) outputs.push_back(t);
        }
    }
    K::Updates updates;
    for (std::size_t k = 0; k < p_.changes.size(); ++k) {
      const Change& c = p_.changes[k];
      const Tensor &w = xs[c.weight], &v = changed[static_cast<std::int64_t>(k)];
      if (c.mode == 0) updates.push_back({w, v});
      else if (c.mode == 1) updates.push_back(K::update_add(w, v));
      else updates.push_back(K::update_sub(w, v));
    }
    placeholders.push_back(K::learning_phase());
    f_ = K::function(placeholders, outputs, updates);
  }

  const Program& p_;
  Tensors weights_;
  Function f_;
  int n_results_ = 0;
  std::vector<bool> has_first_, has_second_;
};

// ---- comparing ------------------------------------------------------------------------------------------------------

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Where two lists differ; empty if they do not. `within`: the tolerance relative to the largest element; 0 for the
/// same bits. A missing gradient counts as zeros.
std::string difference(const char* what, const Tensors& got, const Tensors& wanted, double within) {
  const bool gradient = std::strstr(what, "gradient");
  if (got.size() == 0 || wanted.size() == 0) return "";  // not asked for
  if (got.size() != wanted.size()) return std::string(what) + ": another number";
  double largest = 0;
  for (const Tensor& t : wanted)
    if (t.defined())
      for (double d : doubles(t)) largest = std::max(largest, std::abs(d));
  for (std::int64_t i = 0; i < got.size(); ++i) {
    if (!got[i].defined() && !wanted[i].defined()) continue;
    const Tensor& there = got[i].defined() ? got[i] : wanted[i];
    if (got[i].defined() && wanted[i].defined() && got[i].shape() != wanted[i].shape())
      return std::string(what) + " " + std::to_string(i) + ": another shape";
    const std::vector<double> zeros(doubles(there).size(), 0), a = got[i].defined() ? doubles(got[i]) : zeros,
                                                               b = wanted[i].defined() ? doubles(wanted[i]) : zeros;
    for (std::size_t k = 0; k < a.size(); ++k) {
      const bool good =
          within > 0
              ? (same(a[k], b[k]) || std::abs(a[k] - b[k]) <= within * std::max(largest, within < 1e-6 ? 1e-2 : 16.0) ||
                 !std::isfinite(largest))
              : same(a[k], b[k]);
      if (good || (gradient && (std::isnan(b[k]) || std::isnan(a[k]))))
        continue;  // 0 * nan, where one way has no product at all
      char line[200];
      std::snprintf(line, sizeof line, "%s %d, element %zu of %zu: %.17g, not %.17g", what, static_cast<int>(i), k,
                    a.size(), a[k], b[k]);
      return line;
    }
  }
  return "";
}

struct Checker {
  const Program& p;
  std::vector<std::string> findings = {};

  void finding(const std::string& way, const std::string& what) { findings.push_back(way + ": " + what); }
  /// `near`: gradients within so much of the largest; 0: the same bits. And results.
  void compare(const std::string& way, const Outcome& got, const Outcome& wanted, double near = 0,
               double near_results = 0) {
    if (got.error != wanted.error) {
      finding(way, "threw \"" + got.error + "\", not \"" + wanted.error + "\"");
      return;
    }
    std::string d = difference("result", got.results, wanted.results, near_results);
    if (d.empty()) d = difference("gradient", got.first, wanted.first, near);
    if (d.empty() && p.dtype == float64)
      d = difference("second gradient", got.second, wanted.second, p.narrow ? 1e-4 : p.inner ? 1e-8 : 1e-10);
    if (d.empty()) d = difference("weight", got.weights, wanted.weights, near_results);
    if (!d.empty()) finding(way, d);
  }
};

std::string named(const Made::How& how) {
  return std::string("function of ") +
         (how.depth == kValues  ? "values"
          : how.depth == kFirst ? "gradients"
                                : "second gradients") +
         (how.unknown ? ", unknown sizes" : "") + (how.any_rank ? ", unknown ranks" : "") +
         (how.nested ? ", inside a function" : "");
}

/// When fast paths are taken: if they are worth it, always, or never.
enum Paths : int { kUsual, kEverywhere, kNowhere };
/// The settings while a program is run.
struct Setting {
  int threads;
  Paths paths;
};
FastPathThresholds thresholds_of(Paths paths) {
  if (paths == kEverywhere) return thresholds_at(0, fast_path_thresholds.off);
  if (paths == kNowhere) return thresholds_at(std::int64_t(1) << 60, ~std::uint64_t(0));
  return fast_path_thresholds;
}
class Set {
 public:
  explicit Set(const Setting& s) : threads_(s.threads), thresholds_(thresholds_of(s.paths)) {}

 private:
  Threads threads_;
  Thresholds thresholds_;
};

/// The ways to play one program.
class Ways {
 public:
  explicit Ways(const Program& p)
      : p_(p), check_{p}, a_(values_for(p, p.sizes[0], 0)), b_(values_for(p, p.sizes[1], 1)),
        a2_(values_for(p, p.sizes[0], 2)) {}

  void play() {
    const Set set({1, kUsual});
    eager_ = eagerly(p_, a_, kSecond, false);
    if (!p_.draws) {
      other_ = eagerly(p_, b_, kFirst, false);
      again_ = eagerly(p_, a2_, kFirst, false);
    }
    bad_time_ = p_.indices >= 0 && p_.sizes[0].time > 0
                    ? static_cast<std::int64_t>(p_.seed % static_cast<std::uint64_t>(p_.sizes[0].time))
                    : -1;
    if (bad_time_ >= 0) {
      bad_ = values_for(p_, p_.sizes[0], 0, bad_time_);
      failing_ = eagerly(p_, bad_, kValues, false);
    }
    {
      const Set plain({1, kNowhere});
      check_.compare("expanded, no fast paths", eagerly(p_, a_, kSecond, true), eager_,
                     p_.nests || p_.invariant ? near() : 0, p_.inner && (p_.nests || p_.invariant) ? near() : 0);
      play_function({kSecond, false, false}, ", no fast paths", /*refused=*/false);
      play_function({kSecond, true, false}, ", no fast paths", /*refused=*/false);
    }
    play_ways({1, kUsual}, /*all=*/true);
    play_ways({2, kEverywhere}, /*all=*/p_.seed % 4 == 0);
    play_function({kSecond, false, false, true}, "", /*refused=*/false);
  }
  const std::vector<std::string>& findings() const { return check_.findings; }

  /// Gradients and second gradients of some elements against central differences.
  void differ() {
    if (!eager_.error.empty()) return;
    constexpr double h = 1e-5;
    std::uint64_t state = p_.seed;
    for (bool second : {false, true}) {
      auto loss = [&](const Tensors& at) {
        K::LearningPhaseScope train(1);
        Tensors xs = variables_of(p_, at);
        Tensor l = loss_of(p_, kassette::test::play(p_, xs, {}));
        return number_of(second ? penalty_of(K::gradients(l, xs)) : l);
      };
      const Tensors& g = second ? eager_.second : eager_.first;
      double scale = 1;
      for (const Tensor& t : g)
        if (t.defined())
          for (double d : doubles(t)) scale = std::max(scale, std::abs(d));
      if (!std::isfinite(scale) || scale > 1e6) continue;
      for (std::int64_t i = 0; i < g.size(); ++i) {
        const std::vector<double> v = doubles(a_[i]);
        for (int tries = 0; tries < 3 && !v.empty(); ++tries) {
          state = state * 6364136223846793005u + 1442695040888963407u;
          const auto k = static_cast<std::size_t>((state >> 33) % v.size());
          auto shifted = [&](double by) {
            std::vector<double> w = v;
            w[k] += by;
            Tensors at = a_;
            at[i] = K::reshape(K::constant(w, p_.dtype, {static_cast<std::int64_t>(w.size())}), a_[i].shape());
            return loss(at);
          };
          if (!std::isfinite(loss(a_))) continue;
          const double found = (shifted(h) - shifted(-h)) / (2 * h), said = g[i].defined() ? doubles(g[i])[k] : 0;
          if (!std::isfinite(found) || !std::isfinite(said) || std::abs(found - said) <= 2e-5 * scale) continue;
          // Skip points where a branch flips or a length changes: f is not differentiable there.
          const double near = (shifted(h / 8) - shifted(-h / 8)) / (h / 4);
          if (std::abs(near - found) > 1e-5 * scale) continue;
          check_.finding(second ? "second differences" : "differences",
                         "input " + std::to_string(i) + ", element " + std::to_string(k) + ": " +
                             std::to_string(found) + ", the gradient is " + std::to_string(said));
          return;
        }
      }
    }
  }

 private:
  /// The results of the first functions: with known and unknown sizes and any rank; of gradients, of second gradients,
  /// and without fast paths.
  struct Firsts {
    Outcome of[3][3];
  };
  double near() const { return p_.dtype == float64 && !p_.narrow ? 1e-11 : 1e-3; }
  static double number_of(const Tensor& t) { return t.defined() ? K::get_value(t).item<double>() : 0; }

  void play_ways(const Setting& setting, bool all) {
    const Set set(setting);
    const bool everywhere = setting.paths == kEverywhere;
    const std::string where = everywhere ? ", fast paths everywhere, 2 threads" : "";
    check_.compare("expanded" + where, eagerly(p_, a_, kSecond, true), eager_);
    if (everywhere) check_.compare("eager" + where, eagerly(p_, a_, kSecond, false), eager_);
    check_.compare("a released loss" + where, eagerly(p_, a_, kSecond, false, true), eager_);
    int way = 0;
    for (Depth depth : {kValues, kFirst, kSecond})
      for (bool unknown : {false, true})
        for (bool nested : {false, true})
          if (all || (++way + static_cast<int>(p_.seed)) % 3 == 0)
            play_function({depth, unknown, nested}, where, /*refused=*/true);
  }

  void play_function(const Made::How& how, const std::string& where, bool refused) {
    const std::string name = named(how) + where;
    try {
      const Made f(p_, a_, how);
      const Outcome own = f.call(a_);
      compare(name, own, eager_, first_, how);
      drawn_ = false;
      if (bad_time_ >= 0) fail_a_step(f, name);
      if (refused && (how.depth != kSecond || p_.seed % 5 == 0)) refuse(f, name, own);
      const Outcome second = f.call(a2_);
      if (!drawn_ || !p_.draws) compare(name + ", second call", second, again_, second_, how);
      if (p_.draws) return;
      if (how.unknown || how.any_rank) compare(name + ", other sizes", f.call(b_), other_, third_, how);
      check_.compare(name + ", again", f.call(a_), own);
    } catch (const Error& e) {
      if (!how.any_rank && eager_.error != without_steps(e.what()))
        check_.finding(name, std::string("making it threw ") + e.what());
    }
  }

  /// - The values of a function equal those of an eager run to the bit, and so do gradients where nothing is nested.
  /// - Gradients of loops, branches and nested calls equal the eager ones only to rounding, because they sum in another
  ///   order, which also depends on what is known of shapes. They equal those of the first function of the same kind to
  ///   the bit.
  void compare(const std::string& name, const Outcome& got, const Outcome& eager, Firsts& firsts,
               const Made::How& how) {
    const bool calls = p_.calls || p_.invariant || how.nested,
               straight = !p_.loops && !p_.branches && !calls && !p_.phase && !p_.inner;
    const double near = this->near();
    if (!eager.results.empty() || !eager.error.empty())
      check_.compare(name, got, eager, straight ? 0 : near, p_.inner ? near : 0);
    if (!got.error.empty() || how.depth == kValues) return;
    Outcome(&functions)[3] = firsts.of[how.any_rank ? 2 : how.unknown];
    Outcome &plain = functions[2], &same = functions[how.depth == kSecond];
    if (plain.first.empty()) plain = got;
    else
      check_.compare(name + ", beside no fast paths", got, plain, calls || p_.nests ? near : 0,
                     p_.inner && (calls || p_.nests) ? near : 0);
    if (fast_path_thresholds.off == ~std::uint64_t(0)) return;
    if (same.first.empty()) same = got;
    else
      check_.compare(name + ", beside the first function", got, same, calls ? near : 0, p_.inner && calls ? near : 0);
  }

  void fail_a_step(const Made& f, const std::string& name) {
    const Outcome failing = f.call(bad_);
    // Unused instructions are removed, so that the failing one may never run.
    drawn_ = drawn_ || failing.error.empty();
    if (!failing.error.empty() && failing.error != failing_.error)
      check_.finding(name + ", a step fails", "threw \"" + failing.error + "\", not \"" + failing_.error + "\"");
  }

  void refuse(const Made& f, const std::string& name, const Outcome& own) {
    std::uint64_t state = p_.seed * 31 + name.size();
    for (int tries = 0; tries < 3; ++tries) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const Outcome o = f.call(a_, 1 + static_cast<std::int64_t>((state >> 33) % (tries == 0 ? 40 : 400)));
      if (o.error == kRefused) continue;
      drawn_ = drawn_ || o.error.empty();
      if (!o.error.empty() && o.error != eager_.error && (eager_.error.empty() || o.error != kNoMemoryToSayIt))
        check_.finding(name + ", an allocation fails", o.error);
      else if (!p_.draws) check_.compare(name + ", an allocation fails", o, own);
    }
  }

  const Program& p_;
  Checker check_;
  const Tensors a_, b_, a2_;  // other sizes, and other numbers
  Tensors bad_;
  std::int64_t bad_time_ = -1;
  Outcome eager_, other_, again_, failing_;
  Firsts first_, second_, third_;  // for a_, a2_ and b_
  bool drawn_ = false;             // by calls between the first and the second
};

std::vector<std::string> findings_of(const Program& p, bool smooth) {
  try {
    Ways ways(p);
    ways.play();
    if (smooth) ways.differ();
    return ways.findings();
  } catch (const std::exception& e) {
    return {e.what()};
  }
}

/// A smaller program with a finding that contains that text.
Program smaller(Program p, bool smooth, const std::string& text) {
  auto has = [&](const Program& q) {
    const std::vector<std::string> all = findings_of(q, smooth);
    return std::any_of(all.begin(), all.end(), [&](const std::string& f) { return f.find(text) != std::string::npos; });
  };
  for (bool again = true; again;) {
    again = false;
    bool end = false;
    for (int k = 0; !end; ++k) {
      Program q = p;
      if (shrink_program(q, k, end) && has(q)) {
        p = std::move(q);
        again = true;
      }
    }
  }
  return p;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::uint64_t most = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : ~0ull;
  std::string home = (std::filesystem::temp_directory_path() / "kassette_programs_XXXXXX").string();
  if (!mkdtemp(home.data())) return 2;
  setenv("KERAS_HOME", home.c_str(), 1);
  unsetenv("KERAS_BACKEND");
  set_print_sink([](const char*) {});
  for (int s : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) signal(s, say_where);
  fast_path_counts.on = true;
  if (const char* off = std::getenv("KASSETTE_FAST_PATHS_OFF"))
    fast_path_thresholds.off = std::strtoull(off, nullptr, 10);  // to find out which it is
  const auto start = std::chrono::steady_clock::now();
  auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::uint64_t played = 0;
  int findings = 0, bad = 0;
  for (; played < most && (most != ~0ull || spent() < seconds); ++played) {
    const std::uint64_t seed = first + played;
    std::snprintf(now, sizeof now, "random_programs: a fatal signal in program %llu",
                  static_cast<unsigned long long>(seed));
    const Program p = draw_program(seed, seed % 8 == 0);
    if (most == 1) std::printf("%s", text(p).c_str());
    const std::vector<std::string> found = findings_of(p, seed % 8 == 0);
    if (!found.empty() && most > 1) std::printf("%s", text(p).c_str());
    for (const std::string& f : found)
      std::printf("FINDING program %llu: %s\n", static_cast<unsigned long long>(seed), f.c_str());
    if (!found.empty() && argc > 4) std::printf("smaller:\n%s", text(smaller(p, seed % 8 == 0, argv[4])).c_str());
    std::fflush(stdout);
    findings += static_cast<int>(found.size());
    bad += !found.empty();
    if (bad && std::getenv("KASSETTE_FIRST_FINDING")) break;
  }
  std::filesystem::remove_all(home);
  for (int i = 0; i < kFastPaths; ++i)
    std::printf("%s %lld%s", kFastPathNames[i], static_cast<long long>(times_taken(static_cast<FastPath>(i))),
                i + 1 < kFastPaths ? ", " : "\n");
  std::printf("%llu programs in %.1f s, %d of them with %d findings\n", static_cast<unsigned long long>(played),
              spent(), bad, findings);
  return bad ? 1 : 0;
}
