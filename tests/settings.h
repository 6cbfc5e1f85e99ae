// tests/settings.h - process-wide settings that a test may change: reading, restoring and comparing them.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include <kassette/device.h>
#include <kassette/print.h>
#include <kassette/runtime.h>

#include "core/fast_paths.h"
#include "core/log.h"
#include "core/sanitizers.h"
#include "devices/cpu/level.h"

namespace kassette::test {

/// True under the address and the thread sanitizer, where a sweep takes many times as long: it may then take fewer
/// cases along each path.
inline constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;

/// Every process-wide setting. The listener in main.cpp fails a test case that leaves one of them changed.
struct Settings {
  int threads = 0;
  std::int64_t grain_divisor = 1;
  devices::Level level = {};
  LogLevel log = {};
  bool allow_tf32 = false, allow_cudnn = false;
  std::int64_t memory_limit = 0;  // of the CPU
  std::int64_t checkpoint_steps = 0;
  PrintOptions print;
  FastPathThresholds fast_paths;
  bool counts_fast_paths = false;
  bool configured = false;  // keras.json has been read; before that the next five have no value
  std::string floatx, backend, data_format;
  double epsilon = 0;
  int learning_phase = -1;  // -1: not set
  bool initialises_variables = true;
  std::map<std::string, std::string> environment;

  static Settings now();
  /// Restores the settings that differ now. The backend follows from the environment: if it differs, keras.json is read
  /// again.
  void restore() const;
  /// How the settings now differ from these: "num_threads: 2, was 1; ..."; empty if they do not.
  std::string change() const;
};

/// Restores all settings at the end of a scope, also if it ends by an exception.
class SettingsScope {
 public:
  SettingsScope() = default;
  ~SettingsScope() { before.restore(); }
  SettingsScope(const SettingsScope&) = delete;
  SettingsScope& operator=(const SettingsScope&) = delete;
  const Settings before = Settings::now();
};

/// Sets the number of threads for a scope.
class Threads {
 public:
  explicit Threads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// Thresholds that are all one number, with the fast paths `off` switched off.
inline FastPathThresholds thresholds_at(std::int64_t all, std::uint64_t off) {
  FastPathThresholds t;
  for (std::int64_t* one : {&t.chain_part, &t.long_chunks, &t.streamed, &t.prefetched, &t.loop_chain_row, &t.loop_chain,
                            &t.loop_chain_part, &t.function_node, &t.released})
    *one = all;
  t.off = off;
  return t;
}

/// Sets the thresholds of the fast paths for a scope.
class Thresholds {
 public:
  explicit Thresholds(const FastPathThresholds& t) : before_(fast_path_thresholds) { fast_path_thresholds = t; }
  ~Thresholds() { fast_path_thresholds = before_; }
  Thresholds(const Thresholds&) = delete;
  Thresholds& operator=(const Thresholds&) = delete;

 private:
  FastPathThresholds before_;
};

/// Sets the memory limit of a device for a scope.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::int64_t bytes, Device device = cpu) : device_(device), before_(memory_stats(device).limit) {
    set_memory_limit(bytes, device);
  }
  ~MemoryLimit() { set_memory_limit(before_, device_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  Device device_;
  std::int64_t before_;
};

/// Collects the lines of K::print_tensor for a scope.
class PrintsTo {
 public:
  explicit PrintsTo(const PrintSink& sink) : before_(set_print_sink(sink)) {}
  ~PrintsTo() { set_print_sink(before_); }
  PrintsTo(const PrintsTo&) = delete;
  PrintsTo& operator=(const PrintsTo&) = delete;

 private:
  PrintSink before_;
};

/// Counts the fast paths taken in a scope, starting from 0.
class CountedPaths {
 public:
  CountedPaths() : before_(fast_path_counts.on) {
    for (auto& n : fast_path_counts.of) n = 0;
    fast_path_counts.on = true;
  }
  ~CountedPaths() { fast_path_counts.on = before_; }
  CountedPaths(const CountedPaths&) = delete;
  CountedPaths& operator=(const CountedPaths&) = delete;

 private:
  bool before_;
};

}  // namespace kassette::test
