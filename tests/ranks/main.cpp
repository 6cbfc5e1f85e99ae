// tests/ranks/main.cpp - tests that run on several ranks at once: mpirun -n 3 kassette_ranks_tests. Every rank runs
// every test.
#define CATCH_CONFIG_RUNNER
#include "tests/catch.h"

#include <kassette/backend.h>
#include <kassette/print.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "tests/ranks/device.h"
#include "tests/seed.h"

namespace kassette::test {
namespace {

namespace K = kassette::backend;

#if KASSETTE_CATCH2 >= 3
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

int left_changed = 0;  // tests that left a setting changed

/// The settings that a test must not leave changed.
std::string settings() {
  std::ostringstream all;
  all << "num_threads " << num_threads();
  for (Device device : {cpu, rank_device()}) all << ", memory_limit of " << device << ' ' << memory_stats(device).limit;
  all << ", floatx " << K::floatx() << ", epsilon " << K::epsilon() << ", print_options " << print_options();
  return all.str();
}

/// Gives each test case the same seed on every rank, and compares the settings after it with those before.
class PerTest : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    ListenerBase::testCaseStarting(info);
    name_ = info.name;
    before_ = settings();
  }
  /// A test case with sections starts anew for each of them.
  void sectionStarting(const Catch::SectionInfo& info) override {
    ListenerBase::sectionStarting(info);
    if (depth_++ == 0) K::set_random_seed(seed_of(name_));
  }
  void sectionEnded(const Catch::SectionStats& stats) override {
    ListenerBase::sectionEnded(stats);
    --depth_;
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    ListenerBase::testCaseEnded(stats);
    if (const std::string now = settings(); now != before_) {
      std::printf("\"%s\" leaves settings changed: %s; they were: %s\n", name_.c_str(), now.c_str(), before_.c_str());
      ++left_changed;
    }
    if (stats.totals.testCases.failed > 0) std::printf("\"%s\" failed with %s\n", name_.c_str(), seed_in_use().c_str());
  }

 private:
  std::string name_, before_;
  int depth_ = 0;
};

CATCH_REGISTER_LISTENER(PerTest)

}  // namespace
}  // namespace kassette::test

int main(int argc, char** argv) {
  const kassette::DeviceScope scope(kassette::test::rank_device());
  const int result = Catch::Session().run(argc, argv);
  return kassette::test::left_changed > 0 ? result | 1 : result;
}
