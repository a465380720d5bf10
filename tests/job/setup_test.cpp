// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/job/session.h"
#include "support/dispatch_counter.h"
#include "support/image_set.h"

namespace stoker::job {
namespace {

using Prepared = Setup;  // gtest's fixtures have a member named Setup

// The model is already on its device: a forward pass of one image would make a GPU search for kernels.
TEST(SetUp, IsDescribedWithoutAForwardPass) {
  const testing::TempFolder folder;
  testing::write_striped_set(folder, "data/train/", 4);
  Request request = make_request({}, {"model=cnn", "batch=8", "threads=0", "intra_op=1", "precision=fp32", "val=0",
                                      "layout=channels_last", "device=cpu"});
  request.data = folder / "data";
  const Prepared setup = set_up(request, nullptr, [](const std::string&) {});
  EXPECT_GT(setup.sample_flops, 0);
  const testing::DispatchCounter counter;
  EXPECT_THAT(describe_setup(setup), ::testing::Contains(::testing::HasSubstr("FLOP per sample forward")));
  EXPECT_EQ(counter.total(), 0);
}

}  // namespace
}  // namespace stoker::job
