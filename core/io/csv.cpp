// core/io/csv.cpp - matrices of numbers as text.
#include <kassette/io.h>

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

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

/// Whole-field parsing, whatever the locale: false where the text is no T.
template <class T>
bool parse(std::string_view s, T& v) {
  if (!s.empty() && s.front() == '+' && s.size() > 1 && s[1] != '-') s.remove_prefix(1);
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range && end == s.data() + s.size()) {
      // What is too large or too small for a double: from_chars leaves v as it was.
      std::string copy(s);
      bool tiny = copy.find("e-") != copy.npos || copy.find("E-") != copy.npos;
      v = std::copysign(tiny ? 0 : std::numeric_limits<T>::infinity(), copy.front() == '-' ? -1 : 1);
      return true;
    }
  }
  return error == std::errc() && end == s.data() + s.size();
}

/// Reads lines of fields into a growing column of T.
template <class T>
class Reader {
 public:
  Reader(const io::InputFile& file, const LoadCsvOptions& options) : file_(file), options_(options) {}

  void lines(std::string_view all) {
    if (all.substr(0, 3) == "\xef\xbb\xbf") all.remove_prefix(3);   // a byte order mark
    for (std::int64_t skipped = 0; !all.empty();) {
      std::size_t end = std::min(all.find('\n'), all.size());
      std::string_view line = all.substr(0, end);
      all.remove_prefix(std::min(end + 1, all.size()));
      ++line_;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (skipped < options_.skip_rows) {
        ++skipped;
        continue;
      }
      line = line.substr(0, line.find('#'));
      if (!trimmed(line).empty()) row(line);
    }
  }
  std::vector<T> values;
  std::int64_t rows = 0, columns = 0;

 private:
  void row(std::string_view line) {
    std::int64_t column = 0;
    for (bool more = true; more;) {
      std::size_t end = field_end(line);
      more = end < line.size();
      field(trimmed(line.substr(0, end)), ++column);
      line.remove_prefix(more ? end + 1 : end);
    }
    if (rows == 0) columns = column;
    if (column != columns) file_.refuse("line ", line_, ": ", column, " columns, expected ", columns);
    ++rows;
  }
  std::size_t field_end(std::string_view line) const {
    // Within quotes a delimiter is text; a number has no quotes inside.
    std::string_view lead = trimmed(line);
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
      if (s.empty()) file_.refuse("line ", line_, ", column ", column, ": an empty field, and ", options_.dtype, " has no NaN");
      if (!parse(s, v)) bad(s, column);
    }
    values.push_back(v);
  }
  [[noreturn]] void bad(std::string_view s, std::int64_t column) const {
    bool dots = s.size() > 40;
    file_.refuse("line ", line_, ", column ", column, ": '", s.substr(0, 40), dots ? "...'" : "'", " is not ",
                 std::is_floating_point_v<T> ? "a number" : options_.dtype.is_bool() ? "0 or 1" : "an integer",
                 line_ == 1 && !options_.skip_rows ? "; {.skip_rows = 1} passes over a line of names" : "");
  }
  const io::InputFile& file_;
  const LoadCsvOptions& options_;
  std::int64_t line_ = 0;
};

template <class T>
Tensor load_as(const io::InputFile& file, const LoadCsvOptions& options) {
  Reader<T> reader(file, options);
  auto* text = reinterpret_cast<const char*>(file.map());
  reader.lines(std::string_view(text, static_cast<std::size_t>(file.size())));
  if constexpr (std::is_integral_v<T>)
    dispatch(options.dtype, [&](auto* p) {
      using U = std::remove_pointer_t<decltype(p)>;
      if constexpr (std::is_integral_v<U>) {
        constexpr T low = std::numeric_limits<U>::min(), high = std::numeric_limits<U>::max();
        for (std::size_t i = 0; i < reader.values.size(); ++i)
          if (reader.values[i] < low || reader.values[i] > high)
            file.refuse("row ", i / reader.columns, ", column ", i % reader.columns + 1, ": ", reader.values[i], " does not fit ", options.dtype);
      }
    });
  io::Fresh out = io::fresh(Spec(options.dtype, {reader.rows, reader.columns}));
  convert(out.data, options.dtype, reader.values.data(), dtype_of(static_cast<const T*>(nullptr)), static_cast<std::int64_t>(reader.values.size()));
  return out.tensor;
}

/// The shortest text that gives the element back.
template <class T>
void print(std::string& out, T v) {
  if constexpr (std::is_same_v<T, bool>) {
    out += v ? '1' : '0';
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    print(out, to_float(v));
  } else {
    char digits[40];
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(v)) v = std::numeric_limits<T>::quiet_NaN();   // never "-nan"
    auto [end, error] = std::to_chars(digits, digits + sizeof digits, v);
    (void)error;
    out.append(digits, end);
  }
}

}  // namespace

Tensor load_csv(Name path, const LoadCsvOptions& options) {
  io::InputFile file("load_csv", path);
  if (!options.dtype.given()) fail<TypeError>("load_csv: no dtype");
  if (options.skip_rows < 0) fail<ValueError>("load_csv: skip_rows is ", options.skip_rows);
  if (std::strchr("+-.#\"\n\r0123456789", options.delimiter)) fail<ValueError>("load_csv: that delimiter occurs in numbers or lines");
  if (options.dtype == float32) return load_as<float>(file, options);   // not by way of double: that would round twice
  return options.dtype.is_float() ? load_as<double>(file, options) : load_as<std::int64_t>(file, options);
}

void save_csv(Name path, const Tensor& x, const SaveCsvOptions& options) {
  io::Source source("save_csv", x);
  const Spec& spec = source.spec();
  if (spec.rank != 1 && spec.rank != 2) fail<ValueError>("save_csv: a tensor of shape ", spec, "; a matrix or a vector is expected");
  if (std::strchr("+-.#\"\n\r0123456789", options.delimiter)) fail<ValueError>("save_csv: that delimiter occurs in numbers or lines");
  std::int64_t columns = spec.rank == 2 ? spec.dims[1] : 1;
  io::OutputFile file("save_csv", path);
  std::string out;
  if (options.header.text()) out = std::string(options.header.text()) + '\n';
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
