// SPDX-License-Identifier: Apache-2.0
// Facts of somebody else's Python script, from the records that the shim wrote (docs/doctor-script.md). Thread-safe: no
// state.
#pragma once

#include <filesystem>

#include "stoker/observe/doctor/facts.h"
#include "stoker/observe/doctor/script_process.h"

namespace stoker::observe::doctor {

// Whether a folder holds records of a script.
[[nodiscard]] bool is_script_record(const std::filesystem::path& folder);

// Of the process with the most steps, with the workers of its loaders. Records that are damaged or incomplete are left
// out; a script that still runs may be read. DataError if the folder holds no records.
[[nodiscard]] Facts script_facts(const std::filesystem::path& folder);
// The same of records that were read already, without what is known of the machine.
[[nodiscard]] Facts script_facts(const std::vector<ScriptProcess>& processes);

struct Trainer {
  int process = 0;         // 0: none has ended a step
  std::string gpu_bus_id;  // of the GPU that it uses; empty: none, or unknown
};
[[nodiscard]] Trainer training_process(const std::filesystem::path& folder);

}  // namespace stoker::observe::doctor
