// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/nvml_gpm.h"

#include <array>
#include <cmath>

namespace stoker::device {
namespace {

using namespace nvml;

struct Wanted {
  unsigned id;
  const char* name;
  double scale;
};
constexpr double kPercent = 1e-2, kMebi = 1 << 20;
constexpr std::array kWanted = {
    Wanted{kGpmSmBusy, "sm_busy_share", kPercent},
    Wanted{kGpmOccupancy, "sm_occupancy_share", kPercent},
    Wanted{kGpmTensor, "tensor_busy_share", kPercent},
    Wanted{kGpmDram, "memory_bandwidth_share", kPercent},
    Wanted{kGpmPcieSent, "pcie_sent_bytes_per_second", kMebi},
    Wanted{kGpmPcieReceived, "pcie_received_bytes_per_second", kMebi},
    Wanted{kGpmNvlinkSent, "nvlink_sent_bytes_per_second", kMebi},
    Wanted{kGpmNvlinkReceived, "nvlink_received_bytes_per_second", kMebi},
};

class Gpm final : public GpuActivity {
 public:
  Gpm(const NvmlLibrary& library, Device device) : library_(library), device_(device), metrics_(new GpmMetrics{}) {}
  ~Gpm() override {
    for (Sample sample : {before_, after_}) {
      if (sample != nullptr) {
        ask(library_.gpm_free, sample);
      }
    }
  }
  Gpm(const Gpm&) = delete;
  Gpm& operator=(const Gpm&) = delete;

  [[nodiscard]] bool start() { return ask(library_.gpm_allocate, &before_) && ask(library_.gpm_allocate, &after_); }

  std::vector<std::pair<std::string, double>> since_last() override {
    std::vector<std::pair<std::string, double>> result;
    if (!ask(library_.gpm_sample, device_, after_)) {
      sampled_ = false;
      return result;
    }
    if (sampled_ && compare()) {
      for (std::size_t i = 0; i < kWanted.size(); ++i) {
        const GpmMetric& metric = metrics_->metrics[i];
        if (metric.status == kSuccess && std::isfinite(metric.value)) {
          result.emplace_back(kWanted[i].name, kWanted[i].scale * metric.value);
        }
      }
    }
    sampled_ = true;
    std::swap(before_, after_);
    return result;
  }

 private:
  bool compare() {
    metrics_->version = kGpmVersion;
    metrics_->count = kWanted.size();
    metrics_->before = before_;
    metrics_->after = after_;
    for (std::size_t i = 0; i < kWanted.size(); ++i) {
      metrics_->metrics[i] = GpmMetric{kWanted[i].id, kUnknownError, 0, nullptr, nullptr, nullptr};
    }
    return ask(library_.gpm_metrics, metrics_.get());
  }

  const NvmlLibrary& library_;
  Device device_;
  std::unique_ptr<GpmMetrics> metrics_;
  Sample before_ = nullptr, after_ = nullptr;
  bool sampled_ = false;  // before_ holds a sample
};

}  // namespace

std::unique_ptr<GpuActivity> gpm_activity(const NvmlLibrary& library, Device device) {
  GpmSupport support{kGpmVersion, 0};
  if (!ask(library.gpm_support, device, &support) || support.supported == 0) {
    return nullptr;
  }
  auto gpm = std::make_unique<Gpm>(library, device);
  return gpm->start() ? std::move(gpm) : nullptr;
}

}  // namespace stoker::device
