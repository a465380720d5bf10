// SPDX-License-Identifier: Apache-2.0
// The sinks for tools of other people that the option `log` asks for. Called by Job and Run. One thread.
#pragma once

#include <string>

#include "stoker/io/event_bus.h"
#include "stoker/job/run_folder.h"
#include "stoker/train/plan.h"

namespace stoker::job {

// log: a value of the option. ConfigError if it asks for MLflow without an address, or with one that is not http(s);
// IoError if there is no libcurl for it. Called before anything is measured or written.
void check_log_targets(const std::string& log);

// Call before other sinks are added: what these say as they end then reaches the others.
void add_log_sinks(io::EventBus& bus, const RunFolder& run, const train::Plan& plan);

}  // namespace stoker::job
