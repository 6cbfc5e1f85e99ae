// tests/fuzz/programs.cpp - drawing programs over K, and playing them. One piece: what the numbers of an
// instruction mean is known to these alone.
#include "tests/fuzz/programs.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <sstream>

namespace kassette::test {
namespace K = kassette::backend;
namespace {

// - drawing -----------------------------------------------------------------------------------------------------------

struct Scope {
  std::vector<Type> types;  // of all values that are seen
  int depth = 0;            // loops, branches and functions around
  bool in_loop = false;
  bool closed = false;  // in a body with arguments: what those were computed from is not seen
};

constexpr const char* kUnary[] = {
    "tanh",     "sigmoid",        "softsign", "sin",      "cos",  "square", "neg",  "half",
    "softplus", "exp_neg_square", "sqrt1",    "identity", "relu", "abs",    "elu",  "clip",
    "maximum0", "softmax",        "reverse",  "cumsum",   "stop", "round",  "sign", "log1"};
constexpr int kSmoothUnary = 12, kPlainUnary = 20, kUnaryOps = 24;
constexpr const char* kBinary[] = {"add", "subtract", "multiply", "divide", "fraction", "maximum", "minimum"};
constexpr int kBinaryOps = 7;

std::set<int> needed(const Block& b, std::set<int> live);

/// Whether each result of a loop's body differs from step to step. What does not is computed outside, once. The last
/// arguments may be constants.
bool varies(const Block& b, int constants) {
  std::set<int> varying;
  int at = b.first;
  for (std::size_t i = 0; i < b.arguments.size(); ++i, ++at)
    if (i + static_cast<std::size_t>(constants) < b.arguments.size()) varying.insert(at);
  for (const Instruction& i : b.code) {
    std::set<int> from(i.in.begin(), i.in.end());
    for (const Block& inner : i.blocks)
      for (int v : needed(inner, {}))
        if (v < inner.first) from.insert(v);
    const bool varies =
        i.kind == Kind::dropout || std::any_of(from.begin(), from.end(), [&](int v) { return varying.count(v); });
    for (std::size_t k = 0; k < i.made.size(); ++k, ++at)
      if (varies) varying.insert(at);
  }
  return std::all_of(b.results.begin(), b.results.end(), [&](int r) { return varying.count(r); });
}

class Drawer {
 public:
  Drawer(std::uint64_t seed, bool smooth) : random_(seed * 2654435761u + 17), smooth_(smooth) { p_.seed = seed; }

  Program draw() {
    p_.dtype = smooth_ || chance(2) ? float64 : float32;
    p_.indices = -1;
    draw_sizes();
    Scope s;
    const int features = large_ ? 32 + 16 * below(3) : width();
    p_.inputs = {{kBatch, features}};
    if (!chance(4)) p_.inputs.push_back({kTime, kBatch, chance(large_ ? 2 : 3) ? 4 * features : features});
    if (chance(2)) p_.inputs.push_back({kBatch, kTime, width()});
    if (chance(2)) p_.inputs.push_back({kTime, features});
    if (chance(4)) p_.inputs.push_back({});
    if (!smooth_ && chance(2)) {
      p_.indices = static_cast<int>(p_.inputs.size());
      p_.inputs.push_back({kTime});
    }
    p_.weights = {{features, features}, {features}};
    if (large_ || chance(2)) p_.weights.push_back({features, 4 * (!chance(3) ? features : width())});
    if (chance(2)) p_.weights.push_back({width(), features});
    if (chance(3)) p_.weights.push_back({});
    if (chance(3))
      p_.weights.push_back({2, p_.inputs.back().empty() ? features : std::max(1, p_.inputs.back().back()), features});
    if (chance(3)) p_.weights.push_back({kRows, features});
    s.types = p_.inputs;
    s.types.insert(s.types.end(), p_.weights.begin(), p_.weights.end());
    p_.body.first = static_cast<int>(s.types.size());
    if (large_ && !chance(3)) draw_cell(p_.body, s);
    const int cell = p_.body.code.empty() ? -1 : p_.body.first + 1;  // its outputs
    fill(p_.body, s, 3 + below(large_ ? 8 : 14));
    if (cell >= 0) {
      p_.body.results.push_back(cell);
      p_.losses.push_back(below(3));
    }
    const int n = 1 + below(3);
    for (int i = 0; i < n; ++i) {
      p_.body.results.push_back(recent(s));
      p_.losses.push_back(below(3));
    }
    for (int i = 0; !smooth_ && i < 2 && chance(3); ++i) draw_change(s);
    return std::move(p_);
  }

 private:
  static constexpr int kRows = 4;  // of a table of rows that are gathered

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  bool chance(int n) { return below(n) == 0; }
  int width() { return large_ ? 16 * (1 + below(4)) : 1 + below(5); }
  /// Large programs have no loops within loops.
  int deepest() const { return large_ ? 1 : 3; }
  void draw_sizes() {
    large_ = !smooth_ && chance(6);
    auto one = [&] {
      if (large_) return Sizes{chance(4) ? 2 + below(8) : 24 + below(80), 3 + below(4)};
      return Sizes{1 + below(4), chance(8) ? 0 : 1 + below(4)};
    };
    p_.sizes[0] = one();
    p_.sizes[1] = one();
  }

  int any(const Scope& s) { return below(static_cast<int>(s.types.size())); }
  /// Values that were made last are drawn more often.
  int recent(const Scope& s) {
    const int n = static_cast<int>(s.types.size());
    return chance(3) ? below(n) : n - 1 - below(std::min(n, 4));
  }
  template <class F>
  int find(const Scope& s, F&& good) {
    for (int i = 0; i < 12; ++i)
      if (int v = recent(s); good(s.types[static_cast<std::size_t>(v)])) return v;
    for (int v = static_cast<int>(s.types.size()); v-- > 0;)
      if (good(s.types[static_cast<std::size_t>(v)])) return v;
    return -1;
  }
  const Type& type(const Scope& s, int v) { return s.types[static_cast<std::size_t>(v)]; }

  /// Whether a value of that type is too much for a program that is played a hundred times.
  bool large(const Type& t) const {
    std::int64_t n = 1;
    for (int d : t)
      n *= d == kBatch  ? std::max(p_.sizes[0].batch, p_.sizes[1].batch)
           : d == kTime ? std::max(p_.sizes[0].time, p_.sizes[1].time)
           : d < 0      ? 8
                        : d;
    return n > 1 << 17;
  }
  /// Whether `a` broadcasts to `b` from its last axes on.
  static bool fits_behind(const Type& a, const Type& b) {
    return a.size() <= b.size() &&
           std::equal(a.rbegin(), a.rend(), b.rbegin(), [](int x, int y) { return x == y || x == 1; });
  }

  void add(Block& b, Scope& s, Instruction i, const std::vector<Type>& made) {
    i.made = made;
    if (i.kind == Kind::fold || i.kind == Kind::map || i.kind == Kind::rnn)
      p_.invariant |= !varies(i.blocks[0], i.kind == Kind::rnn ? i.numbers[2] : 0);
    b.code.push_back(std::move(i));
    s.types.insert(s.types.end(), made.begin(), made.end());
  }

  void fill(Block& b, Scope& s, int n) {
    for (int tries = 0; tries < 6 * n && static_cast<int>(b.code.size()) < n; ++tries) draw_one(b, s);
  }

  void draw_one(Block& b, Scope& s) {
    const int v = recent(s);
    const Type t = type(s, v);
    switch (static_cast<Kind>(below(kKinds))) {
      case Kind::unary: {
        int op = below(smooth_ ? kSmoothUnary : chance(4) ? kUnaryOps : chance(2) ? kPlainUnary : kSmoothUnary);
        if ((op == 17 || op == 18 || op == 19) && (t.empty() || t.back() < 1)) op = 0;
        p_.stops |= op >= kPlainUnary && op < 23;
        add(b, s, {Kind::unary, {v}, {op}}, {t});
        return;
      }
      case Kind::binary: {
        const int w = find(s, [&](const Type& o) { return fits_behind(o, t); });
        const int op = below(smooth_ ? kBinaryOps - 2 : kBinaryOps);
        if (chance(2)) add(b, s, {Kind::binary, {v, w}, {op}}, {t});
        else add(b, s, {Kind::binary, {w, v}, {op}}, {t});
        return;
      }
      case Kind::number: add(b, s, {Kind::number, {v}, {below(4)}, 0.1 * (below(30) - 15)}, {t}); return;
      case Kind::reduce: {
        if (t.empty()) return;
        const int axis = below(static_cast<int>(t.size())), keep = below(2), op = below(smooth_ ? 2 : 3);
        if (op == 2 && t[static_cast<std::size_t>(axis)] < 1 && t[static_cast<std::size_t>(axis)] != kBatch)
          return;  // no maximum of nothing
        Type r = t;
        if (keep) r[static_cast<std::size_t>(axis)] = 1;
        else r.erase(r.begin() + axis);
        add(b, s, {Kind::reduce, {v}, {op, axis, keep}}, {r});
        return;
      }
      case Kind::reduce_all: add(b, s, {Kind::reduce_all, {v}, {below(2)}}, {Type{}}); return;
      case Kind::mean_free:
        if (!t.empty() && t.back() > 0) add(b, s, {Kind::mean_free, {v}, {}}, {t});
        return;
      case Kind::dot: return draw_product(b, s);
      case Kind::conv: return draw_conv(b, s);
      case Kind::slice: {
        const int from = find(s, [](const Type& o) { return !o.empty() && o.back() > 1; });
        if (from < 0) return;
        Type o = type(s, from);
        // All the windows of a gate, as recurrent cells have them, or one.
        const int parts = chance(2) && o.back() % 2 == 0 ? (o.back() % 4 == 0 && chance(2) ? 4 : 2) : 0;
        if (parts) {
          const int each = o.back() / parts;
          o.back() = each;
          for (int k = 0; k < parts; ++k) add(b, s, {Kind::slice, {from}, {k * each, (k + 1) * each}}, {o});
          return;
        }
        const int begin = below(o.back() - 1), end = begin + 1 + below(o.back() - begin);
        o.back() = end - begin;
        add(b, s, {Kind::slice, {from}, {begin, end}}, {o});
        return;
      }
      case Kind::concatenate: {
        if (t.empty() || t.back() < 1 || t.back() > 64) return;
        const int w = find(s, [&](const Type& o) {
          return o.size() == t.size() && o.back() > 0 && std::equal(o.begin(), o.end() - 1, t.begin());
        });
        Type r = t;
        r.back() += type(s, w).back();
        if (large(r)) return;
        add(b, s, {Kind::concatenate, {v, w}, {}}, {r});
        return;
      }
      case Kind::gather: {
        const int table = find(s, [](const Type& o) { return o.size() == 2 && o[0] == kRows; });
        if (table < 0 || smooth_) return;
        const int index = s.in_loop || chance(2) ? index_ : p_.indices;
        if (index >= 0 && (index != p_.indices || chance(2))) {
          Type r = type(s, index);
          r.push_back(type(s, table)[1]);
          add(b, s, {Kind::gather, {table, index}, {1}}, {r});
        } else if (t.size() <= 1) {  // of a value: any index, made one of those that there are
          Type r = t;
          r.push_back(type(s, table)[1]);
          add(b, s, {Kind::gather, {table, v}, {0}}, {r});
        }
        return;
      }
      case Kind::permute:
        if (t.size() == 2) add(b, s, {Kind::permute, {v}, {}}, {Type{t[1], t[0]}});
        else if (t.size() == 3) add(b, s, {Kind::permute, {v}, {}}, {Type{t[1], t[0], t[2]}});
        return;
      case Kind::dropout:
        if (smooth_ || !chance(3)) return;
        p_.draws = true;
        add(b, s, {Kind::dropout, {v}, {below(3), 1 + below(1000)}}, {t});
        return;
      case Kind::where: {
        if (smooth_) return;
        const int w = find(s, [&](const Type& o) { return o == t; });
        add(b, s, {Kind::where, {v, w}, {}, 0.1 * (below(9) - 4)}, {t});
        return;
      }
      case Kind::cast:
        if (smooth_) return;
        p_.stops = true;
        add(b, s, {Kind::cast, {v}, {below(3)}}, {t});
        p_.narrow |= b.code.back().numbers[0] == 1;
        return;
      case Kind::head:
        if (t.size() < 2 || t[0] != kBatch) return;
        add(b, s, {Kind::head, {v}, {}}, {Type(t.begin() + 1, t.end())});
        return;
      case Kind::sequence:  // rows for all times, or for all samples
        if (t.empty() || t.size() > 2 || t[0] < 0) return;
        if (const int like =
                find(s, [](const Type& o) { return o.size() >= 2 && (o[0] == kBatch || o[0] == kTime) && o[1] > 0; });
            like >= 0) {
          Type r{type(s, like)[0]};
          r.insert(r.end(), t.begin(), t.end());
          if (large(r)) return;
          add(b, s, {Kind::sequence, {v, like}, {}}, {r});
        }
        return;
      case Kind::branch: return draw_branch(b, s);
      case Kind::phase: {
        if (smooth_ || s.depth >= deepest() || !chance(2)) return;
        p_.phase = true;
        p_.nests |= s.depth > 0;
        Instruction i{Kind::phase, {}, {}};
        for (int k = 0; k < 2; ++k) i.blocks.push_back(draw_block(s, {}, 1 + below(3), t));
        add(b, s, std::move(i), {t});
        return;
      }
      case Kind::fold: return draw_fold(b, s);
      case Kind::map: return draw_map(b, s);
      case Kind::rnn: return draw_rnn(b, s);
      case Kind::call: {
        if (s.depth >= deepest() || !chance(2)) return;
        p_.calls = true;
        const int w = any(s);
        Instruction i{Kind::call, {v, w}, {}};
        Scope inner = s;
        inner.depth += 1;
        inner.closed = true;
        // A function sees its arguments and, as any, the weights.
        Block f = block_with(inner, {t, type(s, w)}, 2 + below(6));
        f.results = {recent(inner), recent(inner)};
        std::vector<Type> made{type(inner, f.results[0]), type(inner, f.results[1])};
        i.blocks.push_back(std::move(f));
        add(b, s, std::move(i), made);
        return;
      }
      case Kind::print:
        if (!smooth_ && chance(4)) add(b, s, {Kind::print, {v}, {}}, {t});
        return;
      case Kind::ragged: {  // the first rows of something, as many as a value says
        const int from = find(s, [](const Type& o) { return o.size() >= 1 && o[0] > 1; });
        if (from < 0 || smooth_) return;
        Type r = type(s, from);
        r[0] = next_ragged_--;
        p_.stops = true;
        add(b, s, {Kind::ragged, {from, v}, {type(s, from)[0]}}, {r});
        if (s.depth < deepest() && chance(2)) draw_fold(b, s, static_cast<int>(s.types.size()) - 1);
        return;
      }
      case Kind::gradient: {  // of something, for an input or a weight
        if (s.closed || !chance(3)) return;
        const int w = below(static_cast<int>(p_.inputs.size() + p_.weights.size()));
        p_.inner = true;
        add(b, s, {Kind::gradient, {v, w}, {}}, {type(s, w)});
        return;
      }
    }
  }

  void draw_conv(Block& b, Scope& s) {
    const int v = find(s, [](const Type& o) { return o.size() == 3 && o[0] == kBatch && o[2] > 0; });
    const int w = find(
        s, [&](const Type& o) { return o.size() == 3 && o[0] == 2 && v >= 0 && o[1] == type(s, v)[2] && o[2] > 0; });
    if (v < 0 || w < 0) return;
    Type r = type(s, v);
    r[2] = type(s, w)[2];
    add(b, s, {Kind::conv, {v, w}, {}}, {r});
    add_bias(b, s, r);
  }
  /// Behind a product: a bias and perhaps a relu, or what keeps values small.
  void add_bias(Block& b, Scope& s, const Type& r) {
    const int product = static_cast<int>(s.types.size()) - 1;
    const int row = find(s, [&](const Type& o) { return o.size() == 1 && o[0] == r.back(); });
    if (row >= 0 && chance(2)) {
      add(b, s, {Kind::binary, {product, row}, {0}}, {r});
      if (!smooth_ && chance(2)) add(b, s, {Kind::unary, {product + 1}, {12}}, {r});
    } else {
      add(b, s, {Kind::unary, {product}, {below(3)}}, {r});
    }
  }

  void draw_product(Block& b, Scope& s) {
    int w = -1, v = -1;
    for (int tries = 0; tries < 8 && w < 0; ++tries) {
      v = find(s, [](const Type& o) { return o.size() >= 2 && o.back() > 0; });
      if (v < 0) return;
      w = find(s, [&](const Type& o) { return o.size() == 2 && o[0] == type(s, v).back() && o[1] > 0; });
    }
    if (w < 0) return;
    Type r = type(s, v);
    r.back() = type(s, w)[1];
    if (large(r) || large({r.size() > 2 ? 256 : 1, type(s, v).back(), r.back()})) return;
    add(b, s, {Kind::dot, {v, w}, {}}, {r});
    add_bias(b, s, r);
  }

  /// A block whose result has that type: what it makes, brought there.
  Block draw_block(const Scope& outer, const std::vector<Type>& arguments, int n, const Type& wanted) {
    Scope s = outer;
    s.depth += 1;
    Block b = block_with(s, arguments, n);
    b.results = {result_of_type(b, s, wanted)};
    return b;
  }
  Block block_with(Scope& s, const std::vector<Type>& arguments, int n) {
    Block b;
    b.first = static_cast<int>(s.types.size());
    b.arguments = arguments;
    s.types.insert(s.types.end(), arguments.begin(), arguments.end());
    fill(b, s, n);
    return b;
  }
  /// A value of that type, which may be made for it. The sum of something keeps the block's own work in it.
  int result_of_type(Block& b, Scope& s, const Type& wanted) {
    int base = find(s, [&](const Type& o) { return o == wanted; });
    if (base >= b.first && chance(2)) return bounded(b, s, base);
    int own = -1;
    for (int i = 0; i < 8 && own < b.first; ++i) own = recent(s);
    if (own < b.first || base < 0) return base;
    if (fits_behind(type(s, own), wanted)) {
      add(b, s, {Kind::binary, {base, own}, {below(3)}}, {wanted});
    } else {
      add(b, s, {Kind::reduce_all, {own}, {1}}, {Type{}});
      add(b, s, {Kind::binary, {base, static_cast<int>(s.types.size()) - 1}, {below(3)}}, {wanted});
    }
    return bounded(b, s, static_cast<int>(s.types.size()) - 1);
  }
  int bounded(Block& b, Scope& s, int v) {
    add(b, s, {Kind::unary, {v}, {below(4)}}, {type(s, v)});
    return static_cast<int>(s.types.size()) - 1;
  }

  void draw_branch(Block& b, Scope& s) {
    if (s.depth >= deepest()) return;
    const int v = recent(s), condition = recent(s);
    const Type t = type(s, v);
    p_.branches = true;
    p_.nests |= s.depth > 0;
    Instruction i{
        Kind::branch, {condition}, {}, 0.1 * (below(8) - 4) + 0.05};  // sums of what cancels are 0 but for rounding
    for (int k = 0; k < 2; ++k) i.blocks.push_back(draw_block(s, {}, 1 + below(4), t));
    add(b, s, std::move(i), {t});
  }

  /// Values that have an axis 0 of one size to go along.
  std::vector<int> draw_elements(const Scope& s, int most, int wanted = -1) {
    const int first =
        wanted >= 0 ? wanted : find(s, [](const Type& o) { return !o.empty() && o[0] != 1 && o[0] <= 5; });
    if (first < 0) return {};
    std::vector<int> found{first};
    const int size = type(s, first)[0];
    if (size <= kRagged) return found;
    while (static_cast<int>(found.size()) < most && chance(2))
      found.push_back(find(s, [&](const Type& o) { return !o.empty() && o[0] == size; }));
    return found;
  }
  std::vector<Type> elements_of(const Scope& s, const std::vector<int>& values) {
    std::vector<Type> types;
    for (int v : values) types.push_back(Type(type(s, v).begin() + 1, type(s, v).end()));
    return types;
  }

  void draw_fold(Block& b, Scope& s, int elements = -1) {
    if (s.depth >= deepest()) return;
    const std::vector<int> xs = draw_elements(s, 1, elements);
    if (xs.empty()) return;
    const int size = type(s, xs[0])[0];
    const std::vector<Type> e = elements_of(s, xs);
    const bool starts = size > 0 && chance(4);  // from the first element
    const int start = starts ? -1 : find(s, [](const Type& o) { return !has_ragged(o); });
    const Type state = starts ? e[0] : type(s, start);
    p_.loops = true;
    p_.nests |= s.depth > 0;
    Instruction i{Kind::fold, starts ? xs : std::vector<int>{xs[0], start}, {below(2), checkpoint()}};
    Scope inner = s;
    inner.in_loop = inner.closed = true;
    i.blocks.push_back(draw_block(inner, {state, e[0]}, 1 + below(5), state));
    if (chance(12)) i.blocks[0].results[0] = i.blocks[0].first;  // a state that only feeds itself
    p_.invariant |= i.blocks[0].results[0] == i.blocks[0].first;
    add(b, s, std::move(i), {state});
  }

  void draw_map(Block& b, Scope& s) {
    if (s.depth >= deepest()) return;
    std::vector<int> xs = draw_elements(s, 3);
    if (xs.empty()) return;
    const int size = type(s, xs[0])[0];
    const bool indexed = size == kTime && p_.indices >= 0 && !s.in_loop && chance(2);
    if (indexed) xs.push_back(p_.indices);
    p_.loops = true;
    p_.nests |= s.depth > 0;
    Instruction i{Kind::map, xs, {checkpoint()}};
    Scope inner = s;
    inner.in_loop = inner.closed = true;
    inner.depth += 1;
    const int old = index_;
    if (indexed) index_ = static_cast<int>(inner.types.size() + xs.size()) - 1;
    Block body = block_with(inner, elements_of(s, xs), 1 + below(6));
    index_ = old;
    int result = -1;
    for (int tries = 0; tries < 8 && (result < body.first || has_ragged(type(inner, result))); ++tries)
      result = recent(inner);
    if (has_ragged(type(inner, result))) return;
    body.results = {result};
    Type r{size};
    r.insert(r.end(), type(inner, result).begin(), type(inner, result).end());
    if (large(r)) return;
    i.blocks.push_back(std::move(body));
    add(b, s, std::move(i), {r});
  }
  static bool has_ragged(const Type& t) {
    return std::any_of(t.begin(), t.end(), [](int d) { return d <= kRagged; });
  }

  /// A cell as people write them: h = tanh(x + h w), or an LSTM's gates out of one product.
  void draw_cell(Block& b, Scope& s) {
    int x = -1, w = -1;
    for (int tries = 0; tries < 12 && w < 0; ++tries) {
      x = find(s, [](const Type& o) {
        return o.size() == 3 && ((o[0] == kTime && o[1] == kBatch) || (o[0] == kBatch && o[1] == kTime)) && o[2] > 0;
      });
      if (x < 0) return;
      const int n = type(s, x)[2];
      w = find(s, [&](const Type& o) { return o.size() == 2 && o[1] == n && (o[0] == n || 4 * o[0] == n); });
    }
    if (w < 0) return;
    const bool lstm = type(s, w)[0] != type(s, w)[1];
    const int n = type(s, w)[0], all = type(s, w)[1];
    const int start = find(s, [&](const Type& o) { return o == Type{kBatch, n}; });
    if (start < 0) return;
    p_.loops = true;
    p_.nests |= s.depth > 0;
    const bool time_major = type(s, x)[0] == kTime, mask = chance(3);
    p_.stops |= mask;
    Instruction i{
        Kind::rnn, {x, start}, {1, 1 + lstm, 0, mask && !smooth_, below(2), 0, time_major, below(2), checkpoint()}};
    if (lstm) i.in.push_back(start);
    Scope inner = s;
    inner.in_loop = inner.closed = true;
    inner.depth += 1;
    std::vector<Type> arguments{{kBatch, all}, {kBatch, n}};
    if (lstm) arguments.push_back({kBatch, n});
    Block body = block_with(inner, arguments, 0);
    const int first = body.first;
    auto step = [&](Instruction in, const Type& t) {
      add(body, inner, std::move(in), {t});
      return static_cast<int>(inner.types.size()) - 1;
    };
    auto of = [&](int op, int v, int width) { return step({Kind::unary, {v}, {op}}, {kBatch, width}); };
    auto two = [&](int op, int v, int u, int width) { return step({Kind::binary, {v, u}, {op}}, {kBatch, width}); };
    const int z = two(0, first, step({Kind::dot, {first + 1, w}, {}}, {kBatch, all}), all);
    int h = z, c = -1;
    if (lstm) {
      int gates[4];
      for (int k = 0; k < 4; ++k)
        gates[k] = of(k == 2 ? 0 : 1, step({Kind::slice, {z}, {k * n, (k + 1) * n}}, {kBatch, n}), n);
      c = two(0, two(2, gates[1], first + 2, n), two(2, gates[0], gates[2], n), n);
      h = two(2, gates[3], of(0, c, n), n);
    } else {
      h = of(0, z, all);
    }
    body.results = {h, h};
    if (lstm) body.results.push_back(c);
    i.blocks.push_back(std::move(body));
    Type stacked{kBatch, kTime, n};
    if (time_major) std::swap(stacked[0], stacked[1]);
    std::vector<Type> made{{kBatch, n}, stacked, {kBatch, n}};
    if (lstm) made.push_back({kBatch, n});
    add(b, s, std::move(i), made);
  }

  void draw_rnn(Block& b, Scope& s) {
    if (s.depth >= deepest()) return;
    if (chance(2)) return draw_cell(b, s);
    const bool time_major = chance(2);
    const Type axes = time_major ? Type{kTime, kBatch} : Type{kBatch, kTime};
    auto good = [&](const Type& o) { return o.size() >= 3 && std::equal(axes.begin(), axes.end(), o.begin()); };
    std::vector<int> xs{find(s, good)};
    if (xs[0] < 0) return;
    if (chance(4)) xs.push_back(find(s, good));
    std::vector<int> states;
    const int n_states = below(3);
    for (int k = 0; k < n_states; ++k) {
      const int st =
          find(s, [](const Type& o) { return !o.empty() && o[0] == kBatch && o.size() <= 2 && !has_ragged(o); });
      if (st >= 0) states.push_back(st);
    }
    const bool mask = !states.empty() && !smooth_ && chance(2), backwards = chance(2), unroll = !mask && chance(6),
               constant = chance(3);
    p_.loops = true;
    p_.nests |= s.depth > 0;
    p_.stops |= mask;
    std::vector<Type> arguments;
    for (int x : xs) {
      Type e = type(s, x);
      e.erase(e.begin() + (time_major ? 0 : 1));
      arguments.push_back(e);
    }
    for (int st : states) arguments.push_back(type(s, st));
    const int c = constant ? any(s) : -1;
    if (constant) arguments.push_back(type(s, c));
    Instruction i{Kind::rnn,
                  xs,
                  {static_cast<int>(xs.size()), static_cast<int>(states.size()), constant, mask, backwards, unroll,
                   time_major, below(2), checkpoint()}};
    i.in.insert(i.in.end(), states.begin(), states.end());
    if (constant) i.in.push_back(c);
    Scope inner = s;
    inner.in_loop = inner.closed = true;
    inner.depth += 1;
    Block body = block_with(inner, arguments, 1 + below(8));
    const int out =
        find(inner, [](const Type& o) { return !o.empty() && o[0] == kBatch && o.size() <= 3 && !has_ragged(o); });
    if (out < 0) return;
    int result = out;
    for (std::size_t k = 0; k < states.size(); ++k) {
      const int own = body.first + static_cast<int>(xs.size() + k);
      // A state that only feeds itself, one that is the output, or a new one.
      const Type& wanted = type(s, states[k]);
      if (k > 0 && chance(5) && type(s, states[k - 1]) == wanted)
        body.results.push_back(body.results.back());  // two states, one value
      else
        body.results.push_back(chance(8)                                 ? own
                               : type(inner, out) == wanted && chance(3) ? out
                                                                         : result_of_type(body, inner, wanted));
    }
    for (int r : body.results)
      p_.nests |= r == result;  // its cotangent is a sum of what later steps give and what the outputs do
    body.results.insert(body.results.begin(), result);
    const Type& o = type(inner, out);
    Type stacked = o;
    stacked.insert(stacked.begin() + (time_major ? 0 : 1), kTime);
    if (large(stacked)) return;
    std::vector<Type> made{o, stacked};
    for (int st : states) made.push_back(type(s, st));
    i.blocks.push_back(std::move(body));
    add(b, s, std::move(i), made);
  }

  /// -2: as it is, else what checkpoint_steps is given.
  int checkpoint() { return chance(5) ? below(4) : -2; }

  void draw_change(const Scope& s) {
    const int n = static_cast<int>(p_.inputs.size());
    const int w = n + below(static_cast<int>(p_.weights.size()));
    for (const Change& c : p_.changes)
      if (c.weight == w && !chance(3)) return;
    const Type& t = type(s, w);
    const int v = find(s, [&](const Type& o) { return o == t; });
    p_.changes.push_back({w, v, below(3)});
  }

  std::mt19937_64 random_;
  bool smooth_, large_ = false;
  int next_ragged_ = kRagged;
  int index_ = -1;  // the argument that is an index, in the body of a loop
  Program p_;
};

// - playing -----------------------------------------------------------------------------------------------------------

class Player {
 public:
  Player(const Program& p, const Playing& how) : p_(p), how_(how) {}

  std::vector<Tensor> run(const Block& b, std::vector<Tensor> env) {
    for (const Instruction& i : b.code)
      for (Tensor& t : run(i, env)) env.push_back(std::move(t));
    return env;
  }
  /// With what is seen from outside.
  Tensors results(const Block& b, const std::vector<Tensor>& outer, const Tensors& arguments) {
    std::vector<Tensor> env(outer.begin(), outer.begin() + b.first);
    for (const Tensor& t : arguments) env.push_back(t);
    env = run(b, std::move(env));
    Tensors out;
    for (int r : b.results) out.push_back(env[static_cast<std::size_t>(r)]);
    return out;
  }

 private:
  Tensor number(double c) const { return K::constant(c, p_.dtype); }

  static Tensor unary(int op, const Tensor& x) {
    switch (op) {
      case 0: return K::tanh(x);
      case 1: return K::sigmoid(x);
      case 2: return K::softsign(x);
      case 3: return K::sin(x);
      case 4: return K::cos(x);
      case 5: return K::square(K::tanh(x));
      case 6: return -x;
      case 7: return x * 0.5;
      case 8: return K::softplus(x);
      case 9: return K::exp(-K::square(x));
      case 10: return K::sqrt(K::square(x) + 1.0);
      case 11: return K::identity(x);
      case 12: return K::relu(x);
      case 13: return K::abs(x);
      case 14: return K::elu(x);
      case 15: return K::clip(x, -0.3, 0.4);
      case 16: return K::maximum(x, 0.0);
      case 17: return K::softmax(x);
      case 18: return K::reverse(x, -1);
      case 19: return K::cumsum(x, -1);
      case 20: return K::stop_gradient(x);
      case 21: return K::round(x * 3.0);
      case 22: return K::sign(x);
      default: return K::log(K::square(x) + 1.5);
    }
  }
  static Tensor binary(int op, const Tensor& a, const Tensor& b) {
    switch (op) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return a * b;
      case 3: return a / (K::square(b) + 1.0);
      case 4: return K::tanh(a) * K::sigmoid(b);
      case 5: return K::maximum(a, b);
      default: return K::minimum(a, b);
    }
  }

  Tensors run(const Instruction& i, const std::vector<Tensor>& env) {
    auto at = [&](std::size_t k) -> const Tensor& { return env[static_cast<std::size_t>(i.in[k])]; };
    auto n = [&](std::size_t k) { return i.numbers[k]; };
    switch (i.kind) {
      case Kind::unary: return unary(n(0), at(0));
      case Kind::binary: return binary(n(0), at(0), at(1));
      case Kind::number:
        return n(0) == 0   ? at(0) + i.constant
               : n(0) == 1 ? i.constant - at(0)
               : n(0) == 2 ? at(0) * i.constant
                           : i.constant / (K::square(at(0)) + 1.0);
      case Kind::reduce:
        return n(0) == 0   ? K::sum(at(0), n(1), n(2))
               : n(0) == 1 ? K::mean(at(0), n(1), n(2))
                           : K::max(at(0), n(1), n(2));
      case Kind::reduce_all: return n(0) ? K::tanh(K::sum(at(0))) : K::tanh(K::sum(K::square(at(0))));
      case Kind::mean_free: return at(0) - K::mean(at(0), -1, true);
      case Kind::dot: return K::dot(at(0), at(1));
      case Kind::conv: return K::conv1d(at(0), at(1), 1, "same");
      case Kind::slice: return at(0)(kassette::ellipsis, kassette::slice(n(0), n(1)));
      case Kind::concatenate: return K::concatenate({at(0), at(1)});
      case Kind::gather: {
        Tensor index = K::cast(at(1), "int32");
        if (!n(0)) index = K::clip(K::cast(K::clip(at(1) * 2.0 + 1.5, 0.0, 3.0), "int32"), 0, 3);
        return K::gather(at(0), index);
      }
      case Kind::permute:
        return K::ndim(at(0)) == 2 ? K::permute_dimensions(at(0), {1, 0}) : K::permute_dimensions(at(0), {1, 0, 2});
      case Kind::dropout:
        if (n(0) == 0) return K::dropout(at(0), 0.4, K::None, n(1));
        if (n(0) == 1) return at(0) * K::random_uniform({}, 0.5, 1.5, p_.dtype, n(1));
        return at(0) + K::random_normal(K::shape(at(0)), 0.0, 0.1, p_.dtype, n(1));
      case Kind::where: return K::switch_(at(0) > i.constant, at(0) * 0.5, at(1));
      case Kind::cast:
        if (n(0) == 2) return K::cast(K::cast(K::clip(at(0) * 4.0, -9.0, 9.0), "int32"), p_.dtype);
        return K::cast(K::cast(at(0), n(0) ? "float32" : "float64"), p_.dtype);
      case Kind::head: return K::sum(at(0)(kassette::slice(0, 1)), 0) + at(0)(-1);
      case Kind::sequence: {
        Tensor along = at(1);
        while (K::ndim(along) > 1) along = K::sum(along, -1);
        for (int k = 0; k < K::ndim(at(0)); ++k) along = K::expand_dims(along, -1);
        return K::tanh(along) + at(0);
      }
      case Kind::branch:
        return K::switch_(
            K::mean(at(0)) > i.constant, [&] { return results(i.blocks[0], env, {})[0]; },
            [&] { return results(i.blocks[1], env, {})[0]; });
      case Kind::phase:
        return K::in_train_phase([&] { return results(i.blocks[0], env, {})[0]; },
                                 [&] { return results(i.blocks[1], env, {})[0]; });
      case Kind::fold: {
        auto body = [&](const Tensor& state, const Tensor& x) { return results(i.blocks[0], env, {state, x})[0]; };
        const Tensor none;
        return checkpointed(n(1), [&] {
          if (i.in.size() == 1) return n(0) ? K::foldl(body, at(0)) : K::foldr(body, at(0));
          return n(0) ? K::foldl(body, at(0), at(1)) : K::foldr(body, at(0), at(1));
        });
      }
      case Kind::map: {
        Tensors xs;
        for (std::size_t k = 0; k < i.in.size(); ++k) xs.push_back(at(k));
        return checkpointed(n(0), [&] {
          return K::map_fn([&](const Tensors& e) { return results(i.blocks[0], env, e)[0]; }, xs, K::None, p_.dtype);
        });
      }
      case Kind::rnn: return rnn(i, env);
      case Kind::call: return call(i, env);
      case Kind::print: return K::print_tensor(at(0));
      case Kind::ragged: {
        Tensor count =
            K::cast(K::clip(K::abs(K::sum(K::clip(at(1), -5.0, 5.0))) * 2.0, 0.0, static_cast<double>(n(0))), "int32");
        return K::slice(at(0), first_rows(at(0), nullptr), first_rows(at(0), &count));
      }
      case Kind::gradient: {
        const Tensor g = K::gradients(K::sum(K::square(at(0))), {at(1)})[0];
        return g.defined() ? K::tanh(g) : at(1) * 0.0;
      }
    }
    return {};
  }
  /// Where a slice of rows begins, or, with a count, how far it goes.
  static std::vector<Dim> first_rows(const Tensor& x, const Tensor* count) {
    std::vector<Dim> dims;
    for (int k = 0; k < K::ndim(x); ++k) dims.push_back(k == 0 && count ? Dim(*count) : Dim(count ? -1 : 0));
    return dims;
  }

  template <class F>
  static Tensors checkpointed(int steps, F f) {
    if (steps < 0) return f();
    auto scope = K::checkpoint_steps(steps);
    return f();
  }

  static bool known_time(const Tensor& x, int axis) {
    const Extent time = x.shape()[axis];
    return time.known() && std::int64_t(time) > 0;
  }

  Tensors rnn(const Instruction& i, const std::vector<Tensor>& env) {
    const int nx = i.numbers[0], ns = i.numbers[1];
    const bool constant = i.numbers[2], mask = i.numbers[3], time_major = i.numbers[6];
    Tensors xs, states;
    auto at = [&](int k) { return env[static_cast<std::size_t>(i.in[static_cast<std::size_t>(k)])]; };
    for (int k = 0; k < nx; ++k) xs.push_back(at(k));
    for (int k = 0; k < ns; ++k) states.push_back(at(nx + k));
    K::RnnOptions o;
    o.go_backwards = i.numbers[4];
    o.unroll = i.numbers[5] && known_time(xs[0], time_major ? 0 : 1);
    o.time_major = time_major;
    o.zero_output_for_mask = i.numbers[7];
    if (constant) o.constants = {at(nx + ns)};
    if (mask) {
      Tensor m = xs[0];
      while (K::ndim(m) > 2) m = K::mean(m, -1);
      o.mask = m > -0.05;
    }
    auto step = [&](const Tensors& x, const Tensors& s) {
      Tensors arguments = x;
      for (const Tensor& t : s) arguments.push_back(t);
      Tensors out = results(i.blocks[0], env, arguments);
      Tensors next;
      for (std::int64_t k = 1; k < out.size(); ++k) next.push_back(out[k]);
      return K::Step{out[0], next};
    };
    return checkpointed(i.numbers[8], [&] {
      K::RnnResult r = K::rnn(step, xs, states, o);
      Tensors all{r.last_output, r.outputs};
      for (const Tensor& t : r.new_states) all.push_back(t);
      return all;
    });
  }

  Tensors call(const Instruction& i, const std::vector<Tensor>& env) {
    const Block& b = i.blocks[0];
    Tensors given{env[static_cast<std::size_t>(i.in[0])], env[static_cast<std::size_t>(i.in[1])]};
    if (!how_.functions) return results(b, env, given);
    // What its code sees is an input too, but for the weights.
    Tensors placeholders, feeds;
    auto input = [&](const Tensor& t) {
      feeds.push_back(t);
      placeholders.push_back(how_.unknown ? K::placeholder(K::None, K::ndim(t), p_.dtype)
                                          : K::placeholder(t.shape(), K::None, p_.dtype));
      return placeholders[placeholders.size() - 1];
    };
    std::vector<Tensor> seen = env;
    for (std::size_t k = 0; k < seen.size(); ++k)
      if (k < p_.inputs.size() || k >= p_.inputs.size() + p_.weights.size()) seen[k] = input(seen[k]);
    Tensors arguments;
    for (const Tensor& t : given) arguments.push_back(input(t));
    auto f = K::function(placeholders, results(b, seen, arguments));
    return f(feeds);
  }

  const Program& p_;
  const Playing how_;
};

std::string text(const Type& t) {
  std::string s = "(";
  for (int d : t)
    s += (s.size() > 1 ? ", " : "") + (d == kBatch ? "B" : d == kTime ? "T" : d <= kRagged ? "R" : std::to_string(d));
  return s + ")";
}

/// What results of a block need: values by number. Those of the block itself stay in `live`.
std::set<int> needed(const Block& b, std::set<int> live) {
  for (int r : b.results) live.insert(r);
  int at = b.first + static_cast<int>(b.arguments.size());
  for (const Instruction& i : b.code) at += static_cast<int>(i.made.size());
  for (auto i = b.code.rbegin(); i != b.code.rend(); ++i) {
    at -= static_cast<int>(i->made.size());
    if (live.lower_bound(at) == live.lower_bound(at + static_cast<int>(i->made.size()))) continue;
    live.insert(i->in.begin(), i->in.end());
    for (const Block& inner : i->blocks)
      for (int v : needed(inner, {}))
        if (v < inner.first) live.insert(v);
  }
  return live;
}

void write(std::ostream& os, const Block& b, int indent, const std::set<int>& also = {}) {
  const std::set<int> live = needed(b, also);
  static constexpr const char* kNames[] = {
      "unary",       "binary", "number",  "reduce",  "reduce_all", "mean_free", "dot",    "conv",     "slice",
      "concatenate", "gather", "permute", "dropout", "where",      "cast",      "head",   "sequence", "branch",
      "phase",       "fold",   "map",     "rnn",     "call",       "print",     "ragged", "gradient"};
  const std::string space(static_cast<std::size_t>(indent), ' ');
  int at = b.first;
  for (const Type& t : b.arguments) os << space << "%" << at++ << " = argument " << text(t) << '\n';
  for (const Instruction& i : b.code) {
    const int end = at + static_cast<int>(i.made.size());
    if (live.lower_bound(at) == live.lower_bound(end)) {
      at = end;
      continue;
    }
    os << space;
    for (std::size_t k = 0; k < i.made.size(); ++k) os << (k ? ", %" : "%") << at++;
    os << " = " << kNames[static_cast<int>(i.kind)];
    if (i.kind == Kind::unary) os << ' ' << kUnary[i.numbers[0]];
    else if (i.kind == Kind::binary) os << ' ' << kBinary[i.numbers[0]];
    for (int v : i.in) os << " %" << v;
    if (i.kind != Kind::unary && i.kind != Kind::binary)
      for (int n : i.numbers) os << ' ' << n;
    if (i.constant != 0) os << " c=" << i.constant;
    os << '\n';
    for (const Block& inner : i.blocks) {
      os << space << "  {\n";
      write(os, inner, indent + 4);
      os << space << "  }\n";
    }
  }
  os << space << "->";
  for (int r : b.results) os << " %" << r;
  os << '\n';
}

}  // namespace

Program draw_program(std::uint64_t seed, bool smooth) { return Drawer(seed, smooth).draw(); }

namespace {

bool is_copy(const Instruction& i) { return i.kind == Kind::unary && i.numbers[0] == 11; }

/// Goes on to the k-th instruction from here, 0 being the next.
bool replace(Block& b, std::vector<Type> types, int& k) {
  types.resize(static_cast<std::size_t>(b.first));
  types.insert(types.end(), b.arguments.begin(), b.arguments.end());
  for (std::size_t j = 0; j < b.code.size(); ++j) {
    Instruction& i = b.code[j];
    if (k-- == 0) {
      if (is_copy(i)) return false;
      std::vector<Instruction> copies;
      for (const Type& t : i.made) {
        const auto same = std::find(types.begin(), types.end(), t);
        if (same == types.end()) return false;
        copies.push_back({Kind::unary, {static_cast<int>(same - types.begin())}, {11}});
        copies.back().made = {t};
      }
      b.code.erase(b.code.begin() + static_cast<std::ptrdiff_t>(j));
      b.code.insert(b.code.begin() + static_cast<std::ptrdiff_t>(j), copies.begin(), copies.end());
      return true;
    }
    for (Block& inner : i.blocks) {
      const bool replaced = replace(inner, types, k);
      if (k < 0) return replaced;
    }
    types.insert(types.end(), i.made.begin(), i.made.end());
  }
  return false;
}

}  // namespace

bool shrink_program(Program& p, int k, bool& end) {
  std::vector<Type> types = p.inputs;
  types.insert(types.end(), p.weights.begin(), p.weights.end());
  end = false;
  const int results = static_cast<int>(p.body.results.size());
  if (k < results) {  // one result less
    if (results == 1) return false;
    p.body.results.erase(p.body.results.begin() + k);
    p.losses.erase(p.losses.begin() + k);
    return true;
  }
  k -= results;
  if (k < static_cast<int>(p.changes.size())) {
    p.changes.erase(p.changes.begin() + k);
    return true;
  }
  k -= static_cast<int>(p.changes.size());
  const bool replaced = replace(p.body, types, k);
  end = k >= 0;
  return replaced;
}

std::string text(const Program& p) {
  std::ostringstream os;
  os << "program " << p.seed << ", " << p.dtype << ", sizes";
  for (const Sizes& s : p.sizes) os << " B=" << s.batch << " T=" << s.time;
  os << '\n';
  int at = 0;
  for (const Type& t : p.inputs) os << "%" << at++ << " = input " << text(t) << '\n';
  for (const Type& t : p.weights) os << "%" << at++ << " = weight " << text(t) << '\n';
  std::set<int> changed;
  for (const Change& c : p.changes) changed.insert(c.value);
  write(os, p.body, 0, changed);
  for (const Change& c : p.changes)
    os << "%" << c.weight << (c.mode == 0 ? " := %" : c.mode == 1 ? " += %" : " -= %") << c.value << '\n';
  return os.str();
}

Tensors play(const Program& p, const Tensors& values, const Playing& how, Tensors* changed) {
  Player player(p, how);
  std::vector<Tensor> env = player.run(p.body, std::vector<Tensor>(values.begin(), values.end()));
  if (changed)
    for (const Change& c : p.changes) changed->push_back(env[static_cast<std::size_t>(c.value)]);
  Tensors results;
  for (int r : p.body.results) results.push_back(env[static_cast<std::size_t>(r)]);
  return results;
}

Tensor loss_of(const Program& p, const Tensors& results) {
  Tensor loss;
  for (std::int64_t i = 0; i < results.size(); ++i) {
    const int how = p.losses[static_cast<std::size_t>(i)];
    Tensor part = how == 0   ? K::sum(results[i])
                  : how == 1 ? K::mean(K::square(results[i]))
                             : K::sum(K::sin(results[i] + 0.3 * static_cast<double>(i)));
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

Tensors values_for(const Program& p, const Sizes& sizes, int which, std::int64_t bad) {
  Tensors all;
  std::uint64_t state = p.seed * 977 + static_cast<std::uint64_t>(which) * 131 + 5;
  for (std::size_t i = 0; i < p.inputs.size() + p.weights.size(); ++i) {
    const bool input = i < p.inputs.size();
    const Type& t = input ? p.inputs[i] : p.weights[i - p.inputs.size()];
    if (!input && which) state = p.seed * 977 + 71 * i;  // other feeds, the same weights
    std::vector<std::int64_t> shape;
    std::int64_t n = 1;
    for (int d : t) {
      shape.push_back(d == kBatch ? sizes.batch : d == kTime ? sizes.time : d);
      n *= shape.back();
    }
    if (!input) state = p.seed * 977 + 71 * i;
    std::vector<double> v;
    for (std::int64_t k = 0; k < n; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double unit = static_cast<double>(state >> 11) * 0x1p-53;
      if (static_cast<int>(i) == p.indices) v.push_back(k == bad ? 9 : std::floor(unit * 4));
      else v.push_back(2 * unit - 1);
    }
    all.push_back(K::reshape(K::constant(v, p.dtype, {n}), shape));
  }
  return all;
}

}  // namespace kassette::test
