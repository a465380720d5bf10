// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/machine_record.h"

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/version.h"
#include "stoker/device/backend.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/process_facts.h"

namespace stoker::job {

void record_machine(const std::filesystem::path& run, c10::Device device, std::int64_t resumed_step) {
  const std::filesystem::path file = run / "machine.json";
  nlohmann::ordered_json resumed = nlohmann::ordered_json::array();
  if (resumed_step > 0 && std::filesystem::exists(file)) {
    const auto before = nlohmann::ordered_json::parse(read_text(file), nullptr, /*allow_exceptions=*/false);
    if (before.is_object() && before.contains("resumed_at")) {
      for (const auto& step : before["resumed_at"]) {
        if (step.is_number_integer()) {  // nothing else is copied: other values may nest without limit
          resumed.push_back(step);
        }
      }
    }
    resumed.push_back(resumed_step);
  }
  const device::MachineFacts machine = device::machine_facts();
  const device::DeviceFacts facts = device::backend_for(device).describe(device);
  const device::Versions versions = device::versions();
  nlohmann::ordered_json json = {{"stoker", kVersion},
                                 {"torch", versions.torch},
                                 {"compiler", versions.compiler},
                                 {"device", fmt::format("{} ({})", device.str(), printable(facts.name))},
                                 {"cpu", printable(machine.cpu)},
                                 {"cores", machine.cores},
                                 {"cores_used", device::cpu_quota().cores},
                                 {"memory_bytes", machine.memory_bytes},
                                 {"kernel", printable(machine.kernel)}};
  if (!facts.driver.empty()) {
    json["driver"] = printable(facts.driver);
  }
  if (!resumed.empty()) {
    json["resumed_at"] = resumed;
  }
  write_file_atomically(file, json.dump(2) + "\n");
}

}  // namespace stoker::job
