// devices/show_config.cpp - what this library runs on, for people and bug reports.
#include <kassette/show_config.h>

#include <cstdlib>
#include <ostream>
#include <string>

#include <cblas.h>

#include <kassette/error.h>
#include "core/text.h"
#include "core/storage.h"
#include <kassette/version.h>
#include "devices/cpu/level.h"
#include "devices/cpu/openblas_core.h"
#include "devices/cpu/threads.h"
#include "devices/plugin.h"

namespace kassette {
using namespace devices;
namespace {

// "OpenBLAS 0.3.21" of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
std::string blas_name() {
  const std::string config = openblas_get_config();
  return config.substr(0, config.find(' ', config.find(' ') + 1));
}

void show_cuda(std::ostream& out) {
  try {
    device_api(Device(Device::kCuda, 0));
    char cudnn[256] = "none";
    device_library()->describe_cudnn(cudnn, sizeof cudnn);
    out << "devices    cpu, cuda\n"
        << "cudnn      " << cudnn << '\n';
  } catch (const Error& error) {
    out << "devices    cpu\n"
        << "cuda       none: " << error.what() << '\n';
  }
}

void warn_of_blas_core(std::ostream& out, const std::string& core) {
  if (level_of_core(core) >= cpu_level()) return;
  out << "warning: this CPU has " << level_name(cpu_level()) << ", and OpenBLAS runs its " << core
      << " kernels: np::linalg takes up to six times as long";
  if (const char* forced = std::getenv("OPENBLAS_CORETYPE")) {
    out << ": OPENBLAS_CORETYPE=" << forced << " is exported; unset it";
  }
  out << '\n';
}

}  // namespace

void show_config(std::ostream& out) {
  const std::string core = openblas_core();
  out << "kassette   " << version() << '\n'
      << "cpu level  " << level_name(cpu_level()) << '\n'
      << "blas       " << blas_name() << ", core " << core << '\n'
      << "threads    " << text(num_threads()) << '\n';
  show_cuda(out);
  warn_of_blas_core(out, core);
}

}  // namespace kassette
