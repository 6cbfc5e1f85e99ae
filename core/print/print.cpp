// core/print/print.cpp - printing tensors as NumPy prints arrays.
#include <kassette/print.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

#include "core/print/array_text.h"
#include "core/convert.h"
#include "core/external_backend_access.h"
#include "core/sparse.h"
#include "core/text.h"

namespace kassette {
namespace {

constinit std::mutex options_mutex;
constinit PrintOptions options_in_use;

// ---- sparse tensors -------------------------------------------------------------------------------------------------

/// The indices of the entries to print, with -1 in place of those left out. Each entry takes a line, so the threshold
/// is a twentieth of that of dense tensors: by default 50 lines.
std::vector<std::int64_t> shown_entries(std::int64_t n, const PrintOptions& options) {
  std::vector<std::int64_t> shown;
  std::int64_t edge = options.edgeitems;
  bool cut = n > options.threshold / 20 && n > 2 * edge;
  for (std::int64_t k = 0; k < n; ++k) {
    if (cut && k == edge) {
      shown.push_back(-1);
      k = n - edge;
      if (k == n) break;
    }
    shown.push_back(k);
  }
  return shown;
}

/// The values of those entries, one text for each.
std::vector<std::string> entry_texts(const TensorDesc& values, const std::vector<std::int64_t>& entries,
                                     const PrintOptions& options) {
  const Tensor host = host_copy(Access::wrap(values), values.dtype);
  const std::byte* from = Access::desc(host).data();
  int size = values.dtype.size();
  TensorDesc few;
  few.set(TensorSpec(values.dtype, {0}));
  few.device = cpu;
  for (std::int64_t k : entries) few.dims[0] += k >= 0;
  few.storage = Storage::allocate(few.bytes(), cpu);
  std::byte* to = few.data();
  for (std::int64_t k : entries)
    if (k >= 0) {
      std::memcpy(to, from + k * size, static_cast<std::size_t>(size));
      to += size;
    }
  return element_texts(few, options);
}

/// A line "(0, 12)  1.5" for each entry, in the stored order, with aligned columns.
std::string sparse_text(const TensorDesc& b, const PrintOptions& options) {
  const TensorDesc& indices = sparse_part(b, kIndices);
  Value v = concrete_value(indices, "print");
  const auto* at = reinterpret_cast<const std::int64_t*>(static_cast<const std::byte*>(v.storage->data) + v.offset);
  std::vector<std::int64_t> entries = shown_entries(indices.dims[0], options);
  std::vector<std::string> values = entry_texts(sparse_part(b, kValues), entries, options);
  std::size_t width[kMaxRank] = {};
  for (std::int64_t k : entries)
    for (int i = 0; k >= 0 && i < b.rank; ++i) width[i] = std::max(width[i], std::to_string(at[k * b.rank + i]).size());
  std::string out;
  std::size_t next = 0;
  for (std::int64_t k : entries) {
    if (!out.empty()) out += '\n';
    if (k < 0) {
      out += "...";
      continue;
    }
    out += '(';
    for (int i = 0; i < b.rank; ++i) {
      std::string s = std::to_string(at[k * b.rank + i]);
      out += (i ? ", " : "") + std::string(width[i] - s.size(), ' ') + s;
    }
    out += (b.rank == 1 ? ",)  " : ")  ") + values[next++];
    while (out.back() == ' ') out.pop_back();
  }
  return out.empty() ? "no entries" : out;
}

/// A tensor without a value: its name, if it has one, shape and dtype.
std::string described(const TensorDesc& b, const char* name, const char* why) {
  return text("Tensor(", name ? text('"', name, "\", ") : std::string(), "shape=", b.shape(), ", dtype=", b.dtype,
              ", device=", b.device, ", ", why, ')');
}

std::string whole_sparse_text(const TensorDesc& b) {
  if (b.symbolic())
    return described(b, is_sparse_placeholder(b) ? sparse_part(b, kValues).node->cell->name : nullptr,
                     "sparse, symbolic");
  PrintOptions options = print_options();
  std::string s = sparse_text(b, options);
  if (!options.details) return s;
  std::int64_t n = sparse_part(b, kIndices).dims[0];
  return s + text('\n', b.shape(), ' ', b.dtype, ' ', b.device, ", sparse, ", n, n == 1 ? " entry" : " entries");
}

bool has_value(const TensorDesc& b) { return b.storage || (b.flags & kLeaf && b.node->cell->load().storage); }

std::string tensor_text(const Tensor& x) {
  if (!x.defined()) return "Tensor()";
  const TensorDesc& b = Access::desc(x);
  if (b.flags & kForeign) return foreign_text(b);
  if (is_sparse(b)) return whole_sparse_text(b);
  if (b.symbolic() || !has_value(b))
    return described(b, b.flags & kLeaf ? b.node->cell->name : nullptr, b.symbolic() ? "symbolic" : "no value yet");
  PrintOptions options = print_options();
  std::string s = dense_text(b, options);
  if (options.details)
    s += text(s.find('\n') == std::string::npos ? ' ' : '\n', b.shape(), ' ', b.dtype, ' ', b.device);
  return s;
}

}  // namespace

std::ostream& operator<<(std::ostream& os, const Tensor& x) { return os << tensor_text(x); }

std::ostream& operator<<(std::ostream& os, const Tensors& list) {
  std::string out = "[";
  const char* comma = "";
  for (const Tensor& t : list) {
    std::string s = tensor_text(t);
    for (std::size_t at = s.find('\n'); at != std::string::npos; at = s.find('\n', at + 2)) s.insert(at + 1, 1, ' ');
    (out += comma) += s;
    comma = ",\n ";
  }
  return os << out + ']';
}

Text array_text(const Tensor& x) { return array_text(x, print_options()); }
Text array_text(const Tensor& x, const PrintOptions& options) {
  if (!x.defined()) fail_empty({"print"});
  const TensorDesc& b = Access::desc(x);
  return Text(is_sparse(b) && !b.symbolic() ? sparse_text(b, options) : dense_text(b, options));
}

namespace {

std::mutex sink_mutex;
PrintSink& sink_in_use() {
  static auto* sink = new PrintSink;  // never destroyed: a tensor may be printed at exit
  return *sink;
}

}  // namespace

PrintSink set_print_sink(const PrintSink& sink) {
  std::lock_guard<std::mutex> lock(sink_mutex);
  PrintSink old = sink_in_use();
  sink_in_use() = sink;
  return old;
}
void write_print(const std::string& line) {
  PrintSink sink;
  {
    std::lock_guard<std::mutex> lock(sink_mutex);
    sink = sink_in_use();
  }
  if (sink.defined()) return sink(line.c_str());
  std::string whole = line + '\n';  // in one piece: other threads print too
  std::fwrite(whole.data(), 1, whole.size(), stdout);
  std::fflush(stdout);
}

PrintOptions print_options() {
  std::lock_guard<std::mutex> lock(options_mutex);
  return options_in_use;
}
void set_print_options(const PrintOptions& o) {
  const auto check = [](const char* name, std::int64_t n) {
    if (n < 0) fail<ValueError>({"set_print_options", name}, "is ", n, kExpected, "it must not be negative");
  };
  check("precision", o.precision);
  check("threshold", o.threshold);
  check("edgeitems", o.edgeitems);
  check("linewidth", o.linewidth);
  std::lock_guard<std::mutex> lock(options_mutex);
  options_in_use = o;
}
std::ostream& operator<<(std::ostream& os, const PrintOptions& o) {
  const char* modes[] = {"automatic", "suppress", "never", "always"};
  return os << text("PrintOptions(precision=", o.precision, ", sci_mode=", modes[static_cast<int>(o.sci_mode) & 3],
                    ", details=", o.details ? "true" : "false", ", threshold=", o.threshold,
                    ", edgeitems=", o.edgeitems, ", linewidth=", o.linewidth, ')');
}

// ---- text -----------------------------------------------------------------------------------------------------------

Text::Text(Name text) : chars_(nullptr) {
  if (!text.given()) return;
  check_text(text);
  chars_ = strndup(text.data(), text.size());
  if (!chars_) throw std::bad_alloc();
}
Text::Text(const Text& other) : Text(other.chars_ ? Name(other) : Name()) {}
Text& Text::operator=(const Text& other) { return *this = Text(other); }
Text& Text::operator=(Text&& other) noexcept {
  std::swap(chars_, other.chars_);
  return *this;
}
Text::~Text() { std::free(chars_); }
std::size_t Text::size() const { return std::strlen(c_str()); }
bool operator==(const Text& a, const Name& b) {
  return b.given() && a.size() == b.size() && std::memcmp(a.c_str(), b.data(), b.size()) == 0;
}
std::ostream& operator<<(std::ostream& os, const Text& text) { return os << text.c_str(); }

}  // namespace kassette
