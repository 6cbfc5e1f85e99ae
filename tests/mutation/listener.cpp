// tests/mutation/listener.cpp - writes for each test case its seconds, whether it failed, and the mutants whose places
// it reached.
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // of Catch2 2: its listeners
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/catch.h"
#include "tests/mutation/mutant.h"

namespace kassette::mutation {
namespace {

constexpr int kMutants = 4096;

#if KASSETTE_CATCH2 >= 3
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

/// A line each: name, seconds, failed, ids; separated by tabs. The first line is what was reached before any test.
class Reach : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;

  void testRunStarting(const Catch::TestRunInfo& info) override {
    ListenerBase::testRunStarting(info);
    const char* path = std::getenv("KASSETTE_MUTANTS_RECORD");
    if (path) file_ = std::fopen(path, "we");
    unsetenv("KASSETTE_MUTANTS_RECORD");  // a test may start this program again
    write("", 0, false);
  }
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    ListenerBase::testCaseStarting(info);
    begin_ = std::chrono::steady_clock::now();
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    ListenerBase::testCaseEnded(stats);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
#if KASSETTE_CATCH2 >= 3
    const std::string& name = stats.testInfo->name;
#else
    const std::string& name = stats.testInfo.name;
#endif
    write(name.c_str(), seconds.count(), stats.totals.testCases.failed > 0);
  }

 private:
  void write(const char* name, double seconds, bool failed) {
    if (!file_) return;
    std::fprintf(file_, "%s\t%.4f\t%d\t", name, seconds, failed);
    for (int id = 1; id < kMutants; ++id) {
      if (reached[id]) std::fprintf(file_, "%d ", id);
    }
    std::fputc('\n', file_);
    std::fflush(file_);
    std::memset(reached, 0, kMutants);
  }

  std::FILE* file_ = nullptr;
  std::chrono::steady_clock::time_point begin_;
};

CATCH_REGISTER_LISTENER(Reach)

}  // namespace
}  // namespace kassette::mutation
