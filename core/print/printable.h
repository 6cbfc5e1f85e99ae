// core/print/printable.h - quoting untrusted text (from files, paths and the environment) in messages.
#pragma once
#include <string>

namespace kassette {

/// `text` with a question mark for each control character, which would break the line or control the terminal.
std::string printable(std::string text);
/// printable(text), shortened in the middle if it is long.
std::string excerpt(std::string text);

}  // namespace kassette
