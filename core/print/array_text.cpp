// core/print/array_text.cpp - prints the elements of dense tensors as NumPy does: which of them are shown, number
// formats, brackets and line breaks.
#include "core/print/array_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/convert.h"
#include "core/print/decimal.h"

namespace kassette {
namespace {

/// The elements that are printed, on the host; along an abbreviated axis, only those at both ends.
struct Shown {
  TensorSpec spec;          // of the printed elements
  bool cut[kMaxRank] = {};  // whether an axis is abbreviated
  std::vector<std::byte> bytes;

  Shown(const TensorDesc& b, const PrintOptions& options) {
    Value v = concrete_value(b, "print");
    spec.set(b);
    std::int64_t total = b.numel(), edge = options.edgeitems;
    if (total > options.threshold)
      for (int i = 0; i < spec.rank; ++i)
        if (spec.dims[i] > 2 * edge) {
          cut[i] = true;
          spec.dims[i] = 2 * edge;
        }
    bytes.resize(spec.bytes());
    if (bytes.empty()) return;
    source_ = static_cast<const std::byte*>(v.storage->data) + v.offset;
    api_ = b.device.type() == Device::kCpu ? nullptr : &device_api(b.device);
    std::byte* to = bytes.data();
    pack(b, 0, 0, to);
  }

 private:
  const std::byte* source_ = nullptr;
  DeviceApi* api_ = nullptr;

  void pack(const TensorDesc& b, int axis, std::int64_t at, std::byte*& to) {
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
      pack(b, axis + 1, at + (cut[axis] && i >= n / 2 ? i + skipped : i) * inner, to);
  }
  void copy(std::int64_t at, std::int64_t n, std::byte*& to) {
    std::int64_t size = spec.dtype.size();
    if (n == 0) return;
    if (api_) api_->copy_to_host(to, source_ + at * size, n * size);
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
std::string int_text(const Shown& shown, std::int64_t i) { return integer_text(int_at(shown, i), shown.spec.dtype); }

/// The common format of floats in aligned columns, as NumPy's FloatingFormat.
class FloatFormat {
 public:
  FloatFormat(const Shown& shown, const PrintOptions& options)
      : shown_(shown), dtype_(shown.spec.dtype), precision_(options.precision) {
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
    const std::size_t width = left_ + right_ + 1;
    if (!std::isfinite(v)) {
      std::string s = scalar_text(v, dtype_);
      return std::string(width - s.size(), ' ') + s;
    }
    std::string s = scientific_ ? scientific_text(v, dtype_, {precision_, /*exact_digits=*/true, exponent_})
                                : positional_text(v, dtype_, precision_);
    s.insert(0, left_ - s.find('.'), ' ');
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
           (smallest < rounded_to(0.0001, dtype_) || rounded_to(largest / smallest, dtype_) > 1000);
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
    for (std::int64_t i = 0, n = shown.spec.numel(); i < n; ++i) width_ = std::max(width_, int_text(shown, i).size());
  }
  std::string operator()(std::int64_t i) const {
    std::string s = int_text(shown_, i);
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
  Layout(const Shown& shown, const Format& format, int linewidth)
      : shown_(shown), format_(format), linewidth_(linewidth) {}
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
    out_.append(axes_left - 1, '\n');
    out_.append(axis + 1, ' ');
  }
  /// Breaks the line first if the word would exceed the line width, unless that gains nothing.
  void word(int axis, const std::string& s) {
    int indent = axis + 1;
    if (column_ + static_cast<int>(s.size()) > linewidth_ - axis - 1 && column_ > indent) {
      while (out_.back() == ' ') out_.pop_back();
      out_ += '\n';
      out_.append(indent, ' ');
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

}  // namespace

std::string dense_text(const TensorDesc& b, const PrintOptions& options) {
  if (b.numel() == 0) {
    concrete_value(b, "print");
    return "[]";
  }
  Shown shown(b, options);
  DType dtype = b.dtype;
  if (b.rank == 0)
    return dtype.is_float()  ? scalar_text(float_at(shown, 0), dtype)
           : dtype.is_bool() ? (int_at(shown, 0) ? "True" : "False")
                             : int_text(shown, 0);
  if (dtype.is_float()) return lay_out(shown, FloatFormat(shown, options), options);
  if (dtype.is_bool()) return lay_out(shown, BoolFormat(shown), options);
  return lay_out(shown, IntFormat(shown), options);
}

std::vector<std::string> element_texts(const TensorDesc& list, const PrintOptions& options) {
  PrintOptions whole = options;
  whole.threshold = list.dims[0];
  Shown shown(list, whole);
  std::vector<std::string> texts;
  auto write = [&](const auto& format) {
    for (std::int64_t i = 0; i < list.dims[0]; ++i) texts.push_back(format(i));
  };
  if (list.dtype.is_float()) write(FloatFormat(shown, whole));
  else if (list.dtype.is_bool()) write(BoolFormat(shown));
  else write(IntFormat(shown));
  return texts;
}

}  // namespace kassette
