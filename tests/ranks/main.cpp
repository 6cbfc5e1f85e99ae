// tests/ranks/main.cpp - tests that run on several ranks at once: mpirun -n 3 kassette_ranks_tests. Every rank runs
// every test.
#define CATCH_CONFIG_RUNNER
#include "tests/catch.h"
#include "tests/ranks/device.h"

int main(int argc, char** argv) {
  const kassette::DeviceScope scope(kassette::test::rank_device());
  return Catch::Session().run(argc, argv);
}
