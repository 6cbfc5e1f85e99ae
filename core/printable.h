// core/printable.h - text of others in messages: from files, paths and the environment.
#pragma once
#include <string>

namespace kassette {

/// On one line: a question mark in place of each control character, which would break the line or steer a terminal.
std::string printable(std::string text);
/// The same, and cut in the middle where it is long.
std::string excerpt(std::string text);

}  // namespace kassette
