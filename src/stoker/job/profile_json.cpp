// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/profile_json.h"

#include <nlohmann/json.hpp>

namespace stoker::job {
namespace {

using Json = nlohmann::ordered_json;
using observe::profile::ProfileTable;

// What is unknown is left out.
void put(Json& json, const char* key, double value, double unknown) {
  if (value > unknown) {
    json[key] = value;
  }
}

Json operators(const ProfileTable& table) {
  Json list = Json::array();
  for (const auto& row : table.operators) {
    Json json = {{"name", row.name},
                 {"shapes", row.shapes},
                 {"type", row.type},
                 {"calls", row.calls},
                 {"exposed_seconds", row.exposed_seconds},
                 {"host_seconds", row.host_seconds}};
    put(json, "flops", row.flops, 0);
    put(json, "bytes", row.bytes, 0);
    put(json, "of_ceiling", row.of_ceiling, -1);
    if (row.allocated_bytes > 0) {
      json["allocated_bytes"] = row.allocated_bytes;
    }
    json["indexing"] = row.indexing;
    list.push_back(std::move(json));
  }
  return list;
}

Json phases(const ProfileTable& table) {
  Json list = Json::array();
  for (const auto& row : table.phases) {
    list.push_back(
        {{"name", row.name}, {"calls", row.calls}, {"seconds", row.seconds}, {"own_seconds", row.own_seconds}});
  }
  return list;
}

Json kernels(const ProfileTable& table) {
  Json list = Json::array();
  for (const auto& row : table.kernels) {
    list.push_back({{"name", row.name}, {"calls", row.calls}, {"seconds", row.seconds}, {"indexing", row.indexing}});
  }
  return list;
}

Json ceilings_json(const observe::profile::Ceilings& ceilings) {
  Json json = Json::object(), products = Json::object();
  for (const auto& each : ceilings.products) {
    products[each.type] = each.flops_per_second;
  }
  json["flops_per_second"] = products;
  put(json, "bytes_per_second", ceilings.bytes_per_second, 0);
  return json;
}

Json code_json(const observe::profile::HostCode& code) {
  Json threads = Json::array(), functions = Json::array();
  for (const auto& row : code.threads) {
    threads.push_back({{"name", row.name}, {"samples", row.samples}});
  }
  for (const auto& row : code.functions) {
    Json json = {{"function", row.function}, {"module", row.module}, {"own", row.own}, {"samples", row.samples}};
    if (row.line > 0) {
      json["file"] = row.file;
      json["line"] = row.line;
    }
    functions.push_back(std::move(json));
  }
  return {{"samples", code.samples}, {"threads", threads}, {"functions", functions}};
}

}  // namespace

std::string profile_json(const ProfileFacts& facts, const ProfileTable& table,
                         const observe::profile::Ceilings& ceilings, const observe::profile::HostCode& code) {
  Json json = {{"kind", "profile"},
               {"format", kProfileFormat},
               {"title", facts.title},
               {"device", facts.device},
               {"trace", facts.trace},
               {"first_step", facts.first_step},
               {"steps", table.steps},
               {"samples", facts.samples},
               {"seconds", table.seconds},
               {"step_seconds", facts.step_seconds},
               {"pause_seconds", facts.pause_seconds},
               {"exposed_on", table.on_device ? "device" : "host"},
               {"exposed_seconds", table.exposed_seconds}};
  put(json, "usual_step_seconds", facts.usual_seconds, 0);
  put(json, "flops", table.flops, 0);
  put(json, "mfu", table.mfu, -1);
  json["ceilings"] = ceilings_json(ceilings);
  json["phases"] = phases(table);
  json["operators"] = operators(table);
  if (table.on_device) {
    json["kernels"] = kernels(table);
  }
  if (code.samples > 0) {
    json["host_code"] = code_json(code);
  }
  json["notes"] = facts.notes;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stoker::job
