// devices/launcher.h - what the environment says about the launcher of this process: mpirun, srun and the like.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace kassette::devices {

/// Returns the value of a variable, null if it is not set: std::getenv.
using Environment = std::function<const char*(const char* name)>;

/// True if a launcher has started this process, alone or as one of several.
bool is_launched(const Environment& get);

/// Why `ranks`, the number that MPI has, cannot be all of the job: "PMI_SIZE is 4"; empty if nothing speaks against it.
/// A launcher of another MPI than the one that this process has loaded leaves each process alone.
std::string missing_ranks(const Environment& get, std::int64_t ranks);

/// How many ranks the launcher has started on this machine; 1 if it does not say.
std::int64_t launched_here(const Environment& get);

/// This process's rank, as the launcher says; 0 if it does not.
std::int64_t launched_rank(const Environment& get);

}  // namespace kassette::devices
