// SPDX-License-Identifier: Apache-2.0
// Any bytes give a DataError or traces whose facts agree with each other: idle time by cause sums to the time in which
// the device did nothing, and no critical path is longer than the trace.
#include "fuzz_target.h"
#include "stoker/base/error.h"
#include "stoker/observe/trace/facts/compare.h"
#include "stoker/observe/trace/facts/facts.h"
#include "stoker/observe/trace/facts/ranks.h"
#include "stoker/observe/trace/read_trace.h"

namespace stoker::fuzz {
namespace {

using namespace observe::trace;

void check(const TraceFacts& facts) {
  for (const DeviceFactsOfTrace& device : facts.devices) {
    for (const auto& [use, idle] :
         {std::pair(&device.time.steps, &device.idle), {&device.time.whole, &device.idle_whole}}) {
      std::int64_t causes = 0;
      for (const std::int64_t each : idle->by_doing) {
        expect(each >= 0, "no cause takes less than no time");
        causes += each;
      }
      expect(causes == use->idle(), "causes sum to the idle time");
      expect(use->busy() >= 0 && use->idle() >= 0, "times are not negative");
    }
  }
  const std::int64_t whole = whole_time(facts.trace).length();
  expect(!facts.path.found || facts.path.length <= whole, "no path is longer than the trace");
  expect(facts.recorded_path() <= whole, "no path by recorded edges is longer than the trace");
}

}  // namespace
}  // namespace stoker::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  static fuzz::MemoryFile memory;
  try {
    std::vector<std::unique_ptr<observe::trace::TraceFacts>> traces;
    for (auto& trace :
         observe::trace::read_traces(memory.hold(std::as_bytes(std::span(data, size))), {.most_bytes = 1 << 26})) {
      traces.push_back(std::make_unique<observe::trace::TraceFacts>(std::move(trace)));
      fuzz::check(*traces.back());
    }
    (void)observe::trace::ranks_facts(traces);
    (void)observe::trace::compare(*traces.front(), *traces.back());
  } catch (const DataError&) {
  }
  return 0;
}
