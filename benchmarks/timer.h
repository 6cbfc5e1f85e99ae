// benchmarks/timer.h - rows, measured and printed the same way in every C++ program of this folder.
//
//   PROGRAM [REGEX of rows] [--threads N] [--budget SECONDS] [--list | --serve] [--device cuda:0 [--tiny]]
//
// --device: the rows of a CUDA device in place of the CPU's; --tiny: at sizes that an emulated device can bear.
// One JSON object a line: first a header, then a row each. --list prints names; --serve takes row
// names from stdin, one a line, and answers each with one line: so one driver interleaves many
// programs row by row.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <regex>
#include <string>
#include <utility>
#include <vector>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {

struct Options {
  int threads = 2;
  double budget = 0.15;
  std::string rows = ".*", library, device = "cpu";
  bool list = false, serve = false, here = false;  // here: this process measures memory rows itself
  bool tiny = false;
};

struct Row {
  std::string name;
  double per;
  std::function<std::function<void(long)>()> prepare;  // a loop over the operation, set up afresh
  std::function<std::string()> measure;                // or a measurement that wants a process of its own
  double moved = 0;  // bytes an operation must read and write; 0: its time is not that of memory
};

inline std::vector<Row>& rows() {
  static std::vector<Row> all;
  return all;
}

/// Waits for the device whose operations are timed; nothing on the CPU.
inline std::function<void()> finish = [] {};

/// A timed row, which it returns. `setup()` returns the operation, inlined into the loop that is timed; one call
/// counts as `per` operations.
template <class Setup>
Row& row(std::string name, Setup setup, double per = 1) {
  rows().push_back({std::move(name), per,
                    [setup] {
                      auto operation = setup();
                      return std::function<void(long)>([operation](long n) mutable {
                        for (long i = 0; i < n; ++i) operation();
                        finish();
                      });
                    },
                    nullptr});
  return rows().back();
}

/// A row measured once in a fresh process (peak memory, long chains). `measure()` returns the JSON
/// fields after the name.
inline void own_process(std::string name, std::function<std::string()> measure) {
  rows().push_back({std::move(name), 1, nullptr, std::move(measure)});
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A field of /proc/self/status in bytes: "VmRSS" now, "VmHWM" the peak since the last
/// `forget_peak`.
inline double status_bytes(const char* field) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, std::strlen(field), field) == 0)
      return std::atof(line.c_str() + line.find_first_of("0123456789")) * 1024;
  return 0;
}
inline void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// Runs `work` twice and returns {"bytes": growth of resident memory at the peak of the first run,
/// "ns": the shorter time, "first_ns", "process_bytes": whole peak}. Where a hypervisor has to find
/// the memory of the first run, that takes longer than the work.
template <class Work>
std::string peak_of(Work work, double per = 1) {
  forget_peak();
  double before = status_bytes("VmRSS"), start = now();
  work();
  double first = now() - start, peak = status_bytes("VmHWM");
  start = now();
  work();
  double ns = std::min(first, now() - start) * 1e9;
  char text[200];
  std::snprintf(text, sizeof text, "\"bytes\": %.0f, \"ns\": %.6g, \"first_ns\": %.6g, \"process_bytes\": %.0f",
                (peak - before) / per, ns / per, first * 1e9 / per, peak);
  return text;
}

inline std::string plain(std::string text, std::size_t most = 200) {  // fit for a JSON string
  text = text.substr(0, most);
  for (char& c : text)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 32) c = ' ';
  return text;
}

/// Calibrates to samples of 2 ms or one call, samples for `budget` seconds, prints median, minimum
/// and spread (the middle half of the samples over the median).
inline std::string time_row(const std::function<void(long)>& loop, double per, double budget) {
  constexpr double kSample = 2e-3;
  loop(1);
  long inner = 1;
  for (;;) {
    double start = now();
    loop(inner);
    double took = now() - start;
    if (took >= kSample / 2) {
      inner = std::max(1L, static_cast<long>(static_cast<double>(inner) * kSample / took));
      break;
    }
    inner *= took < kSample / 20 ? 8 : 2;
  }
  std::vector<double> samples;
  double start = now();
  while ((now() - start < budget && samples.size() < 500) || samples.size() < 3) {
    double t = now();
    loop(inner);
    samples.push_back((now() - t) / (static_cast<double>(inner) * per) * 1e9);
    if (now() - start > 10 * budget) break;
  }
  std::sort(samples.begin(), samples.end());
  std::size_t n = samples.size();
  double median = samples[n / 2];
  char text[160];
  std::snprintf(text, sizeof text, "\"median_ns\": %.6g, \"min_ns\": %.6g, \"spread\": %.3f, \"n\": %zu", median,
                samples[0], (samples[n - 1 - n / 4] - samples[n / 4]) / median, n * static_cast<std::size_t>(inner));
  return text;
}

/// The row in a process of its own, whose main thread has a stack of 8 MiB whatever the shell says.
inline void run_elsewhere(const Row& row, const Options& o) {
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    rlimit stack{8 << 20, 8 << 20};
    setrlimit(RLIMIT_STACK, &stack);
    std::string rx = "^" + row.name + "$", threads = std::to_string(o.threads);
    execl("/proc/self/exe", "bench", rx.c_str(), "--here", "--threads", threads.c_str(), "--library", o.library.c_str(),
          static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    std::printf("{\"row\": \"%s\", \"error\": \"signal %d\"}\n", row.name.c_str(), WTERMSIG(status));
}

inline void run_row(const Row& row, const Options& o) {
  try {
    if (row.measure && !o.here) {
      run_elsewhere(row, o);
    } else {
      std::string fields = row.measure ? row.measure() : time_row(row.prepare(), row.per, o.budget);
      if (row.moved > 0) fields += ", \"moved\": " + std::to_string(static_cast<long long>(row.moved));
      std::printf("{\"row\": \"%s\", %s}\n", row.name.c_str(), fields.c_str());
    }
  } catch (const std::exception& e) {
    std::printf("{\"row\": \"%s\", \"error\": \"%s\"}\n", row.name.c_str(), plain(e.what()).c_str());
  }
  std::fflush(stdout);
}

inline Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (a == "--threads") o.threads = std::atoi(value().c_str());
    else if (a == "--budget") o.budget = std::atof(value().c_str());
    else if (a == "--library") o.library = value();
    else if (a == "--device") o.device = value();
    else if (a == "--tiny") o.tiny = true;
    else if (a == "--list") o.list = true;
    else if (a == "--serve") o.serve = true;
    else if (a == "--here") o.here = true;
    else if (a.compare(0, 2, "--") != 0) o.rows = a;
    else std::fprintf(stderr, "unknown argument %s\n", a.c_str()), std::exit(2);
  }
  return o;
}

/// Prints the header (JSON fields, without braces) and then what the options ask for.
inline int run(const Options& o, const std::string& header) {
  if (o.list) {
    for (const Row& r : rows()) std::puts(r.name.c_str());
    return 0;
  }
  if (!o.here) std::printf("{\"header\": true, \"threads\": %d, %s}\n", o.threads, header.c_str());
  std::fflush(stdout);
  if (o.serve) {
    for (std::string name; std::getline(std::cin, name);) {
      auto found = std::find_if(rows().begin(), rows().end(), [&](const Row& r) { return r.name == name; });
      if (found != rows().end()) run_row(*found, o);
      else std::printf("{\"row\": \"%s\", \"error\": \"no such row\"}\n", name.c_str()), std::fflush(stdout);
    }
    return 0;
  }
  std::regex wanted(o.rows);
  for (const Row& r : rows())
    if (std::regex_search(r.name, wanted)) run_row(r, o);
  return 0;
}

/// "model name" and the SIMD features of /proc/cpuinfo, as JSON fields.
inline std::string cpu() {
  std::ifstream in("/proc/cpuinfo");
  std::string model = "unknown", features;
  for (std::string line; std::getline(in, line);) {
    auto value = [&] { return line.substr(std::min(line.size(), line.find(':') + 2)); };
    if (line.compare(0, 10, "model name") == 0) model = value();
    if (line.compare(0, 5, "flags") == 0) {
      static const std::regex simd("\\b(sse4_2|avx|avx2|fma|avx512\\w+|avx_vnni|amx_\\w+)\\b");
      std::string all = value();
      for (std::sregex_iterator it(all.begin(), all.end(), simd), end; it != end; ++it)
        features += (features.empty() ? "" : " ") + it->str();
      break;
    }
  }
  return "\"cpu\": \"" + plain(model) + "\", \"features\": \"" + features + "\"";
}

}  // namespace bench
