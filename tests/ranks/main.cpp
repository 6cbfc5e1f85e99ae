// tests/ranks/main.cpp - tests that run on several ranks at once: mpirun -n 3 kassette_ranks_tests. Every rank runs
// every test.
#define CATCH_CONFIG_RUNNER
#include "tests/catch.h"

#include <kassette/backend.h>
#include <kassette/print.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "tests/listener.h"
#include "tests/ranks/device.h"

namespace kassette::test {
namespace {

namespace K = kassette::backend;

int left_changed = 0;  // tests that left a setting changed

/// The settings that a test must not leave changed.
std::string settings() {
  std::ostringstream all;
  all << "num_threads " << num_threads();
  for (Device device : {cpu, rank_device()}) all << ", memory_limit of " << device << ' ' << memory_stats(device).limit;
  all << ", floatx " << K::floatx() << ", epsilon " << K::epsilon() << ", print_options " << print_options();
  return all.str();
}

void seed_draws(std::uint64_t seed) { K::set_random_seed(seed); }

/// Gives each test case the same seed on every rank, and compares the settings after it with those before.
class PerTest : public SeedingListener<seed_draws> {
 public:
  using SeedingListener::SeedingListener;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    SeedingListener::testCaseStarting(info);
    before_ = settings();
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    ListenerBase::testCaseEnded(stats);
    if (const std::string now = settings(); now != before_) {
      std::printf("\"%s\" leaves settings changed: %s; they were: %s\n", name().c_str(), now.c_str(), before_.c_str());
      ++left_changed;
    }
    if (stats.totals.testCases.failed > 0)
      std::printf("\"%s\" failed with %s\n", name().c_str(), seed_in_use().c_str());
  }

 private:
  std::string before_;
};

CATCH_REGISTER_LISTENER(PerTest)

}  // namespace
}  // namespace kassette::test

int main(int argc, char** argv) {
  const kassette::DeviceScope scope(kassette::test::rank_device());
  const int result = Catch::Session().run(argc, argv);
  return kassette::test::left_changed > 0 ? result | 1 : result;
}
