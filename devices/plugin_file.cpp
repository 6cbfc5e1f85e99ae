// devices/plugin_file.cpp - loading libraries at first use.
#include "devices/plugin_file.h"

#include <dlfcn.h>
#include <locale.h>
#include <sys/stat.h>

namespace kassette::devices {

void* open_library(const std::string& file, int flags, std::string* why) {
  struct stat status;
  if (file.find('/') != std::string::npos && ::stat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    *why = file + " is not a regular file";  // opening a pipe would wait for its writer
    return nullptr;
  }
  void* library = dlopen(file.c_str(), flags | RTLD_LOCAL);
  if (library) return library;
  const locale_t before = ::uselocale(::newlocale(LC_ALL_MASK, "C", nullptr));  // glibc's constant, which stays
  const char* error = dlerror();
  *why = error ? error : file + " does not load";
  ::uselocale(before);
  return nullptr;
}

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
    std::string error;
    if (void* library = open_library(name, RTLD_NOW, &error)) return library;
    bool missing = error.find(file) != error.npos && error.find("No such file") != error.npos;
    if (why->empty() || !missing) *why = missing ? std::string("there is no ") + file + " beside the library" : error;
    if (!missing) return nullptr;
  }
  return nullptr;
}

}  // namespace kassette::devices
