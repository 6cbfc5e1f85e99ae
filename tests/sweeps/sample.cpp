// tests/sweeps/sample.cpp - reading the table of samples.
#include "tests/sweeps/sample.h"

#include <kassette/testing.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <sstream>

#include "tests/nn_samples.h"
#include "tests/np_samples.h"
#include "tests/op_samples.h"

namespace kassette::test {

std::span<const Sample> op_samples() {
  static const std::vector<Sample> all = [] {
    std::vector<Sample> rows(std::begin(kOpSamples), std::end(kOpSamples));
    for (Sample s : kNumpySamples) {
      s.traits.k = false;
      s.traits.np = true;
      rows.push_back(s);
    }
    for (Sample s : kNnSamples) {
      s.traits.k = false;
      s.traits.nn = true;
      rows.push_back(s);
    }
    return rows;
  }();
  return all;
}

std::vector<Shapes> cases_of(const Sample&, const char* text) {
  std::vector<Shapes> out;
  if (!*text) return out;
  out.emplace_back();
  std::vector<std::int64_t> dims;
  for (const char* p = text; *p;) {
    char* end = nullptr;
    std::int64_t n = std::strtoll(p, &end, 10);
    if (end != p) {
      dims.push_back(n);
      p = end;
      continue;
    }
    if (*p == '|') out.emplace_back();
    if (*p == '(') dims.clear();
    if (*p == ')') out.back().push_back(Shape(dims.data(), static_cast<int>(dims.size())));
    ++p;
  }
  return out;
}

std::vector<std::vector<Shapes>> cases_by_ranks(const Sample& s) {
  std::vector<std::vector<Shapes>> groups;
  auto ranks = [](const Shapes& shapes) {
    std::vector<int> r;
    for (const Shape& x : shapes) r.push_back(x.rank());
    return r;
  };
  for (const Shapes& shapes : cases_of(s)) {
    bool found = false;
    for (auto& group : groups)
      if (!s.traits.sized && ranks(group[0]) == ranks(shapes)) {
        group.push_back(shapes);
        found = true;
      }
    if (!found) groups.push_back({shapes});
  }
  return groups;
}

Tensor placeholder_for(const Sample& s, std::size_t input, const Shape& shape, DType dtype) {
  const DType d = s.in[input].dtype.given() ? s.in[input].dtype : dtype;
  return s.traits.sized ? backend::placeholder(shape, None, d) : backend::placeholder(None, shape.rank(), d);
}

Shapes grown(const Shapes& shapes, std::int64_t elements) {
  std::int64_t dims[kMaxRank];
  std::fill_n(dims, kMaxRank, 1);
  for (const Shape& s : shapes)
    for (int i = 0; i < s.rank(); ++i) dims[i] = std::max(dims[i], s.begin()[s.rank() - 1 - i]);
  double n = 1, axes = 0;
  for (std::int64_t d : dims) {
    n *= static_cast<double>(d);
    axes += d > 1;
  }
  auto factor = static_cast<std::int64_t>(axes > 0 ? std::pow(static_cast<double>(elements) / n, 1 / axes) : 1);
  Shapes out;
  for (const Shape& s : shapes) {
    std::int64_t to[kMaxRank];
    for (int i = 0; i < s.rank(); ++i) to[i] = s.begin()[i] > 1 ? s.begin()[i] * factor : s.begin()[i];
    out.push_back(Shape(to, s.rank()));
  }
  return out;
}

Tensor make_input(const Input& input, const Shape& shape, DType dtype, int number) {
  DType type = input.dtype.given() ? input.dtype : dtype;
  std::int64_t n = shape.numel(), step = 7;
  while (n > 0 && std::gcd(step, n) != 1) ++step;
  double low = type.is_unsigned() ? std::fmax(input.low, 0) : input.low, offset = std::fmod(0.37 + 0.2173 * number, 1);
  auto whole = static_cast<std::int64_t>(std::floor(input.high) - std::ceil(low) + 1);
  std::vector<double> v(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t rank = (i * step + 3 * number + 1) % std::max<std::int64_t>(n, 1);
    double& x = v[static_cast<std::size_t>(i)];
    if (type.is_float()) x = low + (input.high - low) * (static_cast<double>(rank) + offset) / static_cast<double>(n);
    else if (type.is_bool()) x = static_cast<double>((i * 5 + number + i / 3) % 3 != 0);
    else x = std::ceil(low) + static_cast<double>((i * 7 + i / 5 + 3 * number) % std::max<std::int64_t>(whole, 1));
  }
  return backend::constant(v, type, shape);
}

Tensors make_inputs(const Sample& s, const Shapes& shapes, DType dtype) {
  Tensors in;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    in.push_back(make_input(s.in[i], shapes[i], dtype, static_cast<int>(i)));
  return in;
}

Tensors call(const Sample& s, const Tensors& in) {
  Tensor args[kMaxInputs];
  for (std::int64_t i = 0; i < in.size(); ++i) args[i] = in[i];
  return s.call(args);
}

std::vector<DType> dtypes_of(Takes takes) {
  std::vector<DType> out;
  for (int c = DType::kBool; c < DType::kCount; ++c) {
    DType d(static_cast<DType::Code>(c));
    bool ok = takes == Takes::anything || (takes == Takes::floats && d.is_float()) ||
              (takes == Takes::bools && d.is_bool()) || (takes == Takes::numbers && !d.is_bool()) ||
              (takes == Takes::integers && d.is_integer()) || (takes == Takes::bits && !d.is_float());
    if (ok) out.push_back(d);
  }
  return out;
}

std::string text(const Shape& shape) {
  std::ostringstream out;
  out << shape;
  return out.str();
}

std::string title(const Sample& s, const Shapes& shapes, DType dtype) {
  std::string t = std::string(s.traits.np   ? "np::"
                              : s.traits.nn ? "nn::"
                              : s.traits.k  ? "K::"
                                            : "op ") +
                  s.name + " #" + std::to_string(&s - &op_samples()[0]);
  for (const Shape& shape : shapes) t += " " + text(shape);
  return t + " " + dtype.name();
}

std::string bad_message(const Sample& s, const char* message) {
  std::string m = message, start = std::string(s.name) + ": ";
  if (m.find('\n') != std::string::npos) return "the message has more than one line: " + m;
  std::string also = " " + std::string(s.traits.also) + " ", by = m.substr(0, m.find(':'));
  if (also.find(" " + by + " ") != std::string::npos) return "";
  if (m.compare(0, start.size(), start) != 0) return "the message does not start with \"" + start + "\": " + m;
  return "";
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  auto bytes = static_cast<std::size_t>(a.size() * a.dtype().size());
  return bytes == 0 || std::memcmp(a.data(a.dtype()), b.data(b.dtype()), bytes) == 0;
}

double unit_of(DType d) {
  return d == float16 ? 0x1p-10 : d == bfloat16 ? 0x1p-7 : d == float32 ? 0x1p-23 : d == float64 ? 0x1p-52 : 0;
}

double folded(const Tensors& results, const Tensor& out) {
  double n = 1;
  for (const Tensor& x : results)
    n = std::fmax(n, static_cast<double>(x.size()) / static_cast<double>(std::max<std::int64_t>(1, out.size())));
  return n;
}

double units_apart(const Tensor& a, const Tensor& b, double n) {
  if (same_bits(a, b)) return 0;
  if (a.shape() != b.shape() || a.dtype() != b.dtype() || !a.dtype().is_float()) return INFINITY;
  auto x = a.to_vector<double>(), y = b.to_vector<double>();
  double most = 0, off = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return INFINITY;
    off = std::fmax(off, std::fabs(x[i] - y[i]));
  }
  for (double v : x)
    if (std::isfinite(v)) most = std::fmax(most, std::fabs(v));
  return off / std::fmax(most, n > 1 ? n : 0) / unit_of(a.dtype());
}

std::vector<std::string> ops_behind(const Tensors& ys) {
  std::vector<std::string> names;
  std::set<const Node*> seen;
  std::vector<const Node*> todo;
  auto visit = [&](const TensorDesc& b) {
    if (b.node && seen.insert(b.node.get()).second) todo.push_back(b.node.get());
  };
  for (const Tensor& y : ys)
    if (y.defined()) visit(Access::desc(y));
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    if (n->op) names.push_back(n->op->name);
    for (std::uint32_t i = 0; i < n->n_in; ++i) visit(n->in()[i]);
  }
  return names;
}

std::string Ledger::change() const {
  Totals now = totals();
  std::string s;
  auto note = [&](const char* what, std::int64_t a, std::int64_t b) {
    if (a != b) s += std::string(s.empty() ? "" : ", ") + std::to_string(b - a) + " more " + what;
  };
  note("live nodes", before_.live_nodes, now.live_nodes);
  note("live tensors", before_.live_tensors, now.live_tensors);
  note("live bytes", before_.live_bytes, now.live_bytes);
  note("saved bytes", before_.saved_bytes, now.saved_bytes);
  return s;
}

}  // namespace kassette::test
