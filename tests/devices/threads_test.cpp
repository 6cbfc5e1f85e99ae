// tests/devices/threads_test.cpp - parallel_for and the pool behind it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <kassette/error.h>

#include "devices/cpu/cpus.h"
#include "devices/cpu/threads.h"
#include "tests/catch.h"
#include "tests/settings.h"

using namespace kassette;
using namespace kassette::devices;
using kassette::test::Threads;

namespace {

/// Waits until all other threads of this process sleep in the kernel; false if they do not within five seconds.
bool others_sleep() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const std::string self = std::to_string(gettid());
  while (std::chrono::steady_clock::now() < deadline) {
    bool all = true;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      if (task.path().filename() == self) continue;
      std::string line;
      std::getline(std::ifstream(task.path() / "stat"), line);
      const std::size_t name_ends = line.rfind(')');  // "tid (name) S ..."
      all &= name_ends != std::string::npos && line.compare(name_ends, 3, ") S") == 0;
    }
    if (all) return true;
    std::this_thread::yield();
  }
  return false;
}

/// How often each index of [0, n) is visited.
std::vector<int> visits(std::int64_t n, std::int64_t grain, From from = From::front) {
  std::vector<int> seen(static_cast<std::size_t>(n));
  parallel_for(
      n, grain,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      },
      from);
  return seen;
}

}  // namespace

TEST_CASE("parts cover a range exactly once", "[threads]") {
  for (int threads : {1, 2, 3, 7}) {
    Threads scope(threads);
    for (std::int64_t n : {0, 1, 2, 5, 64, 1000, 12345})
      for (std::int64_t grain : {1, 3, 64, 5000})
        for (From from : {From::front, From::back})
          CHECK(visits(n, grain, from) == std::vector<int>(static_cast<std::size_t>(n), 1));
  }
}

TEST_CASE("borders of parts are multiples of the grain", "[threads]") {
  Threads scope(4);
  std::atomic<int> off{0};
  for (From from : {From::front, From::back})
    parallel_for(
        1000, 7,
        [&](std::int64_t begin, std::int64_t end) {
          if (begin % 7 || (end % 7 && end != 1000)) ++off;
        },
        from);
  CHECK(off == 0);
}

TEST_CASE("grains of many elements are cut so that threads have equal shares", "[threads]") {
  Threads scope(2);
  const std::int64_t n = 100000;
  std::atomic<std::int64_t> longest{0};
  std::atomic<int> off{0};
  parallel_for(n, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
    if (begin % 64 || (end % 64 && end != n)) ++off;
    for (std::int64_t seen = longest; seen < end - begin && !longest.compare_exchange_weak(seen, end - begin);)
      continue;
  });
  CHECK(off == 0);
  CHECK(longest < n / 2 + n / 50);
}

TEST_CASE("borders of parts are multiples of 64 for every grain of 1024 elements and more", "[threads]") {
  for (int threads : {2, 3, 5}) {
    Threads scope(threads);
    for (std::int64_t grain : {1024, 1500, 10922})
      for (std::int64_t grains : {2, 7, 50, 200})
        for (From from : {From::front, From::back}) {
          const std::int64_t n = grains * grain + 1;
          std::atomic<std::int64_t> off{0}, covered{0};
          parallel_for(
              n, grain,
              [&](std::int64_t begin, std::int64_t end) {
                if (begin % 64 || (end % 64 && end != n)) ++off;
                covered += end - begin;
              },
              from);
          INFO(threads << " threads, " << grains << " grains of " << grain);
          CHECK(off == 0);
          CHECK(covered == n);
        }
  }
}

TEST_CASE("a thread takes its parts from the front, or from the back", "[threads]") {
  Threads scope(1);
  std::vector<std::int64_t> at[2];
  for (From from : {From::front, From::back})
    parallel_for(
        1000, 1, [&](std::int64_t begin, std::int64_t) { at[from == From::back].push_back(begin); }, from);
  CHECK(at[0].size() > 2);
  CHECK(std::is_sorted(at[0].begin(), at[0].end()));
  CHECK(std::vector<std::int64_t>(at[1].rbegin(), at[1].rend()) == at[0]);
}

TEST_CASE("an exception of a part travels to the caller and the pool goes on", "[threads]") {
  Threads scope(3);
  for (int round = 0; round < 50; ++round) {
    CHECK_THROWS_WITH(parallel_for(100, 1,
                                   [&](std::int64_t begin, std::int64_t) {
                                     if (begin > 40) throw std::runtime_error("part");
                                   }),
                      "part");
    CHECK(visits(100, 1) == std::vector<int>(100, 1));
  }
}

TEST_CASE("a call from inside a part runs on that thread", "[threads]") {
  Threads scope(2);
  std::atomic<int> total{0}, elsewhere{0};
  parallel_for(8, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::thread::id me = std::this_thread::get_id();
      parallel_for(100, 1, [&](std::int64_t b, std::int64_t e) {
        if (std::this_thread::get_id() != me) ++elsewhere;
        total += static_cast<int>(e - b);
      });
    }
  });
  CHECK(total == 800);
  CHECK(elsewhere == 0);
}

TEST_CASE("two threads of the user both make progress", "[threads]") {
  Threads scope(2);
  std::atomic<std::int64_t> sum{0};
  auto body = [&] {
    for (int i = 0; i < 2000; ++i) parallel_for(64, 4, [&](std::int64_t b, std::int64_t e) { sum += e - b; });
  };
  std::thread a(body), b(body);
  a.join();
  b.join();
  CHECK(sum == 2 * 2000 * 64);
}

TEST_CASE("the child of a fork has a pool of its own", "[threads]") {
  Threads scope(2);
  CHECK(visits(100, 1) == std::vector<int>(100, 1));
  pid_t child = fork();
  if (child == 0) _exit(visits(1000, 1) == std::vector<int>(1000, 1) ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(visits(100, 1) == std::vector<int>(100, 1));
}

TEST_CASE("the pool's threads have names", "[threads]") {
  Threads scope(3);
  visits(1000, 1);
  std::set<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm");
    std::string name;
    std::getline(comm, name);
    names.insert(name);
  }
  CHECK(names.count("kassette-1") == 1);
  CHECK(names.count("kassette-2") == 1);
}

TEST_CASE("a sleeping pool wakes", "[threads]") {
  Threads scope(2);
  for (int i = 0; i < 20; ++i) {
    CHECK(visits(64, 1) == std::vector<int>(64, 1));
    CHECK(others_sleep());
  }
}

TEST_CASE("the number of threads is checked", "[threads]") {
  CHECK_THROWS_WITH(set_num_threads(-1), "set_num_threads: n is -1; it must be 0 to 256");
  CHECK_THROWS_AS(set_num_threads(1000), ValueError);
  Threads allowed(0);
  CHECK(num_threads() >= 1);
}

TEST_CASE("cgroup quotas of both versions are read, the tightest ancestor counts", "[threads]") {
  char root[] = "/tmp/kassette_cgroup_XXXXXX";
  REQUIRE(mkdtemp(root));
  std::string r = root;
  auto write = [&](const std::string& directory, const std::string& file, const std::string& text) {
    REQUIRE(std::system(
                ("mkdir -p " + r + directory + " && echo '" + text + "' > " + r + directory + "/" + file).c_str()) ==
            0);
  };
  write("/a", "cpu.max", "350000 100000");
  write("/a/b", "cpu.max", "max 100000");
  CHECK(cgroup_cpus("0::/a/b\n", r) == 4);
  CHECK(cgroup_cpus("0::/c\n", r) == 0);
  write("/cpu/d", "cpu.cfs_quota_us", "150000");
  write("/cpu/d", "cpu.cfs_period_us", "100000");
  CHECK(cgroup_cpus("3:memory:/x\n2:cpu,cpuacct:/d/e\n", r) == 2);
  write("/cpu/d", "cpu.cfs_quota_us", "-1");
  CHECK(cgroup_cpus("2:cpu:/d\n", r) == 0);
  REQUIRE(std::system(("rm -r " + r).c_str()) == 0);
}
