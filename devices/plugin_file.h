// devices/plugin_file.h - loading libraries at first use.
#pragma once
#include <string>

namespace kassette::devices {

/// Loads `file` from the folder of the library that this code is in, else by the loader's search path. Returns null,
/// with the reason in `why`, if neither works.
void* open_next_to_library(const char* file, std::string* why);

}  // namespace kassette::devices
