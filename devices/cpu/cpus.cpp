// devices/cpu/cpus.cpp - affinity mask and cgroup quota.
#include "devices/cpu/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <locale>
#include <sstream>
#include <vector>

namespace kassette::devices {
namespace {

int affinity_cpus() {
  // The mask of a machine with more than 1024 CPUs does not fit cpu_set_t; the kernel then says EINVAL.
  for (std::size_t bytes = sizeof(cpu_set_t); bytes <= (1u << 16); bytes *= 2) {
    std::vector<unsigned char> mask(bytes);
    if (sched_getaffinity(0, bytes, reinterpret_cast<cpu_set_t*>(mask.data())) == 0)
      return CPU_COUNT_S(bytes, reinterpret_cast<cpu_set_t*>(mask.data()));
    if (errno != EINVAL) break;
  }
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// quota / period of one directory, rounded up; 0 if it sets no limit.
int quota_cpus(const std::string& directory, bool v2) {
  // "max 100000" or "150000 100000" in one file, or "150000" and "100000" in two.
  std::istringstream in(v2 ? read_text(directory + "/cpu.max")
                           : read_text(directory + "/cpu.cfs_quota_us") + ' ' +
                                 read_text(directory + "/cpu.cfs_period_us"));
  in.imbue(std::locale::classic());  // another one may take the blank between them for a separator of thousands
  double quota = 0, period = 0;
  if (!(in >> quota >> period)) return 0;
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>((quota + period - 1) / period));
}

/// The tightest limit from `path` up to the root of the hierarchy. In a container the path may not exist here; its
/// ancestors do.
int tightest(const std::string& mount, std::string path, bool v2) {
  int cpus = 0;
  for (;;) {
    if (int n = quota_cpus(mount + path, v2)) cpus = cpus ? std::min(cpus, n) : n;
    std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return cpus;
    path.erase(slash);
  }
}

}  // namespace

int cgroup_cpus(const std::string& cgroups, const std::string& root) {
  int cpus = 0;
  auto limit = [&](int n) {
    if (n) cpus = cpus ? std::min(cpus, n) : n;
  };
  std::istringstream lines(cgroups);
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/path", or "0::/path" under version 2
    std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      limit(tightest(root, path, /*v2=*/true));
      limit(tightest(root + "/unified", path, /*v2=*/true));
      continue;
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');)
      if (name == "cpu") {
        limit(tightest(root + "/cpu", path, /*v2=*/false));
        if (controllers != "cpu") limit(tightest(root + "/" + controllers, path, /*v2=*/false));
      }
  }
  return cpus;
}

int available_cpus() {
  int cpus = std::max(1, affinity_cpus());
  int quota = cgroup_cpus(read_text("/proc/self/cgroup"), "/sys/fs/cgroup");
  return quota ? std::min(cpus, quota) : cpus;
}

}  // namespace kassette::devices
