// devices/cpu/cpus.h - the number of CPUs that this process may use.
#pragma once
#include <string>

namespace kassette::devices {

/// The number of CPUs that the affinity mask and the cgroup's CPU quota allow, at least 1. Reads files: call it once.
int available_cpus();

/// The number of CPUs that the quotas of the cgroup and its ancestors allow, rounded up; 0 if there is no limit.
/// `cgroups` is the text of /proc/self/cgroup, `root` the directory where the hierarchies are mounted.
int cgroup_cpus(const std::string& cgroups, const std::string& root);

}  // namespace kassette::devices
