// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/rank_devices.h"

#include <sstream>
#include <string>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/device/backend.h"
#include "stoker/parallel/member.h"

namespace stoker::job {
namespace {

RankDevice own_device(c10::Device device) {
  const std::string bus_id = device.is_cpu() ? "" : device::backend_for(device).bus_id(device);
  return {bus_id, parallel::boot_id(), parallel::this_process().host};
}

}  // namespace

void check_devices(std::span<const RankDevice> devices) {
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other) {
      const RankDevice &a = devices[other], &b = devices[rank];
      if (!a.bus_id.empty() && a.bus_id == b.bus_id && a.machine == b.machine) {
        fail<ConfigError>("job.ranks",
                          "ranks {} and {} share one GPU, {} of {}; each needs its own: start as many ranks as there "
                          "are GPUs, or set device=cpu",
                          other, rank, a.bus_id, a.host);
      }
    }
  }
}

void check_devices_of_ranks(core::Communicator& ranks, c10::Device device) {
  const RankDevice own = own_device(device);
  std::vector<RankDevice> devices;
  for (const std::string& text :
       core::texts_of_ranks(ranks, fmt::format("{}\n{}\n{}", own.bus_id, own.machine, own.host))) {
    std::istringstream lines(text);
    RankDevice& theirs = devices.emplace_back();
    for (std::string* word : {&theirs.bus_id, &theirs.machine, &theirs.host}) {
      std::getline(lines, *word);
    }
  }
  check_devices(devices);
}

}  // namespace stoker::job
