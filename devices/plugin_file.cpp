// devices/plugin_file.cpp - loading libraries at first use.
#include "devices/plugin_file.h"

#include <dlfcn.h>

#include <cstring>

namespace kassette::devices {

void* open_next_to_library(const char* file, std::string* why) {
  Dl_info info;
  std::string beside;
  if (dladdr(reinterpret_cast<void*>(&open_next_to_library), &info) && info.dli_fname) {
    std::string self = info.dli_fname;
    std::size_t slash = self.rfind('/');
    if (slash != std::string::npos) beside = self.substr(0, slash + 1) + file;
  }
  for (const std::string& name : {beside, std::string(file)}) {
    if (name.empty()) continue;
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* error = dlerror();
    bool missing = error && std::strstr(error, file) && std::strstr(error, "No such file");
    if (why->empty() || !missing)
      *why = missing ? std::string("there is no ") + file + " beside the library" : error ? error : "it does not load";
    if (!missing) return nullptr;
  }
  return nullptr;
}

}  // namespace kassette::devices
