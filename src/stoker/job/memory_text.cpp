// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/memory_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/bytes_text.h"
#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/report/run_log.h"
#include "stoker/job/memory_json.h"
#include "stoker/job/step_chart.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kBar = 30;  // columns

std::int64_t number(const Json& json, const char* key) { return json.value(key, std::int64_t{-1}); }
std::string words(const Json& json, const char* key) { return printable(json.value(key, std::string())); }

// log: of the run.
Json read_record(const fs::path& run, const io::RunLog& log) {
  const fs::path path = run / kMemoryFile;
  std::error_code error;
  if (!fs::exists(path, error)) {
    const bool failed = log.end && log.end->outcome == "failed";
    fail<DataError>("job.memory",
                    "{}: has no memory record; a run writes it at its third step, unless something else "
                    "records the allocations{}",
                    printable(run.native()), failed ? ". This run failed: " + printable(log.end->text) : "");
  }
  Json json = io::parse_any_json(read_text(path));
  if (!json.is_object() || json.value("format", 0) != kMemoryFormat) {
    fail<DataError>("job.memory", "{}: is not a memory record of format {}; train again with this version",
                    printable(path.native()), kMemoryFormat);
  }
  return json;
}

// Of the run: what it survived.
std::vector<std::string> survived(const io::RunLog& log) {
  std::vector<std::string> texts;
  for (const auto& [step, text] : log.faults.first) {
    if (text.find("ran out of memory") != std::string::npos) {
      texts.push_back(fmt::format("step {}: {}", step, printable(text)));
    }
  }
  return texts;
}

std::string bar(std::int64_t bytes, std::int64_t all) {
  const double share = all > 0 ? static_cast<double>(bytes) / static_cast<double>(all) : 0;
  return bar_text(share, kBar);
}

std::string categories(const Json& record) {
  const std::int64_t peak = number(record, "peak");
  std::string text = fmt::format("\n{:<18}{:>10}{:>8}\n", "held at the peak", "", "");
  for (const Json& each : record.at("categories")) {
    const std::int64_t bytes = number(each, "bytes");
    if (bytes != 0) {
      text += fmt::format("  {:<16}{:>10}{:>6.1f} %  {}\n", words(each, "name"), bytes_text(bytes),
                          100.0 * static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(1, peak)),
                          bar(bytes, peak));
    }
  }
  return text + fmt::format("  {:<16}{:>10}\n", "together", bytes_text(peak));
}

std::string stages(const Json& record) {
  std::string text = fmt::format("\n{:<30}{:>12}{:>14}\n", "stages of the step", "held then", "highest after");
  for (const Json& mark : record.at("marks")) {
    text += fmt::format("  {:<28}{:>12}{:>14}\n", words(mark, "name") + (mark.value("named", false) ? " (mark)" : ""),
                        bytes_text(number(mark, "allocated")), bytes_text(number(mark, "peak")));
  }
  return text;
}

std::string largest(const Json& record) {
  if (record.at("blocks").empty()) {
    return "";
  }
  std::string text = "\nlargest tensors of the step at its peak\n";
  for (const Json& block : record.at("blocks")) {
    const std::string made_by = words(block, "operator");
    text += fmt::format("  {:>10}  {:<12} {:<24} {}\n", bytes_text(number(block, "bytes")), words(block, "category"),
                        words(block, "shape"),
                        fmt::format("{} in {}", made_by.empty() ? "no operator" : made_by, words(block, "phase")));
  }
  return text;
}

// The device beyond tensors, and the process.
std::string around(const Json& record) {
  const Json device = record.value("device_memory", Json::object());
  std::string text = "\naround the tensors\n";
  const auto line = [&](std::int64_t bytes, const std::string& what) {
    text += bytes >= 0 ? fmt::format("  {:>10}  {}\n", bytes_text(bytes), what) : "";
  };
  const std::int64_t reserved = number(device, "reserved"), inactive = number(device, "inactive");
  const bool cuda = inactive >= 0;
  line(reserved,
       cuda ? "reserved by torch's cache, tensors included" : "reserved by Stoker's allocator, tensors included");
  line(inactive, fmt::format("lost to fragmentation ({:.1f} % of the cache): free parts of blocks in use; "
                             "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True gives most of it back",
                             100.0 * static_cast<double>(inactive) / std::max(1.0, static_cast<double>(reserved))));
  line(number(device, "releasable"),
       cuda ? "free in the cache: releasing it gives this back to other programs"
            : "free in there and in the C library's heap; given back before memory is refused");
  line(number(device, "others"), "used on the device by other programs, and by CUDA itself");
  line(number(device, "total"), cuda ? "memory of the device" : "memory that this process may use");
  line(number(record, "host_peak"), "highest memory of the process (host)");
  if (const std::int64_t retries = number(device, "retries"); retries > 0) {
    text += fmt::format("  {:>10}  allocations waited for the cache to be released\n", retries);
  }
  return text;
}

std::string text_of(const io::RunLog& log, const Json& record) {
  const std::int64_t samples = number(record, "samples"), pass = number(record, "microbatch");
  const std::string by = words(record, "peak_operator");
  std::string text = fmt::format("Memory of step {} on {}: {}{}\nPeak {} in {}{}; between steps {}\n",
                                 number(record, "step"), words(record, "device"), counted(samples, "sample"),
                                 pass > 0 && pass < samples ? fmt::format(", {} per forward pass", pass) : "",
                                 bytes_text(number(record, "peak")), words(record, "peak_phase"),
                                 by.empty() ? "" : " (" + by + ")", bytes_text(number(record, "after")));
  text += categories(record);
  text += "\n" + step_chart(record.at("line").get<std::vector<std::int64_t>>(), chart_marks(record.at("marks")));
  text += stages(record) + largest(record) + around(record);
  if (const auto faults = survived(log); !faults.empty()) {
    text +=
        fmt::format("\nsurvived out-of-memory errors; microbatch_schedule={}\n", words(record, "microbatch_schedule"));
    for (const std::string& each : faults) {
      text += fmt::format("  {}\n", each);
    }
  }
  for (const Json& finding : record.value("findings", Json::array())) {
    text += fmt::format("\nfound: {}\n", printable(finding.get<std::string>()));
  }
  return text;
}

}  // namespace

std::string memory_text(const fs::path& run) {
  const io::RunLog log = io::read_run_log(run);
  const Json record = read_record(run, log);
  try {
    return text_of(log, record);
  } catch (const Json::exception& error) {  // a key is missing, or a value is of another kind
    fail<DataError>("job.memory", "{}: is damaged ({}); train again", printable((run / kMemoryFile).native()),
                    error.what());
  }
}

std::string memory_as_json(const fs::path& run) {
  const io::RunLog log = io::read_run_log(run);
  Json record = read_record(run, log);
  record["survived"] = survived(log);
  return record.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stoker::job
