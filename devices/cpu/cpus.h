// devices/cpu/cpus.h - how many CPUs this process may use.
#pragma once
#include <string>

namespace kassette {

/// What the affinity mask and the cgroup's CPU quota allow, at least 1. Reads files: ask once.
int available_cpus();

/// CPUs that the quotas of the cgroup and of its ancestors allow, rounded up; 0 where there is no limit. `cgroups` is the text
/// of /proc/self/cgroup, `root` the directory where the hierarchies are mounted.
int cgroup_cpus(const std::string& cgroups, const std::string& root);

}  // namespace kassette
