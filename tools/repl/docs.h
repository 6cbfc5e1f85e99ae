// tools/repl/docs.h - the documentation of a function, from the comments in the installed headers.
#pragma once
#include <string>
#include <vector>

namespace repl {

/// A documented declaration of the installed headers.
struct DocEntry {
  std::string name;   // "softmax", "Tensor::item"; empty for the header itself, whose comment says what it is about
  std::string scope;  // "kassette::backend", "kassette"
  std::string declaration;  // as in the header, without KASSETTE_API
  std::string comment;      // the lines behind ///, as they are
  std::string header;       // "kassette/backend/softmax.h"
};

/// Reads every header below include_dir/kassette. A comment belongs to the declaration right after it.
std::vector<DocEntry> read_headers(const std::string& include_dir);

/// The documentation of "softmax", "K::softmax" or "Tensor::item"; empty where there is no such name.
std::string documentation(const std::vector<DocEntry>& entries, std::string name);

/// The names in a namespace, "np::linalg" or "K", with what their headers are about; empty where there is none.
std::string namespace_page(const std::vector<DocEntry>& entries, const std::string& name);

/// That there is none, with the nearest name that has some.
std::string no_documentation(const std::vector<DocEntry>& entries, const std::string& name);

/// The text with lines of at most `width` columns, broken between words. Continuation lines are aligned with the text
/// after the first run of spaces in their line, or else indented by four.
std::string wrapped(const std::string& text, std::size_t width);

}  // namespace repl
