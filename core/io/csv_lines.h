// core/io/csv_lines.h - lines and fields of a table in text (RFC 4180, with comments and more line ends).
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace kassette::io {

/// A line of a table; several lines of the file if a quoted field has line ends in it.
struct CsvLine {
  std::string_view text;  // without comment and line end
  std::size_t bytes = 0;  // with both
  std::int64_t ends = 0;  // how many lines of the file it is
  bool unclosed = false;  // a quote in it is not closed
};

struct CsvLayout {
  char delimiter;  // ' ': any number of blanks and tabs
  char comment;    // '\0': there are no comments

  std::string_view trimmed(std::string_view s) const {
    s = without_lead(s);
    while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
    return s;
  }
  /// The text of a field; a doubled quote in quotes stands for one.
  std::string unquoted(std::string_view s) const {
    std::string out;
    for (std::size_t i = 0; i < s.size(); ++i) {
      out += s[i];
      if (s[i] == '"' && i + 1 < s.size() && s[i + 1] == '"') ++i;
    }
    return out;
  }

  /// Takes the first line of `all`. Returns false if its end is not there and more may follow, unless `all` is `last`.
  bool take(std::string_view all, bool last, CsvLine& line) const;

  /// Calls field(text), without blanks and quotes around it, for each field of a line.
  template <class F>
  void each_field(std::string_view line, F&& field) const {
    if (delimiter == ' ') line = trimmed(line);
    const bool plain = delimiter != ' ' && line.find('"') == line.npos;
    for (bool more = true; more;) {
      const std::size_t end = plain ? std::min(line.find(delimiter), line.size()) : field_end(line);
      more = end < line.size();
      field(plain ? trimmed(line.substr(0, end)) : bare(line.substr(0, end)));
      line.remove_prefix(more ? end + 1 : end);
      if (delimiter == ' ') line = without_lead(line);
    }
  }

 private:
  /// Blanks around fields have no meaning, unless they part them.
  bool is_blank(char c) const { return c == ' ' || (c == '\t' && delimiter != '\t'); }
  bool parts(char c) const { return delimiter == ' ' ? is_blank(c) : c == delimiter; }
  std::string_view without_lead(std::string_view s) const {
    while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
    return s;
  }
  std::string_view bare(std::string_view s) const {
    s = trimmed(s);
    return s.size() >= 2 && s.front() == '"' && s.back() == '"' ? trimmed(s.substr(1, s.size() - 2)) : s;
  }
  std::size_t field_end(std::string_view line) const;
  /// Whether the mark at all[at] begins a comment, and is no part of a word such as #N/A or 1.#INF.
  bool begins_comment(std::string_view all, std::size_t at) const;
};

}  // namespace kassette::io
