// devices/launcher.cpp - what the environment says about the launcher of this process: mpirun, srun and the like.
#include "devices/launcher.h"

#include <cstdlib>

#include "core/text.h"

namespace kassette::devices {
namespace {

/// A variable that a launcher sets in each process that it starts.
struct LauncherVariable {
  const char* name;
  enum { all_ranks, some_ranks, this_rank } counts;  // their number, a lower bound of it, or a rank, from 0 on
  bool alone_means_mpi = true;                       // whether MPI is started for a single rank too
};
// SLURM_NTASKS is not among them: batch scripts have it as well, whose commands run once. SLURM_STEP_NUM_TASKS is set
// by srun alone, and is 1 in an interactive step.
constexpr LauncherVariable kVariables[] = {
    {"OMPI_COMM_WORLD_SIZE", LauncherVariable::all_ranks},         // Open MPI
    {"PMI_SIZE", LauncherVariable::all_ranks},                     // MPICH, Intel MPI, Slurm with PMI-2
    {"PMI_RANK", LauncherVariable::this_rank},                     //
    {"PMIX_RANK", LauncherVariable::this_rank},                    // PRRTE, Slurm with PMIx
    {"MV2_COMM_WORLD_SIZE", LauncherVariable::all_ranks},          // MVAPICH2
    {"SLURM_STEP_NUM_TASKS", LauncherVariable::all_ranks, false},  // Slurm
    {"PALS_LOCAL_SIZE", LauncherVariable::some_ranks, false},      // HPE Cray: mpiexec
    {"PALS_RANKID", LauncherVariable::this_rank},                  //
    {"ALPS_APP_PE", LauncherVariable::this_rank, false},           // HPE Cray: aprun
    {"JSM_NAMESPACE_SIZE", LauncherVariable::all_ranks},           // IBM: jsrun
    {"FLUX_JOB_SIZE", LauncherVariable::all_ranks, false},         // Flux
};

/// The value of a variable that is a number; -1 if it is none.
std::int64_t number(const Environment& get, const char* name) {
  const char* set = get(name);
  if (!set || !*set) return -1;
  char* end = nullptr;
  const long long value = std::strtoll(set, &end, 10);
  return *end || value < 0 ? -1 : value;
}

/// The least number of ranks that the value of a variable allows.
std::int64_t least_ranks(const LauncherVariable& v, std::int64_t value) {
  return v.counts == LauncherVariable::this_rank ? value + 1 : value;
}

}  // namespace

bool is_launched(const Environment& get) {
  for (const LauncherVariable& v : kVariables) {
    const std::int64_t value = number(get, v.name);
    if (value >= 0 && (v.alone_means_mpi || least_ranks(v, value) > 1)) return true;
  }
  return false;
}

// Launchers are nested where one starts the other: mpirun its daemons by srun, or a script of srun's an mpirun. The
// variables of the outer one speak of its own processes, so one that agrees is enough.
std::string missing_ranks(const Environment& get, std::int64_t ranks) {
  std::string why;
  for (const LauncherVariable& v : kVariables) {
    const std::int64_t value = number(get, v.name);
    if (value < 0) continue;
    if (v.counts == LauncherVariable::all_ranks && value == ranks) return "";
    if (why.empty() && least_ranks(v, value) > ranks) why = text(v.name, " is ", value);
  }
  return why;
}

std::int64_t launched_here(const Environment& get) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE",
                           "PALS_LOCAL_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const std::int64_t n = number(get, name); n > 0) return n;
  return 1;
}

std::int64_t launched_rank(const Environment& get) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID"})
    if (const std::int64_t rank = number(get, name); rank >= 0) return rank;
  return 0;
}

}  // namespace kassette::devices
