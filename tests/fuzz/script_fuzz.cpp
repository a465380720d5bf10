// SPDX-License-Identifier: Apache-2.0
// Any bytes as the records of a script's processes give facts, and findings whose gain is a number: a prediction has
// its likely value inside of its interval. The byte 0 ends the records of one process.
#include <cmath>
#include <span>
#include <sstream>

#include "fuzz_target.h"
#include "stoker/observe/doctor/examine.h"
#include "stoker/observe/doctor/script_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  using namespace stoker::observe::doctor;
  std::vector<ScriptProcess> processes;
  std::istringstream all(std::string(reinterpret_cast<const char*>(data), size));
  for (std::string records; std::getline(all, records, '\0');) {
    std::istringstream one(records);
    processes.push_back(read_script_process(one));
  }
  Facts facts = script_facts(processes);
  facts.figures["machine.cores"] = {4, "machine"};
  for (const Found& found : examine(facts).found) {
    const Prediction& gain = found.finding.gain;
    fuzz::expect(std::isfinite(gain.speedup) && std::isfinite(gain.high), "a gain is a number");
    fuzz::expect(gain.low <= gain.speedup && gain.speedup <= gain.high, "the likely gain lies in its interval");
  }
  return 0;
}
