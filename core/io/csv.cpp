// core/io/csv.cpp - the numbers of tables in text.
#include <kassette/io.h>

#include <locale.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "core/convert.h"
#include "core/print/decimal.h"
#include "core/io/csv_lines.h"
#include "core/io/file.h"
#include "core/log.h"

namespace kassette {
namespace {

/// What pandas.read_csv takes for missing; "nan" in any case is a number.
constexpr std::string_view kMissing[] = {"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN",
                                         "<NA>", "N/A",      "NA",  "NULL",    "None",     "n/a",    "null"};

enum class Parsed { number, text, too_large };

/// Parses a whole field, independently of the locale.
template <class T>
inline Parsed parse(std::string_view s, T& v) {
  if (!s.empty() && s.front() == '+' && s.size() > 1 && s[1] != '-') s.remove_prefix(1);
  if constexpr (std::is_unsigned_v<T>)
    if (!s.empty() && s.front() == '-') {  // which from_chars takes for text
      const Parsed parsed = s.size() > 1 && s[1] >= '0' && s[1] <= '9' ? parse(s.substr(1), v) : Parsed::text;
      return parsed == Parsed::number && v != 0 ? Parsed::too_large : parsed;
    }
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (end != s.data() + s.size()) return Parsed::text;
  if (error != std::errc::result_out_of_range) return error == std::errc() ? Parsed::number : Parsed::text;
  if constexpr (std::is_floating_point_v<T>) {
    // Infinity or zero: from_chars does not say which.
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    const std::string copy(s);
    if constexpr (std::is_same_v<T, float>) v = strtof_l(copy.c_str(), nullptr, plain);
    else v = strtod_l(copy.c_str(), nullptr, plain);
    return Parsed::number;
  }
  return Parsed::too_large;
}

/// The lines of a table, and which of their fields are wanted.
class Table {
 public:
  Table(const io::InputFile& file, const LoadCsvOptions& options)
      : file_(file), options_(options), layout_{options.delimiter, options.comment},
        by_name_(options.columns.given() && !options.columns.are_numbers()) {}

  /// Calls row(line) for each line with fields; line() is its number.
  template <class F>
  void each_row(F&& row) {
    const std::int64_t skipped = by_name_ ? std::max<std::int64_t>(options_.skip_rows, 1) : options_.skip_rows;
    constexpr std::int64_t kPart = 1 << 18;
    std::string text;  // bytes read that are not yet a complete line
    std::int64_t taken = 0, next = 1;
    for (std::int64_t at = 0; at < file_.size();) {
      const std::size_t old = text.size();
      // For a longer line the buffer is doubled, so that the search for its end is linear.
      const std::int64_t n = std::min(file_.size() - at, std::max(kPart, static_cast<std::int64_t>(old)));
      text.resize(old + n);
      file_.read(at, text.data() + old, n);
      if (at == 0) check_encoding(text);
      at += n;
      std::string_view rest = text;
      for (io::CsvLine l; !rest.empty(); next += l.ends) {
        const bool skip = taken < skipped;
        if (!(skip ? io::CsvLayout{layout_.delimiter, '\0'} : layout_).take(rest, at == file_.size(), l)) break;
        rest.remove_prefix(l.bytes);
        line_ = next;
        ++taken;
        if (skip) {
          if (taken == skipped) read_names(layout_.trimmed(l.text));
          continue;
        }
        if (l.unclosed) file_.refuse("line ", line_, ": a quote is not closed");
        if (!layout_.trimmed(l.text).empty()) row(l.text);
      }
      text.erase(0, text.size() - rest.size());
    }
  }

  /// To be called with the first row: how many columns there are, and which are wanted, in order.
  void choose(std::string_view first) {
    columns_ = count(first);
    if (by_name_ && static_cast<std::int64_t>(names_.size()) != columns_)
      file_.refuse("line ", line_, ": ", columns_, " columns", kExpected, "there must be ", names_.size(),
                   ", as there are names");
    if (static_cast<std::int64_t>(names_.size()) != columns_) names_.clear();
    wanted_.resize(columns_);
    std::iota(wanted_.begin(), wanted_.end(), std::int64_t(0));
    if (options_.columns.given()) choose_given();
    place();
  }
  /// Leaves out columns that are not to be kept.
  template <class Keep>
  void narrow(Keep&& keep) {
    wanted_.erase(std::remove_if(wanted_.begin(), wanted_.end(), [&](std::int64_t c) { return !keep(c); }),
                  wanted_.end());
    place();
  }
  /// Calls field(text, column, place) for the wanted fields of a row, from left to right.
  template <class F>
  void each_field(std::string_view row, F&& field) const {
    each_of_all(row, [&](std::string_view s, std::int64_t column) {
      if (column < columns_ && place_[column] >= 0) field(s, column, place_[column]);
    });
  }
  /// Calls field(text, column) for every field of a row.
  template <class F>
  void each_of_all(std::string_view row, F&& field) const {
    std::int64_t column = 0;
    layout_.each_field(row, [&](std::string_view s) { field(s, column++); });
    if (column != columns_)
      file_.refuse("line ", line_, ": ", column, " columns", kExpected, "there must be ", columns_);
  }
  bool is_missing(std::string_view s) const {
    if (s.empty()) return true;
    if (!options_.missing.given()) return std::find(std::begin(kMissing), std::end(kMissing), s) != std::end(kMissing);
    for (std::int64_t i = 0; i < options_.missing.size(); ++i)
      if (s == options_.missing[i]) return true;
    return false;
  }
  /// The number of a column, from 1 on, and its name.
  std::string column_text(std::int64_t column) const {
    return column >= static_cast<std::int64_t>(names_.size()) ? text(column + 1)
                                                              : text(column + 1, " ('", names_[column], "')");
  }
  template <class... Words>
  [[noreturn]] void refuse(std::int64_t column, const Words&... words) const {
    file_.refuse("line ", line_, ", column ", column_text(column), ": ", words...);
  }
  std::int64_t line() const { return line_; }
  std::int64_t columns() const { return columns_; }
  const std::vector<std::int64_t>& wanted() const { return wanted_; }
  /// Whether every column is wanted, in the order of the file.
  bool all_wanted() const {
    return static_cast<std::int64_t>(wanted_.size()) == columns_ && std::is_sorted(wanted_.begin(), wanted_.end());
  }
  /// The number of columns of a table without rows.
  std::int64_t columns_without_rows() {
    if (!by_name_) return 0;
    columns_ = static_cast<std::int64_t>(names_.size());
    choose_given();
    return static_cast<std::int64_t>(wanted_.size());
  }

 private:
  void check_encoding(std::string& start) const {
    if (start.compare(0, 3, "\xef\xbb\xbf") == 0) start.erase(0, 3);  // a byte order mark
    if (start.compare(0, 2, "\xff\xfe") == 0 || start.compare(0, 2, "\xfe\xff") == 0)
      file_.refuse("is UTF-16", kExpected, "it must be UTF-8 or another encoding that has ASCII in it");
  }
  std::int64_t count(std::string_view row) const {
    std::int64_t n = 0;
    layout_.each_field(row, [&](std::string_view) { ++n; });
    return n;
  }
  void read_names(std::string_view header) {
    names_.clear();
    if (!header.empty() && layout_.comment && header.front() == layout_.comment) header.remove_prefix(1);
    layout_.each_field(header, [&](std::string_view s) { names_.push_back(layout_.unquoted(s)); });
  }
  void choose_given() {
    const Texts& given = options_.columns.texts();
    wanted_.clear();
    for (std::int64_t i = 0; i < given.size(); ++i) {
      const std::int64_t c = by_name_ ? named(given[i]) : numbered(given[i]);
      if (std::find(wanted_.begin(), wanted_.end(), c) != wanted_.end())
        fail<ValueError>({"load_csv", "columns"}, "has column ", column_text(c), " twice");
      wanted_.push_back(c);
    }
    if (wanted_.empty()) fail<ValueError>({"load_csv", "columns"}, "is empty", kExpected, "None is all of them");
  }
  std::int64_t numbered(const char* digits) const {
    std::int64_t c = 0;
    std::from_chars(digits, digits + std::strlen(digits), c);
    if (c < -columns_ || c >= columns_)
      file_.refuse("there is no column ", c, kExpected, "there are ", columns_, ", from 0 on");
    return c < 0 ? c + columns_ : c;
  }
  std::int64_t named(std::string_view name) const {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) {
      std::string known;
      for (const std::string& n : names_) known += (known.empty() ? "'" : ", '") + n + "'";
      file_.refuse("no column is called '", name, "'", kExpected, "there are ", known);
    }
    if (std::find(at + 1, names_.end(), name) != names_.end())
      file_.refuse("two columns are called '", name, "'", kRemedy, "give their numbers");
    return at - names_.begin();
  }
  void place() {
    place_.assign(columns_, -1);
    for (std::size_t i = 0; i < wanted_.size(); ++i) place_[wanted_[i]] = static_cast<std::int64_t>(i);
  }

  const io::InputFile& file_;
  const LoadCsvOptions& options_;
  const io::CsvLayout layout_;
  const bool by_name_;
  std::int64_t line_ = 0, columns_ = 0;
  std::vector<std::string> names_;    // of the last line that is skipped; empty if they are not known
  std::vector<std::int64_t> wanted_;  // columns of the file, in the order of the result
  std::vector<std::int64_t> place_;   // for each column of the file its column in the result, or -1
};

/// Parses fields as T, and stores them in the requested dtype.
template <class T>
class Reader {
 public:
  Reader(const io::InputFile& file, const LoadCsvOptions& options)
      : file_(file), options_(options), table_(file, options), marked_(options.missing.given()) {
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
    if (options_.skip_text) leave_out_text();
    std::optional<std::vector<T>> row_values;  // where columns are in another order than in the file
    bool known = options_.skip_text && table_.columns();
    table_.each_row([&](std::string_view row) {
      if (rows_++ == 0) {
        if (!known) table_.choose(row);
        if (!table_.all_wanted()) row_values.emplace(table_.wanted().size());
      }
      if (!row_values) {
        table_.each_of_all(row, [&](std::string_view s, std::int64_t column) { push(value(s, column)); });
        return;
      }
      table_.each_field(row, [&](std::string_view s, std::int64_t column, std::int64_t place) {
        (*row_values)[place] = value(s, column);
      });
      for (T v : *row_values) push(v);
    });
    store();
    const std::int64_t columns =
        rows_ ? static_cast<std::int64_t>(table_.wanted().size()) : table_.columns_without_rows();
    io::NewTensor out = io::new_tensor(TensorSpec(options_.dtype, {rows_, columns}));
    std::byte* to = out.data;
    for (Block& b : blocks_) {
      std::memcpy(to, b.data.get(), static_cast<std::size_t>(b.bytes));
      to += b.bytes;
      b.data.reset();
    }
    return out.tensor;
  }

 private:
  /// Reads the whole table once, to find the columns that have text in them.
  void leave_out_text() {
    std::vector<char> is_text;
    table_.each_row([&](std::string_view row) {
      if (is_text.empty()) {
        table_.choose(row);
        is_text.resize(table_.columns());
      }
      table_.each_field(row, [&](std::string_view s, std::int64_t column, std::int64_t) {
        double ignored;
        if (!is_text[column]) is_text[column] = !table_.is_missing(s) && parse(s, ignored) == Parsed::text;
      });
    });
    if (is_text.empty()) return;
    std::string left;
    for (std::int64_t c : table_.wanted())
      if (is_text[c]) left += (left.empty() ? "" : ", ") + table_.column_text(c);
    table_.narrow([&](std::int64_t c) { return !is_text[c]; });
    if (table_.wanted().empty()) file_.refuse("every column has text in it");
    if (!left.empty())
      log_info(text("load_csv: ", file_.shown(), ": leaves out the columns with text: ", printable(left)));
  }
  T value(std::string_view s, std::int64_t column) const {
    T v{};
    const Parsed parsed = marked_ && table_.is_missing(s) ? Parsed::text : parse(s, v);
    if (parsed != Parsed::number) return missing(s, column, parsed);
    if constexpr (!std::is_floating_point_v<T>) {
      if (v < low_ || v > high_) table_.refuse(column, v, " does not fit ", options_.dtype);
    } else if (is_half(options_.dtype)) {
      v = before_half(v, s, options_.dtype);
    }
    return v;
  }
  /// The value of a field that is no number: NaN, if it is missing.
  __attribute__((noinline)) T missing(std::string_view s, std::int64_t column, Parsed parsed) const {
    if (parsed == Parsed::too_large) table_.refuse(column, shown(s), " does not fit ", options_.dtype);
    if (!table_.is_missing(s)) refuse_text(s, column);
    if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::quiet_NaN();
    else
      table_.refuse(column, s.empty() ? "an empty field" : shown(s) + " is missing", ", and ", options_.dtype,
                    " has no NaN");
  }
  static std::string shown(std::string_view s) {
    return "'" + std::string(s.substr(0, 40)) + (s.size() > 40 ? "...'" : "'");
  }
  [[noreturn]] void refuse_text(std::string_view s, std::int64_t column) const {
    table_.refuse(column, shown(s), " is not ",
                  std::is_floating_point_v<T> ? "a number"
                  : options_.dtype.is_bool()  ? "0 or 1"
                                              : "an integer",
                  kRemedy,
                  table_.line() == 1 && !options_.skip_rows ? "{.skip_rows = 1} passes over a line of names"
                  : options_.skip_text || !std::is_floating_point_v<T>
                      ? ""
                      : "{.columns = ...} chooses columns, {.skip_text = true} leaves out those with text");
  }
  void push(T v) {
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
  struct Block {
    std::unique_ptr<std::byte[]> data;
    std::int64_t bytes;
  };
  static constexpr int kParsed = 1 << 14;

  const io::InputFile& file_;
  const LoadCsvOptions& options_;
  Table table_;
  const bool marked_;  // markers of the caller, which may look like numbers
  T low_{}, high_{};   // the range of an integer dtype
  std::int64_t rows_ = 0;
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

/// Refuses characters that occur in numbers ("1e-5", "nan", "Infinity"), quotes and line ends.
void check_mark(const char* function, const char* argument, char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
  if (!letter && !digit && !std::strchr("+-.()\"\n\r", c)) return;
  const std::string given = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\0' ? "\\0" : std::string(1, c);
  fail<ValueError>({function, argument}, "is '", given, "'", kExpected, "it must not occur in numbers or end lines");
}

}  // namespace

Tensor load_csv(Name path, const LoadCsvOptions& options) {
  io::InputFile file("load_csv", path, options.max_bytes);
  if (!options.dtype.given()) fail<TypeError>({"load_csv", "dtype"}, "is None");
  if (options.skip_rows < 0)
    fail<ValueError>({"load_csv", "skip_rows"}, "is ", options.skip_rows, kExpected, "it must not be negative");
  check_mark("load_csv", "delimiter", options.delimiter);
  if (options.comment) check_mark("load_csv", "comment", options.comment);
  if (options.comment == options.delimiter)
    fail<ValueError>({"load_csv", "delimiter"}, "is '", options.delimiter, "', which begins comments", kRemedy,
                     "{.comment = '\\0'} switches them off");
  if (options.dtype == float32) return load_as<float>(file, options);  // not by way of double: that would round twice
  if (options.dtype == uint64) return load_as<std::uint64_t>(file, options);
  return options.dtype.is_float() ? load_as<double>(file, options) : load_as<std::int64_t>(file, options);
}

void save_csv(Name path, const Tensor& x, const SaveCsvOptions& options) {
  io::Source source({"save_csv", "x"}, x);
  const TensorSpec& spec = source.spec();
  if (spec.rank != 1 && spec.rank != 2)
    fail<ValueError>({"save_csv", "x"}, "has shape ", spec, kExpected, "it must be a matrix or a vector");
  check_mark("save_csv", "delimiter", options.delimiter);
  if (options.delimiter == '#') fail<ValueError>({"save_csv", "delimiter"}, "is '#', which begins comments");
  std::int64_t columns = spec.rank == 2 ? spec.dims[1] : 1;
  std::string out;
  if (options.header.given()) out = string_of(options.header) + '\n';
  io::OutputFile file("save_csv", path);
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
