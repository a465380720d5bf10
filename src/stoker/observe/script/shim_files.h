// SPDX-License-Identifier: Apache-2.0
// The shim's Python files, embedded by cmake/embed.cmake. Used by shim.cpp. Thread-safe: constants.
#pragma once

#include <string_view>

namespace stoker::observe::script::shim_files {

extern const std::string_view kSitecustomize, kInit, kBurst, kCalls, kHistory, kImports, kLedger, kLoader, kMemory,
    kNumerics, kPageFaults, kPauses, kRanks, kRecord, kStacks, kSteps, kStillness, kSwitches, kTrial, kWaits,
    kWritePatch;

}  // namespace stoker::observe::script::shim_files
