// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/node_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::parallel {
namespace {

using ::testing::ElementsAre;

// The first three are from the manual of Slurm's scontrol ("hostlist expressions").
TEST(NodeList, NamesOfHosts) {
  EXPECT_THAT(hosts_of("linux[00-02]"), ElementsAre("linux00", "linux01", "linux02"));
  EXPECT_THAT(hosts_of("linux[00,03-04],login"), ElementsAre("linux00", "linux03", "linux04", "login"));
  EXPECT_THAT(hosts_of("rack[0-1]node[8-9]"), ElementsAre("rack0node8", "rack0node9", "rack1node8", "rack1node9"));
  EXPECT_THAT(hosts_of("n[7]"), ElementsAre("n7"));
  EXPECT_THAT(hosts_of("n[9-11].cluster"), ElementsAre("n9.cluster", "n10.cluster", "n11.cluster"));
  EXPECT_THAT(hosts_of("localhost"), ElementsAre("localhost"));
}

TEST(NodeList, TasksOfNodes) {
  EXPECT_THAT(counts_of("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(counts_of("8"), ElementsAre(8));
  EXPECT_THAT(counts_of("1,4(x1),2"), ElementsAre(1, 4, 2));
}

TEST(NodeList, RefusesOtherForms) {
  for (const char* bad : {"", "n[", "n[1-", "n[1-2", "n]1[", "n[2-1]", "n[a]", "n[1--2]", "a,,b", "n[1-99999999]",
                          "n[0-60000]m[0-60000]", "n[-]"}) {
    EXPECT_THROW((void)hosts_of(bad), ConfigError) << bad;
  }
  for (const char* bad : {"", "x", "2(x", "2(x)", "2(3)", "-1", "2(x99999999)", "1,,2"}) {
    EXPECT_THROW((void)counts_of(bad), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace stoker::parallel
