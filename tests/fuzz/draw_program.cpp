// tests/fuzz/draw_program.cpp - draws a program: instructions over the values so far, and bodies of loops, branches and
// functions. One piece: all that is drawn comes from one generator, and reads the values that were drawn before.
#include "tests/fuzz/programs.h"

#include <algorithm>
#include <random>
#include <set>

namespace kassette::test {
namespace {

struct Scope {
  std::vector<Type> types;  // of all values that are seen
  int depth = 0;            // loops, branches and functions around
  bool in_loop = false;
  bool closed = false;  // in a body with arguments: what those were computed from is not seen
};

/// Whether each result of a loop's body differs from step to step. A result that does not is computed once, outside of
/// the loop. The last arguments may be constants.
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

  /// Whether a value of that type is too large for a program that is run a hundred times.
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
    const auto kind = static_cast<Kind>(below(kKinds));
    switch (kind) {
      case Kind::unary: {
        int op = below(smooth_ ? kSmoothUnary : chance(4) ? kUnaryOps : chance(2) ? kPlainUnary : kSmoothUnary);
        if (op >= kAlongAxis && op < kPlainUnary && (t.empty() || t.back() < 1)) op = 0;
        p_.stops |= op >= kPlainUnary && op < kUnaryOps - 1;
        add(b, s, {Kind::unary, {v}, {op}}, {t});
        return;
      }
      case Kind::binary: {
        const int w = find(s, [&](const Type& o) { return fits_behind(o, t); });
        const int op = below(smooth_ ? kSmoothBinary : kBinaryOps);
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
      case Kind::matmul:
      case Kind::vecdot:
      case Kind::take:
      case Kind::put:
      case Kind::solve:
      case Kind::diff:
      case Kind::top_k: return draw_array(kind, b, s, v);
    }
  }

  /// What works on the last axis, or the last two.
  void draw_array(Kind kind, Block& b, Scope& s, int v) {
    const Type t = type(s, v);
    const int last = t.empty() ? 0 : t.back();
    if (last < 1) return;
    Type r = t;
    switch (kind) {
      case Kind::matmul:
        if (t.size() < 2) return;
        r.back() = t[t.size() - 2];
        if (!large(r) && !large({256, last, r.back()})) add(b, s, {kind, {v}, {}}, {r});
        return;
      case Kind::vecdot:
        r.pop_back();
        add(b, s, {kind, {v, find(s, [&](const Type& o) { return o == t; })}, {}}, {r});
        return;
      case Kind::take:
        r.back() = 4;
        add(b, s, {kind, {v}, {last, below(last)}}, {r});
        return;
      case Kind::put: {
        Type row = t;
        row.pop_back();
        Instruction i{kind, {v}, {below(3), below(last)}, 0.1 * (1 + below(9))};
        if (const int w = find(s, [&](const Type& o) { return o == row; }); w >= 0 && chance(2)) i.in.push_back(w);
        add(b, s, std::move(i), {r});
        return;
      }
      case Kind::solve: {
        const int a = find(s, [](const Type& o) { return o.size() == 2 && o[0] == o[1] && o[0] > 0; });
        if (a < 0) return;
        const int n = type(s, a)[0];
        const int y = find(
            s, [&](const Type& o) { return (o.size() == 1 && o[0] == n) || (o.size() == 2 && o[0] == n && o[1] > 0); });
        if (y >= 0) add(b, s, {kind, {a, y}, {n}}, {type(s, y)});
        return;
      }
      case Kind::diff:
        r.back() = last - 1;
        if (last > 1) add(b, s, {kind, {v}, {}}, {r});
        return;
      default:  // top_k
        r.back() = 1 + below(last);
        if (!smooth_) add(b, s, {kind, {v}, {r.back()}}, {r});
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
  /// After a product: a bias and perhaps a relu, or an op that keeps values small.
  void add_bias(Block& b, Scope& s, const Type& r) {
    const int product = static_cast<int>(s.types.size()) - 1;
    const int row = find(s, [&](const Type& o) { return o.size() == 1 && o[0] == r.back(); });
    if (row >= 0 && chance(2)) {
      add(b, s, {Kind::binary, {product, row}, {0}}, {r});
      if (!smooth_ && chance(2)) add(b, s, {Kind::unary, {product + 1}, {kRelu}}, {r});
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

  /// A block whose result has that type: one of the block's own values is brought to it.
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

  /// Values with an axis 0 of the same size, to loop over.
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

  /// -2: without checkpoints; otherwise the argument of checkpoint_steps.
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

}  // namespace

Program draw_program(std::uint64_t seed, bool smooth) { return Drawer(seed, smooth).draw(); }

}  // namespace kassette::test
