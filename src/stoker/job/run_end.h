// SPDX-License-Identifier: Apache-2.0
// The last part of a training: the loop, the best checkpoint on the test split, the report, and the event that says how
// it ended. Used by Job::train; one thread.
#pragma once

#include <cstdint>
#include <functional>

#include "stoker/io/event_bus.h"
#include "stoker/job/job.h"
#include "stoker/job/run_checkpoints.h"
#include "stoker/job/run_folder.h"
#include "stoker/job/setup.h"
#include "stoker/train/loop.h"

namespace stoker::job {

// The loop, then the test split with the best weights, unless it was stopped. give_up: nobody waits for figures any
// more.
[[nodiscard]] Outcome run_and_test(const train::LoopParts& parts, const Setup& setup, const RunCheckpoints& checkpoints,
                                   const RunFolder& run, io::EventBus& bus, std::int64_t last_step,
                                   const std::function<bool()>& give_up);

// Runs work; then the sinks hear how it ended, and the run's page is made, also where work failed. Errors are typed.
[[nodiscard]] Outcome run_to_its_end(const train::Progress& progress, const RunFolder& run, io::EventBus& bus,
                                     const std::function<Outcome()>& work);

}  // namespace stoker::job
