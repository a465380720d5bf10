// SPDX-License-Identifier: Apache-2.0
// The first half of a run's setup: from a request to data and a plan, without measurements and without a model. Used by
// set_up() and by commands that inspect data. One thread at a time.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <string_view>

#include "stoker/device/placement.h"
#include "stoker/job/request.h"
#include "stoker/tasks/task.h"
#include "stoker/train/resolve.h"

namespace stoker::job {

// The value of `device` for all GPUs of a machine, one rank for each (job::Ranks starts them).
inline constexpr std::string_view kAllGpus = "cuda:all";

struct OpenedData {
  c10::Device device = c10::Device(c10::kCPU);
  std::unique_ptr<tasks::OpenData> data;
  train::Facts facts;
  train::Plan plan;
};

// The cores for each of ranks_here ranks that share this machine.
[[nodiscard]] int own_cores(int ranks_here);
// The device of this rank. saved: as below. ConfigError for several ranks on GPUs, which nothing carries yet.
[[nodiscard]] device::DeviceChoice choose_own_device(const Request& request, const train::Plan* saved);

// saved: the plan to repeat; null: resolve one. ConfigError, DataError.
[[nodiscard]] OpenedData open_data(const Request& request, const train::Plan* saved, const Say& say);

// The task made from the data with the plan.
[[nodiscard]] std::unique_ptr<tasks::ReadyTask> settle(OpenedData& opened);

}  // namespace stoker::job
