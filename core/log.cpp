// core/log.cpp - the log; the only file that uses spdlog.
#include "core/log.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

namespace kassette {
namespace {

constexpr int kUnset = -1;
std::atomic<int> level_in_use{kUnset};

// The logger and its lock are made at first use and never destroyed: code that runs at exit may still log.
spdlog::logger* logger = nullptr;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_once_t once = PTHREAD_ONCE_INIT;

void make_logger() {
  logger = new spdlog::logger("kassette", std::make_shared<spdlog::sinks::ansicolor_stderr_sink_st>());
  logger->set_pattern("%n: %^%l%$: %v");
  logger->set_level(spdlog::level::trace);  // log_level() decides
  logger->flush_on(spdlog::level::trace);
  // The child of a fork must not inherit a lock that another thread held.
  pthread_atfork([] { pthread_mutex_lock(&mutex); }, [] { pthread_mutex_unlock(&mutex); },
                 [] { pthread_mutex_unlock(&mutex); });
}

void say(LogLevel level, spdlog::level::level_enum as, const std::string& text) noexcept {
  if (!log_enabled(level)) return;
  try {
    pthread_once(&once, make_logger);
    pthread_mutex_lock(&mutex);
    logger->log(as, spdlog::string_view_t(text.data(), text.size()));
  } catch (...) {
    return;  // the message is lost; spdlog itself catches exceptions of its sinks
  }
  pthread_mutex_unlock(&mutex);
}

}  // namespace

LogLevel log_level() {
  int level = level_in_use.load(std::memory_order_relaxed);
  if (level != kUnset) return static_cast<LogLevel>(level);
  const char* name = std::getenv("KASSETTE_LOG");
  constexpr const char* kNames[] = {"debug", "info", "warn", "error", "off"};
  level = static_cast<int>(LogLevel::warning);
  bool known = !name || !*name || !std::strcmp(name, "warning");
  for (int i = 0; i < 5 && !known; ++i)
    if ((known = !std::strcmp(name, kNames[i]))) level = i;
  level_in_use.store(level, std::memory_order_relaxed);
  if (!known) log_warning(std::string("KASSETTE_LOG is \"") + name + "\"; it must be debug, info, warn, error or off");
  return static_cast<LogLevel>(level);
}
void set_log_level(LogLevel level) { level_in_use.store(static_cast<int>(level), std::memory_order_relaxed); }

void log_debug(const std::string& text) noexcept { say(LogLevel::debug, spdlog::level::debug, text); }
void log_info(const std::string& text) noexcept { say(LogLevel::info, spdlog::level::info, text); }
void log_warning(const std::string& text) noexcept { say(LogLevel::warning, spdlog::level::warn, text); }

}  // namespace kassette
