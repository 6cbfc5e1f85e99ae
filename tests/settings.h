// tests/settings.h - what a test may set for the whole process: as it is now, put back, and where two differ.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include <kassette/device.h>
#include <kassette/print.h>
#include <kassette/runtime.h>

#include "core/fast_paths.h"
#include "core/log.h"
#include "devices/cpu/level.h"

namespace kassette::test {

/// Every process-wide setting. The listener in main.cpp fails a test case that ends with another one than it began with.
struct Settings {
  int threads = 0;
  Level level = {};
  LogLevel log = {};
  bool allow_tf32 = false;
  std::int64_t memory_limit = 0;  // that of the CPU
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
  /// Sets what differs from what is now. The backend is that of the environment: where it differs, keras.json is read anew.
  void restore() const;
  /// "num_threads: 2, was 1; ..." of what is now against these; empty where nothing differs.
  std::string change() const;
};

/// Puts all settings back at the end of a scope, however it ends.
class SettingsScope {
 public:
  SettingsScope() = default;
  ~SettingsScope() { before.restore(); }
  SettingsScope(const SettingsScope&) = delete;
  SettingsScope& operator=(const SettingsScope&) = delete;
  const Settings before = Settings::now();
};

/// The number of threads for a scope.
class Threads {
 public:
  explicit Threads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// The memory limit of a device for a scope.
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

/// Gets the lines of K::print_tensor for a scope.
class PrintsTo {
 public:
  explicit PrintsTo(const PrintSink& sink) : before_(set_print_sink(sink)) {}
  ~PrintsTo() { set_print_sink(before_); }
  PrintsTo(const PrintsTo&) = delete;
  PrintsTo& operator=(const PrintsTo&) = delete;

 private:
  PrintSink before_;
};

/// Counts the fast paths that are taken in a scope, from 0.
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

/// Seeds the generator of K's draws from the name of a test case and KASSETTE_TEST_SEED, a number, 0 unless set. What a test draws
/// then depends neither on the filter nor on the tests before it.
void seed_draws(const std::string& test_name);
/// "KASSETTE_TEST_SEED=0": what seed_draws took.
std::string seed_in_use();

}  // namespace kassette::test
