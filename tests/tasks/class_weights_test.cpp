// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/class_weights.h"

#include <gtest/gtest.h>

#include "stoker/base/error.h"

namespace stoker::tasks {
namespace {

TEST(ClassWeights, AreNoneBalancedOrListed) {
  const std::vector<std::int64_t> counts = {3, 1, 0};
  EXPECT_FALSE(class_weights("none", counts).defined());
  const at::Tensor balanced = class_weights("balanced", counts);  // 4 / (3 * count)
  EXPECT_FLOAT_EQ(balanced[0].item<float>(), 4.0F / 9);
  EXPECT_FLOAT_EQ(balanced[1].item<float>(), 4.0F / 3);
  EXPECT_EQ(balanced[2].item<float>(), 0);
  EXPECT_FLOAT_EQ(class_weights("1,2.5,0", counts)[1].item<float>(), 2.5F);
  EXPECT_THROW((void)class_weights("1,2", counts), ConfigError);
  EXPECT_THROW((void)class_weights("0,0,0", counts), ConfigError);
}

TEST(ClassWeights, RefuseWhatIsNotAListOfWeights) {
  const core::OptionTable<ClassOptions> table(class_options());
  ClassOptions options;
  for (const char* bad : {"1,-2", "1,,2", "1,nan", "", "balance"}) {
    EXPECT_THROW(table.set(options, "class_weights", bad), ConfigError) << bad;
  }
  table.set(options, "class_weights", "1,2.5");
  EXPECT_EQ(options.class_weights, "1,2.5");
}

}  // namespace
}  // namespace stoker::tasks
