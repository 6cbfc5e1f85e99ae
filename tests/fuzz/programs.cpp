// tests/fuzz/programs.cpp - which values of a program are needed, its text, and programs with an instruction less.
#include "tests/fuzz/programs.h"

#include <algorithm>
#include <sstream>

namespace kassette::test {

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

namespace {

std::string text(const Type& t) {
  std::string s = "(";
  for (int d : t)
    s += (s.size() > 1 ? ", " : "") + (d == kBatch ? "B" : d == kTime ? "T" : d <= kRagged ? "R" : std::to_string(d));
  return s + ")";
}

void write(std::ostream& os, const Block& b, int indent, const std::set<int>& also = {}) {
  const std::set<int> live = needed(b, also);
  static constexpr const char* kNames[] = {
      "unary",       "binary", "number",  "reduce",  "reduce_all", "mean_free", "dot",    "conv",     "slice",
      "concatenate", "gather", "permute", "dropout", "where",      "cast",      "head",   "sequence", "branch",
      "phase",       "fold",   "map",     "rnn",     "call",       "print",     "ragged", "gradient", "matmul",
      "vecdot",      "take",   "put",     "solve",   "diff",       "top_k"};
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

bool is_copy(const Instruction& i) { return i.kind == Kind::unary && i.numbers[0] == kIdentity; }

/// Advances to the k-th instruction from here; 0 is the next one.
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
        copies.push_back({Kind::unary, {static_cast<int>(same - types.begin())}, {kIdentity}});
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

}  // namespace kassette::test
