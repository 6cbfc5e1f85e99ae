// tests/core/log_test.cpp - what the log says on stderr, and from which level on.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/log.h"
#include "tests/catch.h"

using namespace kassette;

namespace {

/// What f writes to stderr.
template <class F>
std::string stderr_of(F f) {
  std::fflush(stderr);
  std::FILE* file = std::tmpfile();
  int kept = dup(2);
  dup2(fileno(file), 2);
  f();
  std::fflush(stderr);
  dup2(kept, 2);
  close(kept);
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(&text[0], 1, text.size(), file));
  std::fclose(file);
  return text;
}

struct Level {
  explicit Level(LogLevel level) : before(log_level()) { set_log_level(level); }
  ~Level() { set_log_level(before); }
  LogLevel before;
};

}  // namespace

TEST_CASE("the log says lines on stderr from its level on", "[log]") {
  Level scope(LogLevel::info);
  CHECK(stderr_of([] { log_info("one"); }) == "kassette: info: one\n");
  CHECK(stderr_of([] { log_warning("two"); }) == "kassette: warning: two\n");
  CHECK(stderr_of([] { log_debug("three"); }).empty());
  set_log_level(LogLevel::off);
  CHECK(stderr_of([] { log_warning("four"); }).empty());
}

TEST_CASE("a warning said once is not said again", "[log]") {
  Level scope(LogLevel::warning);
  WarnOnce once;
  CHECK(!stderr_of([&] { once.say("again"); }).empty());
  CHECK(stderr_of([&] { once.say("again"); }).empty());
  CHECK(once.said());
}
