// SPDX-License-Identifier: Apache-2.0
// The value of the option `log`: what it accepts, and that an address with a password never gets into a plan.
#include "stoker/train/log_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/train/options.h"
#include "stoker/train/plan_options.h"

namespace stoker::train {
namespace {

TEST(LogTargets, ReadsAList) {
  const auto targets = parse_log_targets("mlflow:http://host:5000/tracking,wandb,prometheus:9400");
  ASSERT_TRUE(targets);
  EXPECT_EQ(targets->mlflow, "http://host:5000/tracking");
  EXPECT_TRUE(targets->wandb);
  EXPECT_EQ(targets->prometheus, 9400);
  EXPECT_EQ(parse_log_targets("mlflow")->mlflow, "");
  EXPECT_EQ(parse_log_targets("prometheus:0")->prometheus, 0);
  EXPECT_EQ(parse_log_targets("mlflow:https://10.0.0.1")->mlflow, "https://10.0.0.1");
}

TEST(LogTargets, NoneIsNothing) {
  const auto targets = parse_log_targets("none");
  ASSERT_TRUE(targets);
  EXPECT_FALSE(targets->mlflow || targets->wandb || targets->prometheus);
}

TEST(LogTargets, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"",
                           "on",
                           "tensorboard",
                           "wandb,",
                           ",wandb",
                           "wandb,wandb",
                           "none,wandb",
                           "prometheus",
                           "prometheus:",
                           "prometheus:65536",
                           "prometheus:-1",
                           "prometheus:94 00",
                           "prometheus:9400x",
                           "prometheus:1,prometheus:2",
                           "mlflow:",
                           "mlflow:host:5000",
                           "mlflow:file:/tmp/x",
                           "mlflow:http://",
                           "mlflow:http:///x",
                           "mlflow:http://:50",
                           "mlflow:http://user:secret@host",
                           "mlflow:http://host?x",
                           "mlflow:http://host#x",
                           "mlflow:http://ho st",
                           "mlflow:http://host\n",
                           "mlflow,mlflow",
                           "mlflowx",
                           "wandb:x"}) {
    EXPECT_FALSE(is_log_targets(text)) << text;
  }
}

TEST(LogTargets, TheErrorSaysHow) {
  Options options;
  try {
    options.set("log", "mlflow:http://user:secret@host");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("MLFLOW_TRACKING_PASSWORD"));
  }
}

}  // namespace
}  // namespace stoker::train
