// core/io/csv_lines.cpp - lines and fields of a table in text.
#include "core/io/csv_lines.h"

#include <algorithm>

namespace kassette::io {
namespace {

/// The quote that closes the one at `open`, where "" stands for a quote; npos if there is none.
std::size_t closing_quote(std::string_view s, std::size_t open) {
  for (std::size_t at = s.find('"', open + 1); at != s.npos; at = s.find('"', at + 2))
    if (at + 1 >= s.size() || s[at + 1] != '"') return at;
  return s.npos;
}

/// The first line end from `at` on, or the end. In pieces: looking for a '\n' far behind each '\r' would be quadratic.
std::size_t line_end(std::string_view s, std::size_t at) {
  constexpr std::size_t kPiece = 4096;
  for (; at < s.size(); at += kPiece) {
    const std::string_view piece = s.substr(at, kPiece), line = piece.substr(0, piece.find('\n'));
    const std::size_t end = std::min(line.find('\r'), line.size());
    if (end < piece.size()) return at + end;
  }
  return s.size();
}

}  // namespace

bool CsvLayout::take(std::string_view all, bool last, CsvLine& line) const {
  line = {};
  std::size_t end = line_end(all, 0);
  const std::string_view first = all.substr(0, end);
  std::size_t text_end = end;
  if (first.find('"') == first.npos) {
    if (comment)
      for (std::size_t at = first.find(comment); at != first.npos; at = first.find(comment, at + 1))
        if (begins_comment(all, at)) {
          text_end = at;
          break;
        }
  } else {
    // A quote begins a quoted field only where a field begins.
    bool field_begins = true;
    for (end = 0; end < all.size() && all[end] != '\n' && all[end] != '\r'; ++end) {
      const char c = all[end];
      if (c == comment && begins_comment(all, end)) break;
      if (c == '"' && field_begins) {
        const std::size_t close = closing_quote(all, end);
        // At the end of what is there, a quote may be the first of two.
        if (!last && (close == all.npos || close + 1 == all.size())) return false;
        line.unclosed |= close == all.npos;
        if (line.unclosed) break;
        for (std::size_t i = end; i < close; ++i) line.ends += all[i] == '\n' || (all[i] == '\r' && all[i + 1] != '\n');
        end = close;
      }
      field_begins = parts(c) || (field_begins && is_blank(c));
    }
    if (line.unclosed) end = line_end(all, end);
    text_end = end;
  }
  if (end < all.size() && all[end] != '\n' && all[end] != '\r') end = line_end(all, end);
  const bool two = end + 1 < all.size() && all[end] == '\r' && all[end + 1] == '\n';
  if (!last && (end == all.size() || (all[end] == '\r' && end + 1 == all.size()))) return false;
  line.text = all.substr(0, text_end);
  line.bytes = std::min(end + (two ? 2 : 1), all.size());
  ++line.ends;
  return true;
}

bool CsvLayout::begins_comment(std::string_view all, std::size_t at) const {
  if (comment != '#') return comment != '\0';
  const auto is_one_of = [](std::string_view s, auto&... words) { return (... || (s == words)); };
  // MSVC's infinities and NaN: 1.#INF.
  if (at > 0 && all[at - 1] == '.' &&
      (is_one_of(all.substr(at, 4), "#INF", "#IND") || is_one_of(all.substr(at, 5), "#QNAN", "#SNAN")))
    return false;
  // Errors of spreadsheets, where they are a whole field.
  std::size_t before = at, end = at;
  while (before > 0 && is_blank(all[before - 1]) && !parts(all[before - 1])) --before;
  if (before > 0 && !parts(all[before - 1]) && all[before - 1] != '\n') return true;
  while (end < all.size() && !parts(all[end]) && all[end] != '\n' && all[end] != '\r') ++end;
  return !is_one_of(trimmed(all.substr(at, end - at)), "#N/A", "#NA", "#N/A N/A", "#DIV/0!", "#REF!", "#VALUE!",
                    "#NAME?", "#NUM!", "#NULL!");
}

std::size_t CsvLayout::field_end(std::string_view line) const {
  // Within quotes a delimiter is text. A look at the line's end for each field would be quadratic.
  const std::string_view lead = without_lead(line);
  std::size_t from = 0;
  if (!lead.empty() && lead.front() == '"')
    from = std::min(closing_quote(line, line.size() - lead.size()), line.size());
  if (delimiter != ' ') return std::min(line.find(delimiter, from), line.size());
  while (from < line.size() && !is_blank(line[from])) ++from;
  return from;
}

}  // namespace kassette::io
