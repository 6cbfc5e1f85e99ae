// tests/fuzz/reader.cpp - one reader of files under libFuzzer. KASSETTE_FUZZ_CALL is the call; tests/scripts/fuzz.sh builds
// and runs one program for each.
#include <kassette/error.h>
#include <kassette/io.h>
#include <kassette/runtime.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "devices/plugin.h"

// Of the ops, which are not linked: no device library is loaded here.
void kassette::connect_plugin(const DevicePlugin&, HostServices*) {}

using namespace kassette;

namespace {

/// What no reader may exceed: what the bytes of a file can unpack to, and some for small blocks.
std::int64_t allowed(std::size_t size) { return static_cast<std::int64_t>(size) * 1032 * 2 + (4 << 20); }

void touch(const Tensor& x) {
  auto* bytes = static_cast<const unsigned char*>(x.data(x.dtype()));
  volatile unsigned sum = 0;
  for (std::int64_t i = 0; i < x.size() * x.dtype().size(); ++i) sum = sum + bytes[i];
  if (x.dtype().is_bool())
    for (std::int64_t i = 0; i < x.size(); ++i)
      if (bytes[i] > 1) std::abort();
}
void touch(const NamedTensors& list) {
  for (const NamedTensor& t : list) touch(t.tensor);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const int file = ::memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  empty_cache();
  reset_peak_memory();
  try {
    touch(KASSETTE_FUZZ_CALL);
  } catch (const ValueError& e) {
    // One line, and it names the file.
    if (std::strchr(e.what(), '\n') || !std::strstr(e.what(), ": ")) std::abort();
  }
  if (memory_stats().peak > allowed(size)) {
    std::fprintf(stderr, "%zu bytes took %lld\n", size, static_cast<long long>(memory_stats().peak));
    std::abort();
  }
  return 0;
}
