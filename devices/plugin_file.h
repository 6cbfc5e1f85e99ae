// devices/plugin_file.h - finding the libraries that are loaded when they are first needed.
#pragma once
#include <string>

namespace kassette {

/// Loads `file` from the folder of the library that this code is in, else from wherever the loader finds it. Null where neither
/// works; then `why` has the reason.
void* open_beside(const char* file, std::string* why);

}  // namespace kassette
