// SPDX-License-Identifier: Apache-2.0
// Which GPU each rank has: one of its own, or NCCL would fail in the first step. Used by set_up(); no state.
#pragma once

#include <c10/core/Device.h>

#include <span>
#include <string>

#include "stoker/core/communicator.h"

namespace stoker::job {

struct RankDevice {
  std::string bus_id;   // on the PCI bus of the machine; empty: a CPU
  std::string machine;  // the same on all ranks of a machine
  std::string host;     // for people
};

// ConfigError that names two ranks on one GPU.
void check_devices(std::span<const RankDevice> devices);

// A collective call: check_devices() of all ranks. device: of this rank.
void check_devices_of_ranks(core::Communicator& ranks, c10::Device device);

}  // namespace stoker::job
