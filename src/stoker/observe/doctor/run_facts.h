// SPDX-License-Identifier: Apache-2.0
// The facts of a run of Stoker, live or ended, from the records in its folder: metrics.jsonl, plan.json, machine.json.
// Thread-safe: no state.
#pragma once

#include <filesystem>

#include "stoker/observe/doctor/facts.h"

namespace stoker::observe::doctor {

// DataError that names the folder if it is no run folder (it has no plan.json), or if its records cannot be read. A
// damaged line is passed over and told in Facts::damage. The first period is left out if there are more than two:
// caches fill in it, and kernels are chosen.
[[nodiscard]] Facts run_facts(const std::filesystem::path& folder);

}  // namespace stoker::observe::doctor
