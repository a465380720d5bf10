// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/placement.h"

#include <algorithm>
#include <charconv>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/device/backend.h"
#include "stoker/device/gpu_holders.h"

namespace stoker::device {
namespace {

// N of "cuda:N", 0 of "cuda"; ConfigError for anything else.
int gpu_number(const std::string& wanted) {
  constexpr std::string_view kPrefix = "cuda:";
  int number = 0;
  if (wanted == "cuda") {
    return number;
  }
  if (wanted.starts_with(kPrefix)) {
    const char* end = wanted.data() + wanted.size();
    const auto [stop, error] = std::from_chars(wanted.data() + kPrefix.size(), end, number);
    if (error == std::errc{} && stop == end && number >= 0) {
      return number;
    }
  }
  fail<ConfigError>("device.placement", "device must be auto, cpu, cuda or cuda:N, got \"{}\"; set device=auto",
                    printable(wanted));
}

std::string gpu_reason(const Backend& backend, c10::Device device) {
  const DeviceFacts facts = backend.describe(device);
  const std::vector<std::string> busy = busy_processes(device);
  const std::string others = busy.empty() ? "" : fmt::format("; also in use: {}", fmt::join(busy, ", "));
  return fmt::format("{}, compute capability {}, {}{}", facts.name, facts.compute_capability, facts.driver, others);
}

}  // namespace

DeviceChoice choose_device(const std::string& wanted) {
  if (wanted == "cpu") {
    return {c10::Device(c10::DeviceType::CPU), "asked for"};
  }
  const bool any = wanted == "auto";
  const int number = any ? 0 : gpu_number(wanted);
  const Backend* backend = find_backend(c10::DeviceType::CUDA);
  if (backend == nullptr && any) {
    return {c10::Device(c10::DeviceType::CPU), fmt::format("no CUDA: {}", missing_reason(c10::DeviceType::CUDA))};
  }
  const c10::Device gpu(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(std::min(number, 127)));
  if (backend == nullptr) {
    return {backend_for(gpu).default_device(), ""};  // throws with the reason
  }
  if (number >= backend->device_count()) {
    fail<DeviceError>("device.placement",
                      "device={}: there are {} GPUs, numbered from 0; set device=cuda:0 or device=cpu", wanted,
                      backend->device_count());
  }
  return {gpu, gpu_reason(*backend, gpu)};
}

std::string device_of_rank(const std::string& wanted, int rank_here, int gpus) {
  if ((wanted != "auto" && wanted != "cuda") || gpus == 0) {
    return wanted;
  }
  if (gpus > 1 && rank_here >= gpus) {
    fail<ConfigError>("device.placement",
                      "this machine has {} GPUs, but one of its ranks has the number {}; start at most {} ranks here, "
                      "or set device=cpu",
                      gpus, rank_here, gpus);
  }
  return fmt::format("cuda:{}", gpus == 1 ? 0 : rank_here);
}

core::Batch move_batch(core::Batch batch, c10::Device device) {
  const auto elsewhere = [&](const core::Field& field) { return field.values.device() != device; };
  if (std::ranges::none_of(batch.fields(), elsewhere)) {
    return batch;
  }
  const std::vector<core::Field> fields = batch.fields();
  for (core::Field field : fields) {
    if (elsewhere(field)) {
      field.values = field.values.to(device);
      batch.set(std::move(field));
    }
  }
  return batch;
}

}  // namespace stoker::device
