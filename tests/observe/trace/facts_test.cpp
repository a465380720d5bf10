// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/facts.h"

#include <gmock/gmock.h>

#include "support/trace_text.h"

namespace stoker::observe::trace {
namespace {

using ::testing::ElementsAre;
using testing::facts_of;
using testing::TraceText;

std::int64_t us(std::int64_t microseconds) { return microseconds * 1000; }

// Every trace: causes sum to the idle time, which is the window less what the device did.
void expect_sums(const TraceFacts& facts) {
  for (const DeviceFactsOfTrace& device : facts.devices) {
    for (const auto& [use, idle] :
         {std::pair(&device.time.steps, &device.idle), {&device.time.whole, &device.idle_whole}}) {
      std::int64_t causes = 0, names = 0, pieces = 0;
      for (const std::int64_t each : idle->by_doing) {
        causes += each;
      }
      for (const IdleName& each : idle->names) {
        names += each.time;
      }
      for (const IdlePiece& each : idle->pieces) {
        pieces += each.time.length();
      }
      EXPECT_EQ(causes, use->idle());
      EXPECT_EQ(names, causes);
      EXPECT_EQ(pieces, causes);
      EXPECT_EQ(idle->total, causes);
      EXPECT_EQ(use->busy() + use->idle(), use->total());
    }
  }
}

TEST(Facts, NestsCallsAndTellsTheirOwnTime) {
  const auto facts = facts_of(TraceText()
                                  .op("outer", 100, 100)
                                  .op("inner", 110, 30)
                                  .op("leaf", 115, 5)
                                  .op("beyond", 190, 50)  // longer than its caller: cut
                                  .op("next", 300, 10)
                                  .op("elsewhere", 120, 10, 2));
  const Links& links = facts->links;
  std::map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t i = 0; i < facts->trace.events.size(); ++i) {
    by_name[facts->trace.name(facts->trace.events[i])] = i;
  }
  EXPECT_EQ(links.caller(by_name["leaf"]), by_name["inner"]);
  EXPECT_EQ(links.caller(by_name["inner"]), by_name["outer"]);
  EXPECT_EQ(links.caller(by_name["outer"]), kNone);
  EXPECT_EQ(links.caller(by_name["next"]), kNone);
  EXPECT_EQ(links.caller(by_name["elsewhere"]), kNone);
  EXPECT_EQ(links.outermost_operator(by_name["leaf"]), by_name["outer"]);
  EXPECT_EQ(links.self_time(by_name["outer"]), us(60));
  EXPECT_EQ(links.self_time(by_name["inner"]), us(25));
  EXPECT_EQ(links.self_time(by_name["leaf"]), us(5));
  EXPECT_EQ(links.self_time(by_name["beyond"]), us(10));
  EXPECT_EQ(links.threads().size(), 2U);
  EXPECT_EQ(links.main_track(), facts->trace.events[by_name["outer"]].track);
}

TEST(Facts, TellsWhatADeviceDidByItsStreams) {
  const auto facts = facts_of(TraceText()
                                  .op("aten::mm", 0, 5)
                                  .kernel("gemm", 100, 100, 1, 7)
                                  .kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 150, 100, 2, 20)
                                  .work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 190, 20, 3, 21)
                                  .kernel("gemm", 300, 50, 4, 7)
                                  .kernel("gemm", 320, 80, 5, 7, 1));
  ASSERT_EQ(facts->devices.size(), 2U);
  const DeviceUse& use = facts->devices[0].time.whole;
  EXPECT_EQ(use.total(), us(250));
  EXPECT_EQ(use.busy(), us(200));
  EXPECT_EQ(use.time(kComputing), us(150));
  EXPECT_EQ(use.time(kCommunicating), us(100));
  EXPECT_EQ(use.time(kComputing | kCommunicating), us(50));
  EXPECT_EQ(use.time(kCopying), us(20));
  EXPECT_EQ(use.by_state[kCommunicating | kCopying], us(10));
  EXPECT_EQ(use.by_state[kComputing | kCommunicating | kCopying], us(10));
  const std::vector<StreamUse>& streams = facts->devices[0].time.streams;
  ASSERT_EQ(streams.size(), 3U);
  EXPECT_EQ(streams[0].busy, us(150));
  EXPECT_EQ(streams[0].alone, us(100));
  EXPECT_EQ(streams[2].alone, 0);
  EXPECT_EQ(facts->devices[1].time.whole.total(), us(80));
  expect_sums(*facts);
}

// As in a merged trace of two containers: one thread with calls that cross, and each correlation twice.
TEST(Facts, HoldsTwoProcessesOfOnePid) {
  const auto facts = facts_of(TraceText()
                                  .op("first", 0, 40)
                                  .op("second", 20, 60)
                                  .call("cudaLaunchKernel", 5, 3, 1)
                                  .call("cudaLaunchKernel", 60, 3, 1)
                                  .kernel("a", 10, 20, 1)
                                  .kernel("b", 70, 10, 1));
  ASSERT_EQ(facts->devices.size(), 1U);
  EXPECT_EQ(facts->devices[0].time.whole.busy(), us(30));
  EXPECT_EQ(facts->devices[0].time.whole.idle(), us(40));
  expect_sums(*facts);
}

TEST(Facts, ClipsToStepsThatOverlapOrAreMarkedTwice) {
  const auto facts = facts_of(TraceText()
                                  .step(1, 100, 100)
                                  .step(2, 180, 120)
                                  .host("user_annotation", "ProfilerStep#1", 100, 100, 2)  // of another thread
                                  .launched("gemm", 50, 100, 1)
                                  .launched("gemm", 250, 100, 2));
  ASSERT_EQ(facts->steps.size(), 2U);
  EXPECT_EQ(facts->mean_step(), 110'000);
  EXPECT_THAT(facts->window, ElementsAre(Interval{us(100), us(300)}));
  EXPECT_EQ(facts->devices.at(0).time.steps.busy(), us(55 + 45));
  EXPECT_EQ(facts->devices.at(0).time.whole.total(), us(300));
  expect_sums(*facts);
}

// A gap of a device and who ended it.
TEST(IdleTime, NamesTheFetchOfABatch) {
  const auto facts =
      facts_of(TraceText()
                   .step(1, 0, 1000)
                   .host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 10, 390)
                   .op("aten::stack", 50, 20)
                   .call("cudaStreamSynchronize", 80, 20, 90)
                   .op("aten::conv2d", 410, 40)
                   .launched("conv", 420, 575, 1));
  const IdleTime& idle = facts->devices.at(0).idle;
  EXPECT_EQ(idle.of(Doing::kFetch), us(390));
  EXPECT_EQ(idle.of(Doing::kLaunching), us(10));
  EXPECT_EQ(idle.of(Doing::kLatency), us(5));
  EXPECT_EQ(idle.of(Doing::kUnattributed), us(20));
  EXPECT_EQ(idle.total, us(425));
  EXPECT_EQ(idle.names.at(0).name, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
  expect_sums(*facts);
}

struct Named {
  const char *category, *name;
  Doing doing;
};

TEST(IdleTime, NamesWhatTheHostDid) {
  for (const Named& each : std::initializer_list<Named>{
           {"cuda_runtime", "cudaStreamSynchronize", Doing::kSync},
           {"cuda_runtime", "hipDeviceSynchronize", Doing::kSync},
           {"cuda_runtime", "cudaMemcpyAsync", Doing::kSync},
           {"cuda_runtime", "cudaMalloc", Doing::kAllocation},
           {"cuda_runtime", "cudaHostAlloc", Doing::kAllocation},
           {"cuda_runtime", "cudaFree", Doing::kAllocation},
           {"cuda_driver", "cuModuleLoadData", Doing::kCompiling},
           {"cuda_runtime", "cudaLaunchKernel", Doing::kLaunching},
           {"cpu_op", "aten::mm", Doing::kLaunching},
           {"cpu_op", "c10d::allreduce_", Doing::kCollective},
           {"user_annotation", "nccl:all_reduce", Doing::kCollective},
           {"user_annotation", "## forward ##", Doing::kRange},
           {"user_annotation", "save_checkpoint", Doing::kSaving},
           {"python_function", "torch/serialization.py(965): save", Doing::kSaving},
           {"python_function", "torch/utils/data/dataloader.py(631): __next__", Doing::kFetch},
           {"python_function", "train.py(45): step", Doing::kRange},
           {"python_function", "torch/_dynamo/convert_frame.py(3): compile", Doing::kCompiling},
           {"user_annotation", "ProfilerStep#2", Doing::kUnattributed},
       }) {
    const auto facts = facts_of(
        TraceText().launched("a", 0, 95, 1).host(each.category, each.name, 100, 800).launched("b", 900, 100, 2));
    const IdleTime& idle = facts->devices.at(0).idle_whole;
    EXPECT_EQ(idle.of(each.doing), us(800)) << each.name;
    EXPECT_EQ(idle.of(Doing::kLatency), us(5)) << each.name;
    expect_sums(*facts);
  }
}

// A frame of the user's own file says more than a frame of the library that it called.
TEST(IdleTime, PrefersFramesOfTheProgram) {
  const auto facts = facts_of(TraceText()
                                  .launched("a", 0, 95, 1)
                                  .host("python_function", "train.py(45): preprocess", 90, 815)
                                  .host("python_function", "<built-in function isinstance>", 100, 800)
                                  .launched("b", 901, 100, 2));
  EXPECT_EQ(facts->devices.at(0).idle_whole.names.at(0).name, "train.py(45): preprocess");
}

TEST(IdleTime, TellsQueuedWorkFromLateLaunches) {
  const auto facts = facts_of(TraceText()
                                  .op("aten::mm", 0, 30)
                                  .call("cudaLaunchKernel", 2, 3, 1)
                                  .call("cudaLaunchKernel", 10, 3, 2)
                                  .kernel("first", 20, 100, 1)
                                  .kernel("second", 140, 10, 2));
  const IdleTime& idle = facts->devices.at(0).idle_whole;
  EXPECT_EQ(idle.of(Doing::kQueued), us(20));
  EXPECT_EQ(idle.total, us(20));
  EXPECT_EQ(idle.names.at(0).name, "second");
}

// The thread of autograd launched the work, and began nothing before that; the main thread made it wait.
TEST(IdleTime, ChargesTheThreadThatMadeOthersWait) {
  const auto facts = facts_of(TraceText()
                                  .step(1, 0, 1000)
                                  .launched("a", 0, 95, 1)
                                  .op("aten::binary_cross_entropy", 110, 300)
                                  .op("autograd::engine::evaluate_function: MmBackward0", 450, 100, 2)
                                  .call("cudaLaunchKernel", 460, 3, 2, 2)
                                  .kernel("b", 465, 535, 2));
  const IdleTime& idle = facts->devices.at(0).idle_whole;
  EXPECT_EQ(idle.of(Doing::kLaunching), us(300 + 10));
  EXPECT_EQ(idle.of(Doing::kUnattributed), us(10 + 40));
  EXPECT_EQ(idle.names.at(0).name, "aten::binary_cross_entropy");
  expect_sums(*facts);
}

TEST(IdleTime, DoesWithoutCorrelations) {
  const auto facts = facts_of(TraceText()
                                  .op("aten::mm", 0, 30)
                                  .kernel("first", 20, 80, -1)
                                  .op("aten::slow", 120, 60)
                                  .kernel("second", 200, 10, -1));
  const IdleTime& idle = facts->devices.at(0).idle_whole;
  EXPECT_EQ(idle.of(Doing::kLaunching), us(60));
  EXPECT_EQ(idle.of(Doing::kUnattributed), us(40));
}

TEST(IdleTime, NamesTheMainThreadOfAProgramWithoutADevice) {
  const auto facts =
      facts_of(TraceText()
                   .step(1, 0, 1000)
                   .host("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 600)
                   .op("aten::conv2d", 700, 250)
                   .op("aten::worker", 0, 1000, 2));
  ASSERT_TRUE(facts->host_idle);
  EXPECT_EQ(facts->host_idle->total, us(750));
  EXPECT_EQ(facts->host_idle->of(Doing::kFetch), us(600));
}

TEST(Tables, SumWorkByNameAndOperatorsByShapes) {
  const std::string shaped = R"({"Input Dims": [[32, 3], []], "Input type": ["float", "Scalar"]})";
  const auto facts = facts_of(TraceText()
                                  .host("cpu_op", "aten::linear", 100, 50, 1, shaped)
                                  .op("aten::addmm", 105, 40)
                                  .launched("gemm", 110, 30, 1)
                                  .launched("gemm", 120, 10, 2)
                                  .host("user_annotation", "## loss ##", 200, 50)
                                  .launched("softmax", 210, 7, 3));
  ASSERT_EQ(facts->work.size(), 2U);
  EXPECT_EQ(facts->work[0].name, "gemm");
  EXPECT_EQ(facts->work[0].total, us(40));
  EXPECT_EQ(facts->work[0].longest, us(30));
  EXPECT_EQ(facts->work[0].launched_by, "aten::addmm");
  EXPECT_EQ(facts->work[1].launched_by, "");
  ASSERT_EQ(facts->operators.size(), 2U);
  EXPECT_EQ(facts->operators[0].name, "aten::addmm");
  EXPECT_EQ(facts->operators[0].device_self, us(40));
  EXPECT_EQ(facts->operators[0].host_self, us(40));
  EXPECT_EQ(facts->operators[1].shapes, "[[32,3],[]] [float,Scalar]");
  EXPECT_EQ(facts->operators[1].device, us(40));
  EXPECT_EQ(facts->operators[1].device_self, 0);
  EXPECT_EQ(facts->operators[1].host_self, us(10));
  ASSERT_EQ(facts->ranges.size(), 1U);
  EXPECT_EQ(facts->ranges[0].device, us(7));
}

TEST(MemoryCurve, SumsWhereTheTraceGivesNoTotals) {
  const auto sample = [](int at, int bytes) {
    return fmt::format(
        R"({{"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":{},"args":{{"Device Type":1,"Device Id":0,"Bytes":{}}}}})",
        at, bytes);
  };
  const auto facts =
      facts_of(TraceText().op("aten::mm", 0, 1).raw(sample(30, -100)).raw(sample(10, 300)).raw(sample(20, 500)));
  ASSERT_EQ(facts->memory.size(), 1U);
  EXPECT_TRUE(facts->memory[0].from_begin);
  EXPECT_EQ(facts->memory[0].peak, 800);
  EXPECT_EQ(facts->memory[0].peak_time, us(20));
  EXPECT_EQ(facts->memory[0].points.back().allocated, 700);
  EXPECT_EQ(facts->memory[0].allocations, 2);
}

}  // namespace
}  // namespace stoker::observe::trace
