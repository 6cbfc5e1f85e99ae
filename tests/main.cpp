// tests/main.cpp - runs the unit tests and ends with `N passed, N failed, N skipped`, counted in
// test cases.
#define CATCH_CONFIG_RUNNER
#include "tests/catch.h"

#include <kassette/print.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "devices/plugin.h"
#include "ops/random/random.h"
#include "tests/listener.h"
#include "tests/settings.h"
#include "tests/shadow.h"
#include "tests/sources.h"

namespace kassette::test {
namespace {

struct Counts {
  int passed = 0, failed = 0, skipped = 0;
};

Counts counts;
std::string skipping;                    // the reason; empty where the test runs
std::map<std::string, int> why_skipped;  // reasons, with how many tests each

std::optional<Settings> before_test;
int left_changed = 0;  // tests that left a setting changed

class Counter : public SeedingListener<ops::set_random_seed> {
 public:
  using SeedingListener::SeedingListener;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    SeedingListener::testCaseStarting(info);
    skipping.clear();
    before_test = Settings::now();
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    ListenerBase::testCaseEnded(stats);
    const std::string change = before_test->change();
    if (!change.empty()) {
      std::printf("\"%s\" leaves settings changed: %s\n", name().c_str(), change.c_str());
      before_test->restore();
      ++left_changed;
    }
    if (stats.totals.testCases.failed > 0)
      std::printf("\"%s\" failed with %s\n", name().c_str(), seed_in_use().c_str());
    std::fflush(stdout);  // a test that forks would have its children write it again
    if (stats.totals.testCases.failed > 0 || !change.empty()) {
      ++counts.failed;
    } else if (!skipping.empty()) {
      ++counts.skipped;
      ++why_skipped[skipping];
    } else {
      ++counts.passed;
    }
  }
};

CATCH_REGISTER_LISTENER(Counter)

}  // namespace

void skip(const std::string& reason) { skipping = reason; }

void print_counts() {
  for (const auto& [reason, tests] : why_skipped)
    std::printf("skipped: %s (%d test%s)\n", reason.c_str(), tests, tests == 1 ? "" : "s");
  std::printf("%d passed, %d failed, %d skipped\n", counts.passed, counts.failed, counts.skipped);
}

const char* source_folder() { return KASSETTE_SOURCE_DIR; }
const char* emulated_cuda_library() {
#ifdef KASSETTE_EMULATED_CUDA
  return KASSETTE_EMULATED_CUDA;
#else
  return nullptr;
#endif
}

}  // namespace kassette::test

#ifdef __SANITIZE_ADDRESS__
// glibc keeps the folders of a LOCPATH that it has read.
extern "C" const char* __lsan_default_suppressions() { return "leak:argz_add_sep\n"; }
#endif

#ifdef __SANITIZE_THREAD__
// ThreadSanitizer ends a child of fork that starts threads, which is what one of our tests is about.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

/// KASSETTE_TEST_CUDA=emulated: the device that tests/emulated_cuda makes of the host takes the place of a GPU.
static void choose_cuda() {
  const char* wanted = std::getenv("KASSETTE_TEST_CUDA");
  if (!wanted || std::strcmp(wanted, "emulated") || !kassette::test::emulated_cuda_library()) return;
  std::puts("cuda:0 is an emulated CUDA device: kernels run on the host");
  kassette::devices::use_device_library(kassette::test::emulated_cuda_library());
  if (const char* why = kassette::device_absent(kassette::Device("cuda:0"))) {
    std::printf("the emulated device is missing: %s\n", why);
    std::exit(1);
  }
}

/// Of the tests that `specs` name, KASSETTE_TEST_FILTER leaves those that it names too. Both are in Catch2's language,
/// in which a comma separates alternatives.
static void filter_tests(std::vector<std::string>& specs) {
  const char* filter = std::getenv("KASSETTE_TEST_FILTER");
  if (!filter || !*filter) return;
  if (specs.empty()) specs.emplace_back();
  for (std::string& spec : specs) {
    for (std::size_t comma = spec.rfind(','); comma != spec.npos && comma > 0; comma = spec.rfind(',', comma - 1))
      spec.insert(comma + 1, filter);
    spec.insert(0, filter);
  }
}

int main(int argc, char** argv) {
  Catch::Session session;
  if (const int refused = session.applyCommandLine(argc, argv)) return refused;
  filter_tests(session.configData().testsOrTags);
  // keras.json belongs to whoever runs this.
  std::string home = (std::filesystem::temp_directory_path() / "kassette_tests_XXXXXX").string();
  if (!mkdtemp(home.data())) return 2;
  setenv("KERAS_HOME", home.c_str(), 1);
  choose_cuda();
  unsetenv("KERAS_BACKEND");
  kassette::set_print_sink([](const char*) {});  // the sweeps print thousands of tensors
  kassette::test::start_shadow();
  int result = kassette::test::end_shadow(session.run());
  kassette::test::print_counts();
  if (kassette::test::left_changed > 0) result |= 1;
  std::filesystem::remove_all(home);
  return result;
}
