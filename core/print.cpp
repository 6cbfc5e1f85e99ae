// core/print.cpp - printing tensors as NumPy prints arrays.
#include <kassette/print.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

#include "core/convert.h"
#include "core/decimal.h"
#include "core/engine_access.h"
#include "core/sparse.h"
#include "core/text.h"

namespace kassette {
namespace {

constinit std::mutex options_mutex;
constinit PrintOptions options_in_use;

/// The elements that are shown, on the host: along an axis that is cut, the edges from both ends.
struct Shown {
  Spec spec;                  // of what is kept
  bool cut[kMaxRank] = {};    // an axis has more elements than are shown
  std::vector<std::byte> bytes;

  Shown(const Body& b, const PrintOptions& options) {
    Value v = concrete_value(b, "print");
    spec.set(b);
    std::int64_t total = b.numel(), edge = options.edgeitems;
    if (total > options.threshold)
      for (int i = 0; i < spec.rank; ++i)
        if (spec.dims[i] > 2 * edge) {
          cut[i] = true;
          spec.dims[i] = 2 * edge;
        }
    bytes.resize(static_cast<std::size_t>(spec.bytes()));
    if (bytes.empty()) return;
    source_ = static_cast<const std::byte*>(v.storage->data) + v.offset;
    backend_ = b.device.type() == Device::kCpu ? nullptr : &backend_of(b.device);
    std::byte* to = bytes.data();
    gather(b, 0, 0, to);
  }

 private:
  const std::byte* source_ = nullptr;
  Backend* backend_ = nullptr;

  void gather(const Body& b, int axis, std::int64_t at, std::byte*& to) {
    bool whole = true;
    std::int64_t inner = 1;
    for (int i = axis; i < b.rank; ++i) {
      whole &= !cut[i];
      if (i > axis) inner *= b.dims[i];
    }
    if (whole) {
      copy(at, axis < b.rank ? inner * b.dims[axis] : 1, to);
      return;
    }
    std::int64_t n = spec.dims[axis], skipped = b.dims[axis] - n;
    bool flat = axis + 1 == b.rank;
    if (flat) {
      copy(at, n / 2, to);
      copy(at + b.dims[axis] - n / 2, n / 2, to);
      return;
    }
    for (std::int64_t i = 0; i < n; ++i)
      gather(b, axis + 1, at + (cut[axis] && i >= n / 2 ? i + skipped : i) * inner, to);
  }
  void copy(std::int64_t at, std::int64_t n, std::byte*& to) {
    std::int64_t size = spec.dtype.size();
    if (n == 0) return;
    if (backend_) backend_->copy_to_host(to, source_ + at * size, n * size);
    else std::memcpy(to, source_ + at * size, static_cast<std::size_t>(n * size));
    to += n * size;
  }
};

double float_at(const Shown& shown, std::int64_t i) {
  double v;
  convert(&v, float64, shown.bytes.data() + i * shown.spec.dtype.size(), shown.spec.dtype, 1);
  return v;
}
std::int64_t int_at(const Shown& shown, std::int64_t i) {
  std::int64_t v;
  convert(&v, int64, shown.bytes.data() + i * shown.spec.dtype.size(), shown.spec.dtype, 1);
  return v;
}

double as_dtype(double value, DType dtype) {
  std::byte narrow[8];
  convert(narrow, dtype, &value, float64, 1);
  convert(&value, float64, narrow, dtype, 1);
  return value;
}

/// How floats are written so that they stand in columns with the points below each other: NumPy's FloatingFormat.
class FloatFormat {
 public:
  FloatFormat(const Shown& shown, const PrintOptions& options) : shown_(shown), dtype_(shown.spec.dtype), precision_(options.precision) {
    std::int64_t n = shown.spec.numel();
    scientific_ = is_scientific(n, options.sci_mode);
    bool nan = false, inf = false, negative_inf = false;
    int exponent = 2, left = 0, right = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      double v = float_at(shown_, i);
      if (!std::isfinite(v)) {
        (std::isnan(v) ? nan : v < 0 ? negative_inf : inf) = true;
        continue;
      }
      std::string s = scientific_ ? scientific_text(v, dtype_, {precision_}) : positional_text(v, dtype_, precision_);
      std::size_t point = s.find('.'), end = scientific_ ? s.find('e') : s.size();
      left = std::max(left, static_cast<int>(point));
      right = std::max(right, static_cast<int>(end - point - 1));
      if (scientific_) exponent = std::max(exponent, static_cast<int>(s.size() - end - 2));
    }
    exponent_ = exponent;
    if (scientific_) precision_ = right;
    left_ = left;
    right_ = scientific_ ? right + exponent + 2 : right;
    int widest = negative_inf ? 4 : nan || inf ? 3 : 0;
    left_ = std::max(left_, widest - right_ - 1);
  }
  std::string operator()(std::int64_t i) const {
    double v = float_at(shown_, i);
    std::size_t width = static_cast<std::size_t>(left_ + right_ + 1);
    if (!std::isfinite(v)) {
      std::string s = scalar_text(v, dtype_);
      return std::string(width - s.size(), ' ') + s;
    }
    std::string s = scientific_ ? scientific_text(v, dtype_, {precision_, /*exact_digits=*/true, exponent_})
                                : positional_text(v, dtype_, precision_);
    s.insert(0, static_cast<std::size_t>(left_) - s.find('.'), ' ');
    if (!scientific_) s.resize(width, ' ');
    return s;
  }

 private:
  bool is_scientific(std::int64_t n, SciMode mode) const {
    if (mode == SciMode::always || mode == SciMode::never) return mode == SciMode::always;
    double largest = 0, smallest = INFINITY;
    for (std::int64_t i = 0; i < n; ++i) {
      double size = std::fabs(float_at(shown_, i));
      if (!std::isfinite(size) || size == 0) continue;
      largest = std::max(largest, size);
      smallest = std::min(smallest, size);
    }
    if (largest == 0) return false;
    if (largest >= std::pow(10.0, std::min(8, sure_digits(dtype_)))) return true;
    // In the precision of the dtype: 0.0001 itself is not below 0.0001.
    return mode == SciMode::automatic &&
           (smallest < as_dtype(0.0001, dtype_) || as_dtype(largest / smallest, dtype_) > 1000);
  }
  const Shown& shown_;
  DType dtype_;
  int precision_;
  bool scientific_;
  int exponent_, left_, right_;
};

class IntFormat {
 public:
  explicit IntFormat(const Shown& shown) : shown_(shown) {
    for (std::int64_t i = 0, n = shown.spec.numel(); i < n; ++i)
      width_ = std::max(width_, std::to_string(int_at(shown, i)).size());
  }
  std::string operator()(std::int64_t i) const {
    std::string s = std::to_string(int_at(shown_, i));
    return std::string(width_ - s.size(), ' ') + s;
  }

 private:
  const Shown& shown_;
  std::size_t width_ = 0;
};

class BoolFormat {
 public:
  explicit BoolFormat(const Shown& shown) : shown_(shown) {}
  std::string operator()(std::int64_t i) const { return int_at(shown_, i) ? " True" : "False"; }

 private:
  const Shown& shown_;
};

/// Brackets, separators and line breaks.
template <class Format>
class Layout {
 public:
  Layout(const Shown& shown, const Format& format, int linewidth) : shown_(shown), format_(format), linewidth_(linewidth) {}
  std::string text() {
    write(0);
    return std::move(out_);
  }

 private:
  void write(int axis) {
    out_ += '[';
    int axes_left = shown_.spec.rank - axis;
    std::int64_t n = shown_.spec.dims[axis];
    column_ = axis + 1;
    for (std::int64_t i = 0; i < n; ++i) {
      if (shown_.cut[axis] && i == n / 2) {
        separate(axis, i > 0);
        if (axes_left == 1) word(axis, "...");
        else out_ += "...";
      }
      separate(axis, i > 0 || (shown_.cut[axis] && n == 0));
      if (axes_left == 1) word(axis, format_(next_++));
      else write(axis + 1);
    }
    if (n == 0 && shown_.cut[axis]) out_ += "...";
    out_ += ']';
  }
  void separate(int axis, bool needed) {
    if (!needed) return;
    int axes_left = shown_.spec.rank - axis;
    if (axes_left == 1) {
      out_ += ' ';
      ++column_;
      return;
    }
    out_.append(static_cast<std::size_t>(axes_left - 1), '\n');
    out_.append(static_cast<std::size_t>(axis + 1), ' ');
  }
  /// Breaks the line first where the word would pass the line width, unless that gains nothing.
  void word(int axis, const std::string& s) {
    int indent = axis + 1;
    if (column_ + static_cast<int>(s.size()) > linewidth_ - axis - 1 && column_ > indent) {
      while (out_.back() == ' ') out_.pop_back();
      out_ += '\n';
      out_.append(static_cast<std::size_t>(indent), ' ');
      column_ = indent;
    }
    out_ += s;
    column_ += static_cast<int>(s.size());
  }
  const Shown& shown_;
  const Format& format_;
  int linewidth_;
  int column_ = 0;
  std::int64_t next_ = 0;
  std::string out_;
};
template <class Format>
std::string lay_out(const Shown& shown, const Format& format, const PrintOptions& options) {
  return Layout<Format>(shown, format, options.linewidth).text();
}

std::string plain_text(const Body& b, const PrintOptions& options) {
  if (b.numel() == 0) {
    concrete_value(b, "print");
    return "[]";
  }
  Shown shown(b, options);
  DType dtype = b.dtype;
  if (b.rank == 0)
    return dtype.is_float() ? scalar_text(float_at(shown, 0), dtype)
           : dtype.is_bool() ? (int_at(shown, 0) ? "True" : "False")
                             : std::to_string(int_at(shown, 0));
  if (dtype.is_float()) return lay_out(shown, FloatFormat(shown, options), options);
  if (dtype.is_bool()) return lay_out(shown, BoolFormat(shown), options);
  return lay_out(shown, IntFormat(shown), options);
}

// ---- sparse tensors ----------------------------------------------------------------------------------------------------

/// The numbers of the entries that are shown; -1 stands for those left out. An entry is a line: the threshold is a twentieth
/// of that of dense tensors, 50 lines where nobody changed it.
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

/// The values of those entries as a list, one text for each.
std::vector<std::string> entry_texts(const Body& values, const std::vector<std::int64_t>& entries, const PrintOptions& options) {
  const Tensor host = host_copy(Access::wrap(values), values.dtype);
  const std::byte* from = Access::body(host).data();
  int size = values.dtype.size();
  Body few;
  few.set(Spec(values.dtype, {0}));
  few.device = cpu;
  for (std::int64_t k : entries) few.dims[0] += k >= 0;
  few.storage = Storage::allocate(few.bytes(), cpu);
  std::byte* to = few.data();
  for (std::int64_t k : entries)
    if (k >= 0) {
      std::memcpy(to, from + k * size, static_cast<std::size_t>(size));
      to += size;
    }
  PrintOptions whole = options;
  whole.threshold = few.dims[0];
  Shown shown(few, whole);
  std::vector<std::string> texts;
  auto write = [&](const auto& format) {
    for (std::int64_t i = 0; i < few.dims[0]; ++i) texts.push_back(format(i));
  };
  if (values.dtype.is_float()) write(FloatFormat(shown, whole));
  else if (values.dtype.is_bool()) write(BoolFormat(shown));
  else write(IntFormat(shown));
  return texts;
}

/// "(0, 12)  1.5" on a line for each entry, in the order in which they are listed, columns below each other.
std::string sparse_text(const Body& b, const PrintOptions& options) {
  const Body& indices = sparse_part(b, kIndices);
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

std::ostream& print_sparse(std::ostream& os, const Body& b) {
  if (b.symbolic()) {
    const Body& values = sparse_part(b, kValues);
    os << "Tensor(";
    if (is_sparse_placeholder(b) && values.node->cell->name) os << '"' << values.node->cell->name << "\", ";
    return os << "shape=" << b.shape() << ", dtype=" << b.dtype << ", device=" << b.device << ", sparse, symbolic)";
  }
  PrintOptions options = print_options();
  os << sparse_text(b, options);
  if (!options.details) return os;
  std::int64_t n = sparse_part(b, kIndices).dims[0];
  return os << '\n' << b.shape() << ' ' << b.dtype << ' ' << b.device << ", sparse, " << n << (n == 1 ? " entry" : " entries");
}

bool has_value(const Body& b) { return b.storage || (b.flags & kLeaf && b.node->cell->load().storage); }

/// A tensor that has no elements to show.
std::ostream& describe(std::ostream& os, const Body& b, const char* why) {
  os << "Tensor(";
  if (b.flags & kLeaf && b.node->cell->name) os << '"' << b.node->cell->name << "\", ";
  return os << "shape=" << b.shape() << ", dtype=" << b.dtype << ", device=" << b.device << ", " << why << ')';
}

}  // namespace

std::ostream& operator<<(std::ostream& os, const Tensor& x) {
  if (!x.defined()) return os << "Tensor()";
  const Body& b = Access::body(x);
  if (b.flags & kForeign) return describe_foreign(os, b);
  if (is_sparse(b)) return print_sparse(os, b);
  if (b.symbolic()) return describe(os, b, "symbolic");
  if (!has_value(b)) return describe(os, b, "no value yet");
  PrintOptions options = print_options();
  std::string s = plain_text(b, options);
  os << s;
  if (options.details) os << (s.find('\n') == std::string::npos ? ' ' : '\n') << b.shape() << ' ' << b.dtype << ' ' << b.device;
  return os;
}

std::ostream& operator<<(std::ostream& os, const Tensors& list) {
  os << '[';
  const char* comma = "";
  for (const Tensor& t : list) {
    std::string s = text(t);
    for (std::size_t at = s.find('\n'); at != std::string::npos; at = s.find('\n', at + 2)) s.insert(at + 1, 1, ' ');
    os << comma << s;
    comma = ",\n ";
  }
  return os << ']';
}

Text array_text(const Tensor& x) { return array_text(x, print_options()); }
Text array_text(const Tensor& x, const PrintOptions& options) {
  if (!x.defined()) fail<ValueError>("print: an empty Tensor (an uninitialised variable?)");
  const Body& b = Access::body(x);
  return Text(is_sparse(b) && !b.symbolic() ? sparse_text(b, options) : plain_text(b, options));
}

namespace {

std::mutex sink_mutex;
PrintSink& sink_in_use() {
  static auto* sink = new PrintSink;   // never destroyed: a tensor may be printed at exit
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
  std::string whole = line + '\n';   // in one piece: other threads print too
  std::fwrite(whole.data(), 1, whole.size(), stdout);
  std::fflush(stdout);
}

PrintOptions print_options() {
  std::lock_guard<std::mutex> lock(options_mutex);
  return options_in_use;
}
void set_print_options(const PrintOptions& o) {
  if (o.precision < 0 || o.threshold < 0 || o.edgeitems < 0 || o.linewidth < 0)
    fail<ValueError>("set_print_options: ", o, ": a number is negative");
  std::lock_guard<std::mutex> lock(options_mutex);
  options_in_use = o;
}
std::ostream& operator<<(std::ostream& os, const PrintOptions& o) {
  const char* modes[] = {"automatic", "suppress", "never", "always"};
  return os << "PrintOptions(precision=" << o.precision << ", sci_mode=" << modes[static_cast<int>(o.sci_mode) & 3]
            << ", details=" << (o.details ? "true" : "false") << ", threshold=" << o.threshold << ", edgeitems=" << o.edgeitems
            << ", linewidth=" << o.linewidth << ')';
}

// ---- text --------------------------------------------------------------------------------------------------------------

Text::Text(Name text) : chars_(nullptr) {
  if (!text.text()) return;
  chars_ = strdup(text.text());
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
bool operator==(const Text& a, const Name& b) { return b.text() && std::strcmp(a.c_str(), b.text()) == 0; }
std::ostream& operator<<(std::ostream& os, const Text& text) { return os << text.c_str(); }

}  // namespace kassette
