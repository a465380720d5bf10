// SPDX-License-Identifier: Apache-2.0
// What `stoker memory` prints: bars, the chart, the tables, and errors for runs without a record.
#include "stoker/job/memory_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/job/memory_json.h"
#include "stoker/job/step_chart.h"
#include "support/job_runs.h"
#include "support/temp_folder.h"

namespace stoker::job {
namespace {

using stoker::testing::complaint;
using stoker::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kMiB = 1 << 20;

memory::StepRecord made_up_step() {
  memory::StepRecord record;
  record.before = 4 * kMiB;
  record.peak = 16 * kMiB;
  record.after = 4 * kMiB;
  record.peak_phase = core::Phase::kBackward;
  record.peak_operator = "addmm";
  record.at_peak[static_cast<std::size_t>(memory::Category::kParameters)] = 4 * kMiB;
  record.at_peak[static_cast<std::size_t>(memory::Category::kActivations)] = 12 * kMiB;
  record.marks = {{.name = "start", .allocated = 4 * kMiB, .peak = 4 * kMiB},
                  {.name = "forward", .allocated = 4 * kMiB, .peak = 12 * kMiB, .at = 0.1},
                  {.name = "after \x1b[31m", .allocated = 12 * kMiB, .peak = 12 * kMiB, .named = true, .at = 0.5}};
  record.line = {4 * kMiB, 8 * kMiB, 16 * kMiB, 4 * kMiB};
  record.blocks = {{.bytes = 8 * kMiB, .made_by = "linear > addmm", .shape = "float [1024, 2048]"}};
  return record;
}

void write_run(const TempFolder& folder, const MemoryRecord& facts) {
  folder.write("plan.json", R"({"format": 3, "values": []})");
  folder.write("artifacts/memory.json", with_run_facts(memory_json(facts, made_up_step()), {.host_peak = 900 * kMiB}));
}

TEST(MemoryText, ShowsThePeakByCategory) {
  const TempFolder folder;
  write_run(folder, {.step = 3, .samples = 32, .microbatch = 16});
  EXPECT_THAT(memory_text(folder.path()),
              AllOf(HasSubstr("Memory of step 3 on cpu: 32 samples, 16 per forward pass"),
                    HasSubstr("Peak 16.0 MiB in backward (addmm)"), HasSubstr("activations"), HasSubstr("75.0 %"),
                    HasSubstr("linear > addmm"), HasSubstr("after \\x1b[31m (mark)"), HasSubstr("900 MiB"),
                    Not(HasSubstr("fragmentation")), Not(HasSubstr("gradients"))));
}

TEST(MemoryText, ShowsWhatTheCacheOfADeviceHolds) {
  const TempFolder folder;
  MemoryRecord facts{.step = 3, .samples = 32, .microbatch = 32, .device = c10::Device(c10::kCUDA, 0)};
  facts.figures = {.allocated = 10 * kMiB, .reserved = 40 * kMiB, .free = 70 * kMiB, .total = 100 * kMiB};
  facts.inactive = 10 * kMiB;
  write_run(folder, facts);
  const nlohmann::json json = nlohmann::json::parse(memory_as_json(folder.path()));
  EXPECT_EQ(json.at("device_memory").at("releasable"), 20 * kMiB);  // 30 cached, 10 of them in blocks in use
  EXPECT_EQ(json.at("device_memory").at("others"), 20 * kMiB);      // 100 - 40 of ours - 40 free
  EXPECT_THAT(memory_text(folder.path()), HasSubstr("lost to fragmentation (25.0 % of the cache)"));
}

TEST(MemoryText, ShowsWhatACpuKeeps) {
  const TempFolder folder;
  MemoryRecord facts{.step = 3, .samples = 32, .microbatch = 32};
  facts.figures = {.allocated = 10 * kMiB, .reserved = 40 * kMiB};
  facts.heap_kept = 5 * kMiB;
  write_run(folder, facts);
  const nlohmann::json json = nlohmann::json::parse(memory_as_json(folder.path()));
  EXPECT_EQ(json.at("device_memory").at("releasable"), 35 * kMiB);
  EXPECT_THAT(memory_text(folder.path()), AllOf(HasSubstr("40.0 MiB  reserved by Stoker's allocator"),
                                                HasSubstr("35.0 MiB  free in there and in the C library's heap")));
}

TEST(MemoryText, SaysWhyThereIsNone) {
  const TempFolder folder;
  EXPECT_THAT(complaint([&] { (void)memory_text(folder.path()); }), HasSubstr("plan.json"));
  folder.write("plan.json", R"({"format": 3, "values": []})");
  EXPECT_THAT(complaint([&] { (void)memory_text(folder.path()); }), HasSubstr("has no memory record"));
  folder.write("metrics.jsonl", R"({"event":"run_finished","step":1,"outcome":"failed","text":"step 2 does not fit"})"
                                "\n");
  EXPECT_THAT(complaint([&] { (void)memory_text(folder.path()); }), HasSubstr("This run failed: step 2 does not fit"));
  folder.write("artifacts/memory.json", R"({"format": 99})");
  EXPECT_THAT(complaint([&] { (void)memory_text(folder.path()); }), HasSubstr("not a memory record of format 1"));
  folder.write("artifacts/memory.json", R"({"format": 1, "peak": 5})");
  EXPECT_THAT(complaint([&] { (void)memory_text(folder.path()); }), HasSubstr("memory.json: is damaged"));
}

TEST(StepChart, ABarIsAsLongAsItsShare) {
  EXPECT_EQ(bar_text(1, 3), "███");
  EXPECT_EQ(bar_text(0.5, 3), "█▌");
  EXPECT_EQ(bar_text(0.0001, 3), "▏");
  EXPECT_EQ(bar_text(0, 3), "");
}

TEST(StepChart, TheHighestColumnReachesTheTop) {
  const std::string chart = step_chart({0, 8, 16, 8}, {{"forward", 0.25}, {"backward", 0.3}});
  EXPECT_THAT(chart, AllOf(HasSubstr("16 B |                              ███████████████"), HasSubstr("^forward"),
                           HasSubstr("^backward"), Not(HasSubstr("axis begins"))));
  EXPECT_THAT(step_chart({100, 108}, {}), HasSubstr("(the axis begins at 99 B)"));
  EXPECT_EQ(step_chart({}, {}), "");
}

}  // namespace
}  // namespace stoker::job
