// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/memory_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stoker::job {
namespace {

using Json = nlohmann::ordered_json;

// Unknown figures are left out.
void put(Json& json, const char* key, std::int64_t value) {
  if (value >= 0) {
    json[key] = value;
  }
}

Json categories(const memory::StepRecord& record) {
  Json list = Json::array();
  for (std::size_t i = 0; i < memory::kCategories; ++i) {
    list.push_back({{"name", memory::category_name(static_cast<memory::Category>(i))}, {"bytes", record.at_peak[i]}});
  }
  return list;
}

Json marks(const memory::StepRecord& record) {
  Json list = Json::array();
  for (const memory::MemoryMark& mark : record.marks) {
    list.push_back({{"name", mark.name},
                    {"named", mark.named},
                    {"at", mark.at},
                    {"allocated", mark.allocated},
                    {"peak", mark.peak}});
  }
  return list;
}

Json blocks(const memory::StepRecord& record) {
  Json list = Json::array();
  for (const memory::HeldBlock& block : record.blocks) {
    list.push_back({{"bytes", block.bytes},
                    {"category", memory::category_name(block.category)},
                    {"phase", core::phase_name(block.phase)},
                    {"operator", block.made_by},
                    {"shape", block.shape}});
  }
  return list;
}

// Of the device at the end of the step. On CUDA, torch's cache: what is free in segments that hold nothing else goes
// back when the cache is released; free parts of blocks in use (inactive) could only be used with expandable segments.
Json device_memory(const MemoryRecord& facts) {
  Json json = Json::object();
  const device::MemoryFigures& figures = facts.figures;
  put(json, "total", figures.total);
  put(json, "reserved", figures.reserved);
  const std::int64_t cached = std::max<std::int64_t>(0, figures.reserved - figures.allocated);
  if (facts.device.is_cuda()) {
    put(json, "inactive", facts.inactive);
    put(json, "releasable", std::max<std::int64_t>(0, cached - std::max<std::int64_t>(0, facts.inactive)));
    if (figures.total >= 0 && figures.free >= 0) {
      put(json, "others", std::max<std::int64_t>(0, figures.total - (figures.free - cached) - figures.reserved));
    }
    put(json, "retries", facts.retries);
  } else {
    put(json, "releasable", facts.heap_kept < 0 ? -1 : cached + facts.heap_kept);
  }
  return json;
}

}  // namespace

std::string memory_json(const MemoryRecord& facts, const memory::StepRecord& record) {
  const Json json = {
      {"kind", "memory"},
      {"title", "Memory of a step"},
      {"format", kMemoryFormat},
      {"device", facts.device.str()},
      {"step", facts.step},
      {"samples", facts.samples},
      {"microbatch", facts.microbatch},
      {"before", record.before},
      {"peak", record.peak},
      {"after", record.after},
      {"peak_phase", core::phase_name(record.peak_phase)},
      {"peak_operator", record.peak_operator},
      {"allocations", record.allocations},
      {"categories", categories(record)},
      {"marks", marks(record)},
      {"line", record.line},
      {"blocks", blocks(record)},
      {"device_memory", device_memory(facts)},
  };
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string with_run_facts(const std::string& json, const MemoryOfRun& run) {
  Json whole = Json::parse(json);
  put(whole, "host_peak", run.host_peak);
  whole["microbatch_schedule"] = memory::schedule_text(run.schedule);
  whole["findings"] = run.findings;
  return whole.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker::job
