// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/rank_devices.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/device/backend.h"
#include "stoker/parallel/member.h"

namespace stoker::job {
namespace {

// What a word is where it is unknown, so that there are always three.
constexpr std::string_view kNone = "-";

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
  constexpr std::size_t kBytes = 256;
  const RankDevice own = own_device(device);
  const auto word = [](const std::string& text) { return text.empty() ? std::string(kNone) : text; };
  const std::string text =
      fmt::format("{} {} {}", word(own.bus_id), word(own.machine), word(own.host)).substr(0, kBytes - 1);
  const at::Tensor mine = at::zeros({kBytes}, at::kByte);
  std::ranges::copy(text, mine.mutable_data_ptr<std::uint8_t>());
  std::vector<RankDevice> devices;
  for (const at::Tensor& each : ranks.exchange(mine)) {
    RankDevice& theirs = devices.emplace_back();
    std::istringstream(reinterpret_cast<const char*>(each.const_data_ptr<std::uint8_t>())) >> theirs.bus_id >>
        theirs.machine >> theirs.host;
    theirs.bus_id = theirs.bus_id == kNone ? "" : theirs.bus_id;
  }
  check_devices(devices);
}

}  // namespace stoker::job
