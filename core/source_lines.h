// core/source_lines.h - where in the user's own source the library was called.
#pragma once
#include <string>
#include <vector>

namespace kassette {

/// The innermost return address on the stack that is not in this library; null if there is none.
const void* caller_address() noexcept;

/// The lines of the user's own files behind return addresses, "script.cpp:12". Without debug information (-g1, which
/// `kassette run` asks for) a line is the name of the function, as far as that is known; else it is empty. Slow: it
/// runs addr2line, which comes with the compiler.
std::vector<std::string> source_lines(const std::vector<const void*>& addresses);

/// For a prompt, whose code is in no file: finds the line of an address, or returns an empty text.
using FindLine = std::string (*)(const void* address);
/// For another language: what stands for its line that calls now; null if none does, then it is the address on the
/// stack.
using FindCaller = const void* (*)();
void set_find_line(FindLine find, FindCaller caller);

}  // namespace kassette
