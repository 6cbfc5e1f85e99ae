// tests/core/log_test.cpp - what the log says on stderr, and from which level on.
#include "core/log.h"
#include "tests/catch.h"
#include "tests/settings.h"
#include "tests/stderr_of.h"

using namespace kassette;
using kassette::test::stderr_of;

namespace {

struct LogScope : test::SettingsScope {
  explicit LogScope(LogLevel level) { set_log_level(level); }
};

}  // namespace

TEST_CASE("the log says lines on stderr from its level on", "[log]") {
  LogScope scope(LogLevel::info);
  CHECK(stderr_of([] { log_info("one"); }) == "kassette: info: one\n");
  CHECK(stderr_of([] { log_warning("two"); }) == "kassette: warning: two\n");
  CHECK(stderr_of([] { log_debug("three"); }).empty());
  set_log_level(LogLevel::off);
  CHECK(stderr_of([] { log_warning("four"); }).empty());
}

TEST_CASE("a warning said once is not said again", "[log]") {
  LogScope scope(LogLevel::warning);
  WarnOnce once;
  CHECK(!stderr_of([&] { once.say("again"); }).empty());
  CHECK(stderr_of([&] { once.say("again"); }).empty());
  CHECK(once.said());
}
