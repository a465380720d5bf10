// SPDX-License-Identifier: Apache-2.0
// The sinks for tools of other people that the option `log` asks for. Called by Run. One thread.
#pragma once

#include "stoker/io/event_bus.h"
#include "stoker/job/run_folder.h"
#include "stoker/train/plan.h"

namespace stoker::job {

// Call before other sinks are added: what these say as they end then reaches the others. ConfigError if MLflow is asked
// for without an address, or its address is not one.
void add_log_sinks(io::EventBus& bus, const RunFolder& run, const train::Plan& plan);

}  // namespace stoker::job
