// devices/plugin_file.h - loading libraries at first use.
#pragma once
#include <string>

namespace kassette::devices {

/// dlopen(), with the flags that are wanted beside RTLD_LOCAL. Returns null, with the reason in `why`, if that fails:
/// at once for what is not a file, such as a pipe, and in English, since callers look for words in it.
void* open_library(const std::string& file, int flags, std::string* why);

/// Loads `file` from the folder of the library that this code is in, else by the loader's search path. Returns null,
/// with the reason in `why`, if neither works.
void* open_next_to_library(const char* file, std::string* why);

}  // namespace kassette::devices
