// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/critical_path.h"

#include <gmock/gmock.h>

#include "support/trace_text.h"

namespace stoker::observe::trace {
namespace {

using testing::facts_of;
using testing::TraceText;

std::int64_t us(std::int64_t microseconds) { return microseconds * 1000; }

std::int64_t length_of(const TraceFacts& facts, PathRules rules = {}) {
  return critical_path(facts.trace, facts.links, whole_time(facts.trace), rules).length;
}

// 10 us to the launch, 5 of delay, 200 of the kernel; the synchronisation ends after it, and an operator follows.
TEST(CriticalPath, FollowsASynchronisation) {
  const auto facts = facts_of(TraceText()
                                  .op("aten::mm", 100, 20)
                                  .call("cudaLaunchKernel", 110, 3, 1)
                                  .kernel("gemm", 115, 200, 1)
                                  .call("cudaDeviceSynchronize", 130, 190, 2)
                                  .op("aten::add", 400, 30));
  const CriticalPath& path = facts->path;
  ASSERT_TRUE(path.found);
  EXPECT_EQ(path.length, us(10 + 5 + 200 + 30));
  EXPECT_EQ(path.host, us(10 + 30));
  EXPECT_EQ(path.device, us(200));
  EXPECT_EQ(path.delay, us(5));
  EXPECT_EQ(path.uncounted, us(430 - 100 - 245));
  EXPECT_EQ(length_of(*facts, kRecordedEdges), us(10 + 5 + 200));  // the wait is not recorded
}

TEST(CriticalPath, IsTheHostIfTheDeviceIsFast) {
  TraceText trace;
  for (int i = 0; i < 20; ++i) {
    trace.op("aten::add", 100 * i, 80).launched("add", 100 * i + 10, 4, i + 1);
  }
  const auto facts = facts_of(trace);
  EXPECT_EQ(facts->path.host, us(20 * 80));
  EXPECT_EQ(facts->path.length, us(20 * 80));
}

TEST(CriticalPath, GoesThroughTheStreamIfTheDeviceIsSlow) {
  TraceText trace;
  for (int i = 0; i < 20; ++i) {
    trace.op("aten::add", 10 * i, 8)
        .call("cudaLaunchKernel", 10 * i + 1, 3, i + 1)
        .kernel("add", 100 + 50 * i, 48, i + 1);
  }
  const auto facts = facts_of(trace);
  EXPECT_EQ(facts->path.device, us(20 * 48));
  EXPECT_EQ(facts->path.delay, us(19 * 2 + 99));
}

// A stream waits for an event of another one; the record of the wait names the call that recorded the event.
TEST(CriticalPath, FollowsEventsBetweenStreams) {
  const auto facts = facts_of(
      TraceText()
          .op("aten::both", 0, 100)
          .call("cudaLaunchKernel", 10, 2, 1)
          .kernel("slow", 20, 300, 1, 7)
          .call("cudaEventRecord", 20, 2, 2)
          .call("cudaStreamWaitEvent", 30, 2, 3)
          .raw(
              R"({"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":20,"ts":31,"dur":1,"args":{"stream":20,"device":0,"correlation":3,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":2}})")
          .call("cudaLaunchKernel", 40, 2, 4)
          .kernel("after", 322, 50, 4, 20));
  EXPECT_EQ(facts->path.length, us(10 + 10 + 300 + 50));
  EXPECT_EQ(facts->path.device, us(350));
}

TEST(CriticalPath, EndsWithoutCallsAndWithClocksThatDisagree) {
  EXPECT_FALSE(facts_of(TraceText().step(1, 0, 10))->path.found);
  const auto facts = facts_of(TraceText()  // the work begins before its launch
                                  .op("aten::mm", 100, 50)
                                  .call("cudaLaunchKernel", 120, 3, 1)
                                  .kernel("gemm", 90, 20, 1)
                                  .kernel("gemm", 105, 20, 2));
  EXPECT_TRUE(facts->path.found);
  EXPECT_LE(facts->path.length, whole_time(facts->trace).length());
}

}  // namespace
}  // namespace stoker::observe::trace
