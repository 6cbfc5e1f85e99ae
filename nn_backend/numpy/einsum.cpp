// nn_backend/numpy/einsum.cpp - np::einsum: the labels of the axes, and the order in which several tensors are
// multiplied.
#include <kassette/numpy/products.h>

#include <limits>
#include <map>
#include <string>

#include "core/rank.h"
#include "core/text.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/labels.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/checked.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

/// The labels of axes that "..." stands for count from the last one; those of letters are the characters.
constexpr int kEllipsis = 1000;

struct Subscripts {
  std::vector<std::string> inputs;  // each with '.' for its ellipsis
  std::string output;
  bool arrow = false;
};

Subscripts parsed(const std::string& text) {
  const At at{"einsum", "subscripts"};
  Subscripts s;
  std::string* to = &s.inputs.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (text.compare(i, 3, "...") == 0) {
      if (to->find('.') != std::string::npos) fail<ValueError>(at, "'", text, "' has two '...' in one operand");
      *to += '.';
      i += 2;
    } else if (text.compare(i, 2, "->") == 0 && !s.arrow) {
      s.arrow = true;
      to = &s.output;
      ++i;
    } else if (c == ',' && !s.arrow) {
      to = &s.inputs.emplace_back();
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      *to += c;
    } else {
      fail<ValueError>(at, "'", text, "' is not understood at '", text.substr(i), "'", kExpected,
                       "it must be like 'ij,jk->ik', of letters, commas, '...' and one '->'");
    }
  }
  return s;
}

/// What is known of each label: its size, -1 if none is.
using LabelSizes = std::map<int, std::int64_t>;

/// The axes of an operand by label.
Labelled labelled(const std::string& text, const std::string& input, const Tensor& t) {
  const int letters = static_cast<int>(input.size()) - static_cast<int>(input.find('.') != std::string::npos);
  const int rank = known_rank(t, {"einsum", "operands"}), more = rank - letters;
  if (more < 0 || (more > 0 && letters == static_cast<int>(input.size())))
    fail<ValueError>({"einsum", "subscripts"}, "'", text, "': '", input,
                     "' does not label the axes of an operand of shape ", t.shape());
  Labelled x{t, {}};
  for (char c : input) {
    if (c != '.') x.labels.push_back(c);
    else
      for (int i = more; i-- > 0;) x.labels.push_back(kEllipsis + i);
  }
  return x;
}

/// Puts the diagonal in the place of axes that have the same label, as the last axis.
void merge_repeated(Labelled& x) {
  for (std::size_t i = 0; i < x.labels.size(); ++i)
    for (std::size_t j = x.labels.size(); j-- > i + 1;) {
      if (x.labels[j] != x.labels[i]) continue;
      const int label = x.labels[i];
      const Tensor square = ops::checked(x.tensor, [=](const TensorSpec& d) {
        if (d.rank >= 0 && differ(d.dims[i], d.dims[j]))
          fail<ValueError>({"einsum", "operands"}, "hold shape ", d, ", which has two sizes for label '",
                           static_cast<char>(label), "'");
      });
      x.tensor = diagonal_of(square, static_cast<int>(i), static_cast<int>(j), 0);
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(j));
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(i));
      x.labels.push_back(label);
      return merge_repeated(x);
    }
}
[[noreturn]] void fail_sizes(int label, std::int64_t n, std::int64_t m) {
  fail<ValueError>(
      {"einsum", "operands"}, "have sizes ", n, " and ", m, " for ",
      label < kEllipsis ? "label '" + std::string(1, static_cast<char>(label)) + "'" : std::string("an axis of '...'"));
}
LabelSizes sizes_of(const std::vector<Labelled>& terms) {
  LabelSizes sizes;
  for (const Labelled& x : terms)
    for (std::size_t i = 0; i < x.labels.size(); ++i) {
      const std::int64_t n = Access::desc(x.tensor).dims[i];
      std::int64_t& have = sizes.emplace(x.labels[i], n).first->second;
      if (have == n || n == 1) continue;
      if (have == 1 || have < 0) have = n;
      else if (n >= 0) fail_sizes(x.labels[i], have, n);
    }
  return sizes;
}
int place_of(const Labelled& x, int label) {
  const auto at = std::find(x.labels.begin(), x.labels.end(), label);
  return at == x.labels.end() ? -1 : static_cast<int>(at - x.labels.begin());
}
/// Axes of unknown sizes with the size that their label has elsewhere if theirs is 1.
void spread_unknown(std::vector<Labelled>& terms, const LabelSizes& sizes) {
  const std::vector<Labelled> given = terms;
  for (const auto& [label, known] : sizes) {
    std::vector<std::size_t> having;  // terms whose axis is not known to be 1
    bool unknown = false;
    for (std::size_t k = 0; k < given.size(); ++k) {
      const int i = place_of(given[k], label);
      const std::int64_t n = i < 0 ? 1 : Access::desc(given[k].tensor).dims[i];
      if (n != 1) having.push_back(k);
      unknown = unknown || n < 0;
    }
    if (!unknown || having.size() < 2) continue;
    Tensor size;
    for (std::size_t k : having) {
      const Tensor own = size_along(given[k].tensor, place_of(given[k], label));
      size = size.defined() ? ops::where(ops::equal(size, 1), own, size) : own;
    }
    for (std::size_t k : having) {
      Labelled& x = terms[k];
      const int i = place_of(x, label);
      for (std::size_t other : having) {
        const int j = place_of(given[other], label);
        if (other >= k) break;
        x.tensor =
            ops::checked(x.tensor, given[other].tensor, [=, l = label](const TensorSpec& a, const TensorSpec& b) {
              if (a.rank < 0 || b.rank < 0) return;
              const std::int64_t n = a.dims[i], m = b.dims[j];
              if (n != 1 && m != 1 && differ(n, m)) fail_sizes(l, m, n);
            });
      }
      if (Access::desc(x.tensor).dims[i] >= 0) continue;
      SizesOf shape;
      for (int axis = 0; axis < Access::desc(x.tensor).rank; ++axis)
        if (axis == i && known >= 0) shape.push(known);
        else if (axis == i) shape.push(size);
        else shape.push_size(x.tensor, axis);
      x.tensor = ops::broadcast_to(x.tensor, shape);
    }
  }
}
/// Axes of size 1 whose label has another size elsewhere broadcast: without the axis they do.
void drop_ones(Labelled& x, const LabelSizes& sizes) {
  for (std::size_t i = x.labels.size(); i-- > 0;)
    if (Access::desc(x.tensor).dims[i] == 1 && sizes.at(x.labels[i]) != 1) {
      x.tensor = ops::squeeze(x.tensor, static_cast<int>(i));
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(i));
    }
}
/// x summed over the labels that nobody else has.
void sum_alone(Labelled& x, const LabelList& wanted) {
  std::vector<int> axes;
  LabelList kept;
  for (std::size_t i = 0; i < x.labels.size(); ++i)
    if (has(wanted, x.labels[i])) kept.push_back(x.labels[i]);
    else axes.push_back(static_cast<int>(i));
  if (axes.empty()) return;
  x.tensor = ops::sum(x.tensor, axes);
  x.labels = kept;
}

/// The labels of the result and of all terms but two.
LabelList wanted_beside(const std::vector<Labelled>& terms, const LabelList& output, std::size_t i, std::size_t j) {
  LabelList wanted = output;
  for (std::size_t k = 0; k < terms.size(); ++k)
    if (k != i && k != j) wanted.insert(wanted.end(), terms[k].labels.begin(), terms[k].labels.end());
  return wanted;
}
/// The labels that two terms leave: first those of both.
LabelList left_of(const Labelled& a, const Labelled& b, const LabelList& wanted) {
  LabelList left;
  for (int label : a.labels)
    if (has(b.labels, label) && has(wanted, label)) left.push_back(label);
  for (const Labelled* x : {&a, &b})
    for (int label : x->labels)
      if (!has(left, label) && has(wanted, label)) left.push_back(label);
  return left;
}
/// The multiplications that a product of two terms takes; unknown sizes count as 32.
double cost_of(const Labelled& a, const Labelled& b, const LabelSizes& sizes) {
  double cost = 1;
  for (const auto& [label, n] : sizes)
    if (has(a.labels, label) || has(b.labels, label)) cost *= n < 0 ? 32 : static_cast<double>(n);
  return cost;
}

/// The cheapest order, pair by pair, of the products of up to kExact terms: by dynamic programming over the sets of
/// terms. `split[set]` is the part of a set that is multiplied with the rest.
constexpr std::size_t kExact = 8;
std::vector<unsigned> cheapest_splits(const std::vector<Labelled>& terms, const LabelList& output,
                                      const LabelSizes& sizes) {
  const unsigned all = (1u << terms.size()) - 1;
  std::vector<double> cost(all + 1, std::numeric_limits<double>::infinity());
  std::vector<unsigned> split(all + 1, 0);
  std::vector<Labelled> result(all + 1);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    cost[1u << i] = 0;
    result[1u << i].labels = terms[i].labels;
  }
  for (unsigned set = 1; set <= all; ++set) {
    if ((set & (set - 1)) == 0) continue;
    LabelList wanted = output;
    for (std::size_t k = 0; k < terms.size(); ++k)
      if (!(set >> k & 1)) wanted.insert(wanted.end(), terms[k].labels.begin(), terms[k].labels.end());
    for (unsigned part = (set - 1) & set; part > (set ^ part); part = (part - 1) & set) {
      const Labelled &a = result[part], &b = result[set ^ part];
      const LabelList left = left_of(a, b, wanted);
      const double c = cost[part] + cost[set ^ part] + cost_of(a, b, sizes);
      if (left.size() > kMaxRank || c >= cost[set]) continue;
      cost[set] = c;
      split[set] = part;
      result[set].labels = left;
    }
  }
  return split;
}
Labelled multiplied(const Labelled& a, const Labelled& b, const LabelList& wanted) {
  const LabelList left = left_of(a, b, wanted);
  (void)checked_rank("einsum", static_cast<std::int64_t>(left.size()), a.tensor.shape(), " x ", b.tensor.shape());
  Labelled x = a, y = b;
  // A label that is summed over and that only one of them has.
  LabelList of_x = wanted, of_y = wanted;
  of_x.insert(of_x.end(), b.labels.begin(), b.labels.end());
  of_y.insert(of_y.end(), a.labels.begin(), a.labels.end());
  sum_alone(x, of_x);
  sum_alone(y, of_y);
  return {contract(x, y, left), left};
}
Labelled multiply_set(const std::vector<Labelled>& terms, const std::vector<unsigned>& split, unsigned set,
                      const LabelList& output) {
  if ((set & (set - 1)) == 0) return terms[static_cast<std::size_t>(__builtin_ctz(set))];
  LabelList wanted = output;
  for (std::size_t k = 0; k < terms.size(); ++k)
    if (!(set >> k & 1)) wanted.insert(wanted.end(), terms[k].labels.begin(), terms[k].labels.end());
  return multiplied(multiply_set(terms, split, split[set], output),
                    multiply_set(terms, split, set ^ split[set], output), wanted);
}

/// All terms multiplied.
Labelled product_of(std::vector<Labelled> terms, const LabelList& output, const LabelSizes& sizes) {
  while (terms.size() > kExact) {  // the cheapest pair first
    std::size_t first = 0, second = 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < terms.size(); ++i)
      for (std::size_t j = i + 1; j < terms.size(); ++j)
        if (const double c = cost_of(terms[i], terms[j], sizes); c < least) {
          least = c;
          first = i;
          second = j;
        }
    Labelled both = multiplied(terms[first], terms[second], wanted_beside(terms, output, first, second));
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(second));
    terms[first] = std::move(both);
  }
  if (terms.size() == 2) return multiplied(terms[0], terms[1], output);
  const std::vector<unsigned> split = cheapest_splits(terms, output, sizes);
  const unsigned all = (1u << terms.size()) - 1;
  if (terms.size() > 1 && !split[all])
    fail<ValueError>({"einsum", "operands"}, "make products of more than ", kMaxRank, " axes in every order");
  return multiply_set(terms, split, all, output);
}

/// The labels of the result.
LabelList output_of(const std::string& text, const Subscripts& s, const std::vector<Labelled>& terms) {
  std::map<int, int> times;
  int ellipsis = 0;
  for (const Labelled& x : terms)
    for (int label : x.labels) {
      ++times[label];
      if (label >= kEllipsis) ellipsis = std::max(ellipsis, label - kEllipsis + 1);
    }
  LabelList out;
  auto add_ellipsis = [&] {
    for (int i = ellipsis; i-- > 0;) out.push_back(kEllipsis + i);
  };
  if (!s.arrow) {
    add_ellipsis();
    for (const auto& [label, n] : times)
      if (n == 1 && label < kEllipsis) out.push_back(label);
    return out;
  }
  for (char c : s.output) {
    if (c == '.') {
      add_ellipsis();
      continue;
    }
    if (!times.count(c))
      fail<ValueError>({"einsum", "subscripts"}, "'", text, "': no operand has the label '", c, "' of the result");
    if (has(out, c))
      fail<ValueError>({"einsum", "subscripts"}, "'", text, "': the result has the label '", c, "' twice");
    out.push_back(c);
  }
  return out;
}

}  // namespace

Tensor einsum(Name subscripts, const Tensors& operands) {
  return ops::attribute_errors("einsum", [&] {
    const std::string text(subscripts.data() ? subscripts.data() : "", subscripts.size());
    const Subscripts s = parsed(text);
    if (static_cast<std::int64_t>(s.inputs.size()) != operands.size())
      fail<ValueError>({"einsum", "subscripts"}, "'", text, "' has ", s.inputs.size(), " operands", kExpected,
                       operands.size(), " are given");
    DType dtype;
    for (const Tensor& t : operands) {
      if (!t.defined()) fail_empty({"einsum", "operands"});
      dtype = dtype.given() ? promoted(dtype, t.dtype(), "einsum") : t.dtype();
    }
    if (dtype.is_bool()) fail<TypeError>({"einsum", "operands"}, "are bool", kExpected, "they must be numbers");
    std::vector<Labelled> terms;
    for (std::size_t i = 0; i < s.inputs.size(); ++i)
      terms.push_back(labelled(text, s.inputs[i], ops::cast(operands[static_cast<std::int64_t>(i)], dtype)));
    const LabelList output = output_of(text, s, terms);
    for (Labelled& x : terms) merge_repeated(x);
    const LabelSizes sizes = sizes_of(terms);
    spread_unknown(terms, sizes);
    for (Labelled& x : terms) drop_ones(x, sizes);
    for (std::size_t i = 0; i < terms.size(); ++i) sum_alone(terms[i], wanted_beside(terms, output, i, i));
    Labelled y = product_of(terms, output, sizes);
    std::vector<int> order;
    for (int label : output)
      order.push_back(static_cast<int>(std::find(y.labels.begin(), y.labels.end(), label) - y.labels.begin()));
    bool same = true;
    for (std::size_t i = 0; i < order.size(); ++i) same = same && order[i] == static_cast<int>(i);
    return same ? y.tensor : ops::permute(y.tensor, order);
  });
}

}  // namespace numpy
}  // namespace kassette
