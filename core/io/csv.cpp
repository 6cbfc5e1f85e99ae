// core/io/csv.cpp - matrices of numbers as text.
#include <kassette/io.h>

#include <locale.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "core/convert.h"
#include "core/io/file.h"

namespace kassette {
namespace {

std::string_view without_lead(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  return s;
}
std::string_view trimmed(std::string_view s) {
  s = without_lead(s);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

/// Parses a whole field, independently of the locale. Returns false if the text is not a T.
template <class T>
bool parse(std::string_view s, T& v) {
  if (!s.empty() && s.front() == '+' && s.size() > 1 && s[1] != '-') s.remove_prefix(1);
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range && end == s.data() + s.size()) {
      // Infinity or zero: from_chars does not say which.
      static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
      const std::string copy(s);
      if constexpr (std::is_same_v<T, float>) v = strtof_l(copy.c_str(), nullptr, plain);
      else v = strtod_l(copy.c_str(), nullptr, plain);
      return true;
    }
  }
  return error == std::errc() && end == s.data() + s.size();
}

/// Parses lines of fields as T, and stores them in the requested dtype.
template <class T>
class Reader {
 public:
  Reader(const io::InputFile& file, const LoadCsvOptions& options) : file_(file), options_(options) {
    if constexpr (std::is_integral_v<T>)
      dispatch(options.dtype, [&](auto* p) {
        using U = std::remove_pointer_t<decltype(p)>;
        if constexpr (std::is_integral_v<U>) {
          low_ = std::numeric_limits<U>::min();
          high_ = std::numeric_limits<U>::max();
        }
      });
  }

  Tensor read() {
    constexpr std::int64_t kPart = 1 << 18;
    std::string text;  // bytes read that are not yet a complete line
    for (std::int64_t at = 0; at < file_.size();) {
      const std::size_t old = text.size();
      // For a longer line the buffer is doubled, so that the search for its end is linear.
      const std::int64_t n = std::min(file_.size() - at, std::max(kPart, static_cast<std::int64_t>(old)));
      text.resize(old + n);
      file_.read(at, text.data() + old, n);
      if (at == 0 && text.compare(0, 3, "\xef\xbb\xbf") == 0) text.erase(0, 3);  // a byte order mark
      at += n;
      const std::size_t end = at == file_.size()
                                  ? std::string::npos
                                  : std::string_view(text).substr(std::min(old, text.size())).rfind('\n');
      const std::size_t whole = at == file_.size() ? text.size() : end == std::string::npos ? 0 : old + end + 1;
      lines(std::string_view(text).substr(0, whole));
      text.erase(0, whole);
    }
    store();
    io::NewTensor out = io::new_tensor(TensorSpec(options_.dtype, {rows_, columns_}));
    std::byte* to = out.data;
    for (Block& b : blocks_) {
      std::memcpy(to, b.data.get(), static_cast<std::size_t>(b.bytes));
      to += b.bytes;
      b.data.reset();
    }
    return out.tensor;
  }

 private:
  void lines(std::string_view all) {
    while (!all.empty()) {
      std::size_t end = std::min(all.find('\n'), all.size());
      std::string_view line = all.substr(0, end);
      all.remove_prefix(std::min(end + 1, all.size()));
      ++line_;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line_ <= options_.skip_rows) continue;
      line = line.substr(0, line.find('#'));
      if (!trimmed(line).empty()) row(line);
    }
  }
  void row(std::string_view line) {
    std::int64_t column = 0;
    for (bool more = true; more;) {
      std::size_t end = field_end(line);
      more = end < line.size();
      field(trimmed(line.substr(0, end)), ++column);
      line.remove_prefix(more ? end + 1 : end);
    }
    if (rows_ == 0) columns_ = column;
    if (column != columns_)
      file_.refuse("line ", line_, ": ", column, " columns", kExpected, "there must be ", columns_);
    ++rows_;
  }
  std::size_t field_end(std::string_view line) const {
    // Within quotes a delimiter is text; a number has no quotes inside.
    std::string_view lead = without_lead(line);  // a look at the line's end for each field would be quadratic
    std::size_t from = 0;
    if (!lead.empty() && lead.front() == '"') {
      std::size_t open = line.find('"');
      from = std::min(line.find('"', open + 1), line.size());
    }
    return std::min(line.find(options_.delimiter, from), line.size());
  }
  void field(std::string_view s, std::int64_t column) {
    if (s.size() >= 2 && s.front() == '"' && s.back() == '"') s = trimmed(s.substr(1, s.size() - 2));
    T v{};
    if constexpr (std::is_floating_point_v<T>) {
      if (s.empty()) v = std::numeric_limits<T>::quiet_NaN();
      else if (!parse(s, v)) bad(s, column);
    } else {
      if (s.empty())
        file_.refuse("line ", line_, ", column ", column, ": an empty field, and ", options_.dtype, " has no NaN");
      if (!parse(s, v)) bad(s, column);
      if (v < low_ || v > high_)
        file_.refuse("line ", line_, ", column ", column, ": ", v, " does not fit ", options_.dtype);
    }
    parsed_[n_parsed_] = v;
    if (++n_parsed_ == kParsed) store();
  }
  void store() {
    const std::int64_t bytes = n_parsed_ * options_.dtype.size();
    if (!n_parsed_) return;
    file_.reserve_bytes(bytes);
    blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(bytes), bytes});
    convert(blocks_.back().data.get(), options_.dtype, parsed_, dtype_of(static_cast<const T*>(nullptr)), n_parsed_);
    n_parsed_ = 0;
  }
  [[noreturn]] void bad(std::string_view s, std::int64_t column) const {
    bool dots = s.size() > 40;
    file_.refuse("line ", line_, ", column ", column, ": '", s.substr(0, 40), dots ? "...'" : "'", " is not ",
                 std::is_floating_point_v<T> ? "a number"
                 : options_.dtype.is_bool()  ? "0 or 1"
                                             : "an integer",
                 kRemedy, line_ == 1 && !options_.skip_rows ? "{.skip_rows = 1} passes over a line of names" : "");
  }
  struct Block {
    std::unique_ptr<std::byte[]> data;
    std::int64_t bytes;
  };
  static constexpr int kParsed = 1 << 14;
  const io::InputFile& file_;
  const LoadCsvOptions& options_;
  T low_{}, high_{};  // for integers
  std::int64_t line_ = 0, rows_ = 0, columns_ = 0;
  std::vector<Block> blocks_;
  int n_parsed_ = 0;
  T parsed_[kParsed];
};

template <class T>
Tensor load_as(const io::InputFile& file, const LoadCsvOptions& options) {
  return std::make_unique<Reader<T>>(file, options)->read();
}

/// The shortest text that parses to the same element.
template <class T>
void print(std::string& out, T v) {
  if constexpr (std::is_same_v<T, bool>) {
    out += v ? '1' : '0';
  } else if constexpr (kIsHalf<T>) {
    print(out, to_float(v));
  } else {
    char digits[40];
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(v)) v = std::numeric_limits<T>::quiet_NaN();  // never "-nan"
    auto [end, error] = std::to_chars(digits, digits + sizeof digits, v);
    (void)error;
    out.append(digits, end);
  }
}

}  // namespace

namespace {

void check_delimiter(const char* function, char delimiter) {
  if (!std::strchr("+-.#\"\n\r0123456789", delimiter)) return;
  const std::string given = delimiter == '\n'   ? "\\n"
                            : delimiter == '\r' ? "\\r"
                            : delimiter == '\0' ? "\\0"
                                                : std::string(1, delimiter);
  fail<ValueError>({function, "delimiter"}, "is '", given, "'", kExpected, "it must not occur in numbers or end lines");
}

}  // namespace

Tensor load_csv(Name path, const LoadCsvOptions& options) {
  io::InputFile file("load_csv", path, options.max_bytes);
  if (!options.dtype.given()) fail<TypeError>({"load_csv", "dtype"}, "is None");
  if (options.skip_rows < 0)
    fail<ValueError>({"load_csv", "skip_rows"}, "is ", options.skip_rows, kExpected, "it must not be negative");
  check_delimiter("load_csv", options.delimiter);
  if (options.dtype == float32) return load_as<float>(file, options);  // not by way of double: that would round twice
  return options.dtype.is_float() ? load_as<double>(file, options) : load_as<std::int64_t>(file, options);
}

void save_csv(Name path, const Tensor& x, const SaveCsvOptions& options) {
  io::Source source({"save_csv", "x"}, x);
  const TensorSpec& spec = source.spec();
  if (spec.rank != 1 && spec.rank != 2)
    fail<ValueError>({"save_csv", "x"}, "has shape ", spec, kExpected, "it must be a matrix or a vector");
  check_delimiter("save_csv", options.delimiter);
  std::int64_t columns = spec.rank == 2 ? spec.dims[1] : 1;
  io::OutputFile file("save_csv", path);
  std::string out;
  if (options.header.given()) out = string_of(options.header) + '\n';
  dispatch(spec.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    auto* at = reinterpret_cast<const T*>(source.data());
    for (std::int64_t row = 0; row < spec.dims[0] && columns; ++row) {
      for (std::int64_t c = 0; c < columns; ++c) {
        if (c) out += options.delimiter;
        print(out, *at++);
      }
      out += '\n';
      if (out.size() < (1 << 16)) continue;
      file.write(out);
      out.clear();
    }
  });
  file.write(out);
  file.commit();
}

}  // namespace kassette
