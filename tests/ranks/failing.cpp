// tests/ranks/failing.cpp - a rank that fails while the others wait for it: `failing throw`, kill, exit, leave, sleep;
// interrupt: a rank is asked to stop while it waits. With caught, leave_split, leave_recv, send, fork and split, ranks
// end in other ways that leave something undone.
#include <kassette/backend.h>
#include <kassette/distributed.h>
#include <kassette/interrupt.h>
#include <kassette/runtime.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/ranks/device.h"

namespace K = kassette::backend;
namespace D = kassette::distributed;

namespace {

/// Calls f, and prints the error that it throws.
template <class F>
void printing(const D::World& world, F f) {
  try {
    f();
  } catch (const kassette::Error& e) {
    std::printf("rank %d caught %s\n", world.rank(), e.what());
    std::fflush(stdout);
  }
}

/// A fork of this rank uses the world, then exits as a program does.
void fork_and_exit(const D::World& world) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    printing(world, [] { D::all_reduce(K::ones({3})); });
    printing(world, [&] { D::recv(K::ones({3}), (world.rank() + 1) % world.size()); });
    std::exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  std::printf("the fork ends with %d\n", status);
}

/// The ways of ending in which the last rank is `odd`. Returns false if `how` is none of them.
bool end_otherwise(const std::string& how, const D::World& world, bool odd) {
  if (how == "caught") {
    if (!odd) printing(world, [] { D::all_reduce(K::ones({3})); });
    if (!odd) printing(world, [] { D::all_gather(K::ones({3})); });
  } else if (how == "leave_split") {
    const D::World all = world.split(0);
    if (!odd) D::all_reduce(K::ones({3}), D::sum, all);
  } else if (how == "leave_recv") {
    if (!odd) D::recv(K::ones({3}), world.size() - 1);
  } else if (how == "send") {
    if (odd) D::send(K::ones({1000000}), 0);
  } else if (how == "fork") {
    if (odd) fork_and_exit(world);
    std::printf("sum %g\n", D::all_reduce(K::constant(1.)).item<double>());
  } else if (how == "split") {
    printing(world, [&] { world.split(odd ? -1 : 0); });
    std::printf("sum %g\n", D::all_reduce(K::constant(1.)).item<double>());
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const D::World world = D::init();
  const kassette::DeviceScope scope(kassette::test::rank_device());
  const std::string how = argc > 1 ? argv[1] : "";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 5;
  std::printf("rank %d begins\n", world.rank());
  for (int i = 0; i < steps; ++i) D::all_reduce(K::ones({1000}));
  if (end_otherwise(how, world, world.rank() == world.size() - 1)) return 0;
  if (world.rank() == world.size() - 1) {
    if (how == "throw") K::dot(K::ones({2, 3}), K::ones({2, 3}));
    if (how == "kill") raise(SIGKILL);
    if (how == "exit") return 3;
    if (how == "leave") return 0;
    if (how == "sleep" || how == "interrupt") sleep(100);
  }
  if (how == "interrupt" && world.rank() == 0) {
    // As a program that has a handler for Ctrl-C: Python's, a prompt's.
    signal(SIGALRM, [](int) { kassette::request_interrupt(); });
    ualarm(300000, 0);
  }
  D::all_reduce(K::ones({3}));
  std::printf("rank %d ends\n", world.rank());
}
