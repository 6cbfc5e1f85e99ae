// core/log.h - log messages, which go to stderr. KASSETTE_LOG=debug|info|warn|error|off.
#pragma once
#include <atomic>
#include <string>

namespace kassette {

/// Severities of log messages.
enum class LogLevel : int { debug, info, warning, error, off };

/// The level in use: that of KASSETTE_LOG, else warning. Check log_enabled() before building a costly message.
LogLevel log_level();
void set_log_level(LogLevel level);
inline bool log_enabled(LogLevel level) { return level >= log_level(); }

/// `text` is one line: a complete sentence without a full stop.
void log_debug(const std::string& text) noexcept;
void log_info(const std::string& text) noexcept;
void log_warning(const std::string& text) noexcept;

/// Logs a warning at most once: `static constinit WarnOnce growing;` and then growing.say("...").
class WarnOnce {
 public:
  constexpr WarnOnce() {}
  bool said() const { return said_.load(std::memory_order_relaxed); }
  void say(const std::string& text) noexcept {
    if (!said_.exchange(true, std::memory_order_relaxed)) log_warning(text);
  }

 private:
  std::atomic<bool> said_{false};
};

}  // namespace kassette
