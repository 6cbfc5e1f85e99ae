// tests/ranks/failing.cpp - a rank that fails while the others wait for it: `failing throw`, kill, exit, leave, sleep;
// interrupt: a rank is asked to stop while it waits.
#include <kassette/backend.h>
#include <kassette/distributed.h>
#include <kassette/interrupt.h>
#include <kassette/runtime.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/ranks/device.h"

namespace K = kassette::backend;
namespace D = kassette::distributed;

int main(int argc, char** argv) {
  const D::World world = D::init();
  const kassette::DeviceScope scope(kassette::test::rank_device());
  const std::string how = argc > 1 ? argv[1] : "";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 5;
  std::printf("rank %d begins\n", world.rank());
  for (int i = 0; i < steps; ++i) D::all_reduce(K::ones({1000}));
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
