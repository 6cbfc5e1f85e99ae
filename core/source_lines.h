// core/source_lines.h - where in the user's own source the library was called.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kassette {

/// The innermost return address on the stack that is not in this library; null if there is none.
const void* caller_address() noexcept;

/// The lines of the user's own files behind return addresses, "script.cpp:12". Without debug information (-g1, which
/// `kassette run` asks for) a line is the name of the function, as far as that is known; else it is empty. Slow: it
/// runs addr2line, which comes with the compiler.
std::vector<std::string> source_lines(const std::vector<const void*>& addresses);

/// A line that addr2line printed, "file:line", as it is shown to the user: relative to the folder `here`. Empty if it
/// is not known, or if the file is not the user's own but a library's. Allocates nothing: signal handlers call it.
inline std::string_view own_line(std::string_view said, std::string_view here) {
  said = said.substr(0, said.find(" (discriminator"));
  const std::size_t colon = said.rfind(':');
  if (colon == said.npos || colon + 1 >= said.size() || said[colon + 1] < '1' || said[colon + 1] > '9') return {};
  if (said.starts_with("/usr/") || said.find("/include/") != said.npos) return {};
  if (here.size() > 1 && said.size() > here.size() && said.starts_with(here) && said[here.size()] == '/')
    said.remove_prefix(here.size() + 1);
  if (said.starts_with("./")) said.remove_prefix(2);
  return said;
}

/// For a prompt, whose code is in no file: finds the line of an address, or returns an empty text.
using FindLine = std::string (*)(const void* address);
/// For another language: what stands for its line that calls now; null if none does, then it is the address on the
/// stack.
using FindCaller = const void* (*)();
void set_find_line(FindLine find, FindCaller caller);

}  // namespace kassette
