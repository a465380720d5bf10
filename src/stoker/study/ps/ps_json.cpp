// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/study/ps/ps_text.h"

namespace stoker::study {
namespace {

using Json = nlohmann::ordered_json;

// Nothing for a value that is missing.
void put(Json& json, const char* key, std::optional<double> value) {
  if (value) {
    json[key] = *value;
  }
}

Json holder_json(const Holder& holder) {
  Json json = {{"pid", holder.pid}};
  if (holder.gpu >= 0) {
    json["gpu"] = holder.gpu;
  }
  if (holder.bytes >= 0) {
    json["gpu_bytes"] = holder.bytes;
  }
  if (holder.process) {
    const observe::ListedProcess& process = *holder.process;
    json["name"] = printable(process.times.name);
    json["command"] = printable(process.command);
    json["user"] = printable(process.user);
    json["age_seconds"] = process.age_seconds;
    json["state"] = std::string(1, process.times.state);
    put(json, "parent", process.times.parent);
    put(json, "resident_bytes", process.times.resident_bytes);
    put(json, "user_seconds", process.times.user_seconds);
    put(json, "system_seconds", process.times.system_seconds);
    if (!process.container.empty()) {
      json["container"] = process.container;
    }
    if (!process.run_folder.empty()) {
      json["run"] = printable(process.run_folder);
    }
  }
  if (!holder.remark.empty()) {
    json["remark"] = holder.remark;
  }
  return json;
}

Json list(const std::vector<Holder>& holders) {
  Json json = Json::array();
  for (const Holder& holder : holders) {
    json.push_back(holder_json(holder));
  }
  return json;
}

}  // namespace

std::string holders_json(const Holders& holders) {
  Json gpus = Json::array(), shared = Json::array();
  for (const HeldGpu& gpu : holders.gpus) {
    Json json = {{"gpu", gpu.number}, {"name", printable(gpu.name)}, {"mig", gpu.mig}};
    put(json, "memory_bytes", gpu.memory_bytes);
    put(json, "used_bytes", gpu.used_bytes);
    put(json, "busy_share", gpu.busy_share);
    gpus.push_back(std::move(json));
  }
  for (const SharedFile& file : holders.shared) {
    shared.push_back(
        {{"path", printable(file.path)}, {"bytes", file.bytes}, {"pids", file.pids}, {"left_over", file.left_over}});
  }
  Json json = {{"version", 1},
               {"gpus", std::move(gpus)},
               {"holders", list(holders.of_gpus)},
               {"runs", list(holders.runs)},
               {"leftovers", list(holders.leftovers)},
               {"shared", std::move(shared)},
               {"busiest", list(holders.busiest)},
               {"cores", holders.cores},
               {"notes", holders.pitfalls},
               {"all_visible", holders.all_visible}};
  if (!holders.no_gpu.empty()) {
    json["no_gpu"] = holders.no_gpu;
  }
  put(json, "available_bytes", holders.available_bytes);
  put(json, "memory_bytes", holders.memory_bytes);
  return json.dump(2) + "\n";
}

}  // namespace stoker::study
