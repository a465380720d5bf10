// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "stoker/base/error.h"

namespace stoker::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

std::optional<Place> place(const Variables& variables) {
  return place_of([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const Variables& variables) {
  try {
    (void)place(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// As `torchrun --nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d` of torch 2.11 sets them on the second node.
const Variables kTorchrun{{"RANK", "3"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"GROUP_RANK", "1"},
                          {"MASTER_ADDR", "node0"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RESTART_COUNT", "2"},
                          {"TORCHELASTIC_RUN_ID", "job7"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
// As `srun -N2 -n3` of Slurm 22.05 sets them.
const Variables kSlurm{{"SLURM_PROCID", "1"},
                       {"SLURM_STEP_NUM_TASKS", "3"},
                       {"SLURM_STEP_NUM_NODES", "2"},
                       {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
                       {"SLURM_STEP_NODELIST", "n[08-09]"},
                       {"SLURM_NODEID", "0"},
                       {"SLURM_LOCALID", "1"},
                       {"SLURM_JOB_ID", "41"},
                       {"SLURM_STEP_ID", "0"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) {
    variables[name] = value;
  }
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(Place, NoStarter) {
  EXPECT_FALSE(place({}));
  EXPECT_FALSE(place({{"WORLD_SIZE", "1"}}));  // some clusters set it for every program
  EXPECT_FALSE(place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "3"}}));  // a batch script
}

TEST(Place, UnderTorchrun) {
  const Place found = place(kTorchrun).value();
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.ranks, 4);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.local_ranks, 2);
  EXPECT_FALSE(found.one_node());
  EXPECT_EQ(found.starter, "torchrun");
  EXPECT_EQ(found.start_id, "torchrun job7");
  EXPECT_EQ(found.restarts, 2);
  EXPECT_EQ(found.meeting.host, "node0");
  EXPECT_EQ(found.meeting.port, 29500);
  EXPECT_EQ(found.meeting.prefix, "job7/2");
  EXPECT_FALSE(found.meeting.serves);
  const Place first = place(with(kTorchrun, {{"RANK", "0"}, {"LOCAL_RANK", "0"}})).value();
  EXPECT_FALSE(first.meeting.serves);  // the agent does
}

// An agent that joins a training has counted fewer restarts than the others. Without a store of agents nothing of an
// earlier start is in the way.
TEST(Place, UnderTorchrunWithAgentsThatCameLater) {
  const Variables old = with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}});
  const Place found = place(old).value();
  EXPECT_EQ(found.meeting.prefix, place(with(old, {{"TORCHELASTIC_RESTART_COUNT", "0"}})).value().meeting.prefix);
  EXPECT_TRUE(place(with(old, {{"RANK", "0"}, {"LOCAL_RANK", "0"}})).value().meeting.serves);
}

// One pod per rank, as Kubernetes' operators start them.
TEST(Place, ByVariablesAlone) {
  const Variables pod{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "job-0"}, {"MASTER_PORT", "23456"}};
  const Place found = place(pod).value();
  EXPECT_TRUE(found.meeting.serves);
  EXPECT_FALSE(found.one_node());
  EXPECT_EQ(found.start_id, "");
  EXPECT_FALSE(place(with(pod, {{"RANK", "1"}})).value().meeting.serves);
}

TEST(Place, UnderSlurm) {
  const Place found = place(kSlurm).value();
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.ranks, 3);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.local_ranks, 2);
  EXPECT_EQ(found.meeting.host, "n08");
  EXPECT_EQ(found.start_id, "Slurm 41.0");
  EXPECT_FALSE(found.meeting.serves);
  const Place other =
      place(with(kSlurm, {{"SLURM_PROCID", "2"}, {"SLURM_NODEID", "1"}, {"SLURM_LOCALID", "0"}})).value();
  EXPECT_EQ(other.local_ranks, 1);
  EXPECT_EQ(other.meeting.port, found.meeting.port);
  EXPECT_EQ(other.meeting.prefix, found.meeting.prefix);
  const Place again = place(with(kSlurm, {{"SLURM_RESTART_COUNT", "1"}})).value();
  EXPECT_EQ(again.start_id, found.start_id);
  EXPECT_NE(again.meeting.prefix, found.meeting.prefix);  // what the first start left in the store is not read
  const Place one = place(with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "3"}})).value();
  EXPECT_TRUE(one.one_node());
  EXPECT_THAT(one.meeting.file, HasSubstr("slurm-41.0.0"));
}

TEST(Place, UnderMpi) {
  const Variables mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"PMIX_NAMESPACE", "prterun-7"}};
  const Place found = place(mpi).value();
  EXPECT_EQ(found.rank, 1);
  EXPECT_TRUE(found.one_node());
  EXPECT_EQ(place(with(mpi, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}})).value().meeting.file,
            found.meeting.file);
  const Variables two_nodes = with(mpi, {{"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  EXPECT_THAT(refusal(two_nodes), HasSubstr("MASTER_ADDR"));
  EXPECT_EQ(place(with(two_nodes, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "5"}})).value().meeting.host, "a");
  const Place hydra =
      place({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}}).value();
  EXPECT_EQ(hydra.starter, "MPICH");
  EXPECT_TRUE(hydra.one_node());
}

// mpirun in a job of Slurm 22.05, tried with Open MPI 4.1 and MPICH 4.0: the servers of mpirun are tasks of Slurm.
TEST(Place, UnderMpiInAJobOfSlurm) {
  const Variables server = with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}});
  const Place open = place(with(server, {{"OMPI_COMM_WORLD_RANK", "1"},
                                         {"OMPI_COMM_WORLD_SIZE", "2"},
                                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}))
                         .value();
  EXPECT_EQ(open.ranks, 2);
  EXPECT_EQ(open.starter, "Open MPI");
  const Variables pmi{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  const Place hydra = place(with(with(server, pmi), {{"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}})).value();
  EXPECT_EQ(hydra.ranks, 2);
  EXPECT_EQ(hydra.starter, "MPICH");
  EXPECT_EQ(place(with(kSlurm, pmi)).value().starter, "Slurm");  // srun --mpi=pmi2
}

TEST(Place, NamesTheVariableThatIsWrong) {
  EXPECT_THAT(refusal(without(kTorchrun, "RANK")), AllOf(HasSubstr("RANK is not set"), HasSubstr("torchrun")));
  EXPECT_THAT(refusal(without(kTorchrun, "WORLD_SIZE")), HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(refusal(without(kTorchrun, "MASTER_ADDR")), HasSubstr("MASTER_ADDR is not set"));
  EXPECT_THAT(refusal(with(kTorchrun, {{"RANK", "4"}})), HasSubstr("RANK must be a whole number from 0 to 3"));
  EXPECT_THAT(refusal(with(kTorchrun, {{"RANK", "1x"}})), HasSubstr("got \"1x\""));
  EXPECT_THAT(refusal(with(kTorchrun, {{"MASTER_PORT", "70000"}})), HasSubstr("MASTER_PORT"));
  EXPECT_THAT(refusal(with(kTorchrun, {{"WORLD_SIZE", "-1"}})), HasSubstr("WORLD_SIZE"));
  EXPECT_THAT(refusal(without(kSlurm, "SLURM_LOCALID")), HasSubstr("SLURM_LOCALID is not set"));
  EXPECT_THAT(refusal(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "?"}})), HasSubstr("no list of Slurm"));
}

}  // namespace
}  // namespace stoker::parallel
