// tests/devices/launcher_test.cpp - what the environment says about the launcher of a process. The variables and their
// values are those that the launchers' documentation names.
#include "devices/launcher.h"

#include <map>
#include <string>

#include "tests/catch.h"

using namespace kassette::devices;

namespace {

using Variables = std::map<std::string, std::string>;

Environment environment(const Variables& set) {
  return [set](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
}
bool launched(const Variables& set) { return is_launched(environment(set)); }
std::string missing(const Variables& set, int ranks) { return missing_ranks(environment(set), ranks); }

}  // namespace

TEST_CASE("a process that no launcher started is alone", "[ranks][launcher]") {
  CHECK(!launched({}));
  CHECK(missing({}, 1).empty());
  CHECK(launched_here(environment({})) == 1);
}

TEST_CASE("a launcher that started more ranks than MPI has is one of another MPI", "[ranks][launcher]") {
  for (const Variables& four :
       {Variables{{"OMPI_COMM_WORLD_SIZE", "4"}}, Variables{{"PMI_SIZE", "4"}}, Variables{{"MV2_COMM_WORLD_SIZE", "4"}},
        Variables{{"SLURM_STEP_NUM_TASKS", "4"}}, Variables{{"PALS_LOCAL_SIZE", "4"}},
        Variables{{"JSM_NAMESPACE_SIZE", "4"}}, Variables{{"FLUX_JOB_SIZE", "4"}}}) {
    CHECK(launched(four));
    CHECK(missing(four, 1) == four.begin()->first + " is 4");
    CHECK(missing(four, 4).empty());
  }
  for (const char* rank : {"PMI_RANK", "PMIX_RANK", "PALS_RANKID", "ALPS_APP_PE"}) {
    CHECK(launched({{rank, "3"}}));
    CHECK(missing({{rank, "3"}}, 1) == std::string(rank) + " is 3");
    CHECK(missing({{rank, "3"}}, 4).empty());
    CHECK(missing({{rank, "0"}}, 1).empty());
  }
  CHECK(missing({{"PALS_LOCAL_SIZE", "4"}, {"PALS_RANKID", "2"}}, 8).empty());  // of two machines
}

TEST_CASE("one launcher inside of another: the variables of one of them agree with MPI", "[ranks][launcher]") {
  // mpirun starts its daemons by srun, one on each of two machines.
  CHECK(missing({{"OMPI_COMM_WORLD_SIZE", "16"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"PMI_SIZE", "2"}}, 16).empty());
  // Two tasks of srun, each of which starts an mpirun of one rank.
  CHECK(missing({{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}, 1).empty());
  CHECK(missing({{"OMPI_COMM_WORLD_SIZE", "3"}, {"SLURM_STEP_NUM_TASKS", "2"}}, 1) == "OMPI_COMM_WORLD_SIZE is 3");
}

TEST_CASE("commands of a batch script and of an interactive step are not launched", "[ranks][launcher]") {
  const Variables batch{{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "16"}, {"SLURM_PROCID", "0"}},
      interactive{{"SLURM_NTASKS", "16"}, {"SLURM_STEP_NUM_TASKS", "1"}};
  for (const Variables& set : {batch, interactive}) {
    CHECK(!launched(set));
    CHECK(missing(set, 1).empty());
  }
}

TEST_CASE("variables that hold no number say nothing", "[ranks][launcher]") {
  for (const char* value : {"", "four", "4x", "-1"}) {
    CHECK(!launched({{"PMI_SIZE", value}}));
    CHECK(missing({{"PMI_SIZE", value}}, 1).empty());
  }
}

TEST_CASE("the launcher says how many ranks share the machine", "[ranks][launcher]") {
  CHECK(launched_here(environment({{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}, {"OMPI_COMM_WORLD_SIZE", "6"}})) == 3);
  CHECK(launched_here(environment({{"MPI_LOCALNRANKS", "5"}})) == 5);
}

TEST_CASE("the launcher says which rank a process is", "[ranks][launcher]") {
  CHECK(launched_rank(environment({})) == 0);
  CHECK(launched_rank(environment({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "6"}})) == 3);
  CHECK(launched_rank(environment({{"PMI_RANK", "2"}})) == 2);
  CHECK(launched_rank(environment({{"PMI_RANK", "?"}, {"PALS_RANKID", "1"}})) == 1);
}
