// tests/fuzz/reader.cpp - the readers of files under libFuzzer: the one that KASSETTE_READER names.
// tests/scripts/fuzz.sh builds and runs it; with KASSETTE_READER=list it prints their names and formats.
#include "tests/fuzz/readers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "devices/cpu/gemm.h"
#include "devices/cpu/gemv.h"
#include "devices/plugin.h"

// Of the ops, which are not linked: no device library is loaded here, and nothing is multiplied.
bool kassette::ops::connect_plugin(const devices::DevicePlugin&, devices::HostServices*) { return false; }
namespace kassette::devices {
const GemmTable gemm_table_sse2 = {}, gemm_table_avx2 = {}, gemm_table_avx512 = {};
const GemvTable gemv_table_sse2 = {}, gemv_table_avx2 = {}, gemv_table_avx512 = {};
}  // namespace kassette::devices

namespace {

const kassette::test::Reader* chosen;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("KASSETTE_READER");
  for (const kassette::test::Reader& reader : kassette::test::kReaders) {
    if (name && !std::strcmp(name, "list")) std::printf("%s %s\n", reader.name, reader.format);
    if (name && !std::strcmp(name, reader.name)) chosen = &reader;
  }
  if (chosen) return 0;
  std::exit(name && !std::strcmp(name, "list") ? 0 : 2);
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const int file = ::memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  const std::string wrong = kassette::test::fault(*chosen, path, size);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s: %s\n", chosen->name, wrong.c_str());
  std::abort();
}
