// tests/devices/emulated_device_test.cpp - what the emulated device (tests/emulated_cuda) refuses, and what it reveals
// by wrong values: one fault of each kind that would be an error on a GPU, and that our kernels and streams must not
// have.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tests/devices/devices.h"
#include "tests/stderr_of.h"

namespace kassette::test {
namespace {

/// The outcome of a process with that fault: the line that it writes or, if only values can show the fault, "wrong" or
/// "right".
std::string outcome(const char* name) {
  auto misuse = emulated<int(const char*)>("emulated_misuse");
  auto catch_faults = emulated<void()>("emulated_catch_faults");
  int status = 0;
  std::string said = stderr_of([&] {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(SIGABRT, SIG_DFL);  // the test framework's report is for tests
      catch_faults();
      _exit(misuse(name));
    }
    waitpid(child, &status, 0);
  });
  if (!WIFEXITED(status)) return said;
  return WEXITSTATUS(status) == 0 ? "right" : WEXITSTATUS(status) == 1 ? "wrong" : "there is no such fault";
}

struct Case {
  const char* name;
  const char* outcome;  // or a part of it
};

bool is_emulated() {
  if (!has_device("cuda:0")) return false;
  if (emulated<int(const char*)>("emulated_misuse")) return true;
  skip("a GPU");
  return false;
}

}  // namespace

TEST_CASE("the emulated device ends a program that a GPU would not let go on", "[devices]") {
  if (!is_emulated()) return;
  const Case cases[] = {
      {"a pointer of the host",
       "set_one(float*, long): argument 0: a pointer to memory of the host (EMULATED_CUDA_SEED="},
      {"a pointer of the host in a struct", "argument 0, byte 8: a pointer to memory of the host"},
      {"a block that was freed", "argument 0: a pointer to memory that is not allocated"},
      {"a block of another device", "argument 0: a pointer to memory of another device"},
      {"a write one element beyond", "set_one(float*, long): it wrote beyond the end"},
      {"a write one element before",
       "set_one(float*, long): it wrote beyond the end, or before the beginning, of a block"},
      {"a read one element beyond",
       "copy_one(float const*, long, float*): it touches memory that no block of its arguments has"},
      {"a read of device memory on the host", "the host touched memory of a device"},
      {"a load that is not aligned", "it loads or stores what is not aligned as its type"},
      {"a copy beyond the end", "cudaMemcpy of memory beyond the end of a block"},
      {"a bias of the host", "a product with a bias of memory of the host"},
      {"a matrix less aligned than was said", "an address that is less aligned than was said"},
      {"a copy the wrong way", "cudaMemcpy the wrong way"},
      {"a memset of the host's memory", "cudaMemset of memory of the host"},
      {"work while another device is current", "work for a stream while another device is current"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK_THAT(outcome(c.name), Catch::Contains(c.outcome));
  }
  if (std::getenv("EMULATED_CUDA_OPEN")) return;
  CHECK_THAT(outcome("a read of a block that the kernel was not given"),
             Catch::Contains("it touches memory that no block of its arguments has"));
}

TEST_CASE("the emulated device gives wrong values where a GPU may", "[devices]") {
  if (!is_emulated()) return;
  const Case cases[] = {
      {"device memory that nobody has set", "wrong"},
      {"shared memory that nobody has set", "wrong"},
      {"a variable of a thread that nobody has set", "wrong"},
      {"a value on the host before its copy was waited for", "wrong"},
      {"a buffer of the host that changes before its copy ran", "wrong"},
      {"no __syncthreads", "wrong"},
      {"no __syncwarp", "wrong"},
      {"no wait for another stream", "wrong"},
      {"right: a loop over the blocks", "right"},
      {"right: a wait for another stream", "right"},
      {"right: a matrix as aligned as was said", "right"},
      {"right: a small number before half of an address", "right"},
      {"right: __syncthreads and __syncwarp", "right"},
      {"no such thing", "there is no such fault"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(outcome(c.name) == c.outcome);
  }
  const char* seed = std::getenv("EMULATED_CUDA_SEED");
  const char* drawn = seed && std::string(seed) == "0" ? "right" : "wrong";
  CHECK(outcome("blocks that count on their order") == drawn);
  CHECK(outcome("no loop over the blocks") == drawn);
}

}  // namespace kassette::test
