// tests/devices/blas_memory_test.cpp - OpenBLAS' buffers where address space is limited (ulimit -v).
#include <kassette/backend.h>
#include <kassette/numpy.h>
#include <kassette/runtime.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "core/sanitizers.h"
#include "ops/engine/operand.h"
#include "tests/catch.h"

namespace K = kassette::backend;
using namespace kassette;

namespace {

/// What a child process does under a limit of `more` bytes above what it has mapped: 0 if a thread's first
/// factorisation works after `cached` bytes were freed.
int factorise_under_limit(std::int64_t more, std::int64_t cached) {
  set_num_threads(1);
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto bytes = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + more);
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
  try {
    (void)ops::empty_tensor(TensorSpec(uint8, {cached}));  // its pages are never written
    if (memory_stats().cached < cached) return 3;
    int failed = 1;
    std::thread([&] {
      try {
        failed = numpy::linalg::cholesky(K::eye(300))(0, 0).item<float>() != 1;
      } catch (const MemoryError&) {
      }
    }).join();
    return failed;
  } catch (...) {
    return 4;
  }
}

}  // namespace

TEST_CASE("a thread's first factorisation gives back cached memory where there is no room for its buffer",
          "[linalg][memory]") {
  if (kAddressSanitizer || kThreadSanitizer) return test::skip("sanitizers reserve address space");
  const std::int64_t mb = 1 << 20;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(factorise_under_limit(600 * mb, 500 * mb));
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
