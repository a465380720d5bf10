// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/profile_text.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "stoker/base/bytes_text.h"
#include "stoker/base/counted.h"
#include "stoker/base/cut_text.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::job {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kFunctions = 10, kFunctionWidth = 72;
constexpr std::size_t kRows = 20, kMemoryRows = 8, kNameWidth = 38, kShapesWidth = 40;

// "81.3 GFLOP/s": three digits and a unit of 1000.
std::string rate_text(double value, const char* unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  int prefix = 0;
  while (prefix < 5 && std::abs(value) >= 999.5) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.{}f} {}{}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kPrefixes[prefix], unit);
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

class Page {
 public:
  explicit Page(const Json& record)
      : record_(record), steps_(record.at("steps").get<double>()), seconds_(record.at("seconds").get<double>()) {}

  std::string text() {
    head();
    phases();
    operators();
    indexing();
    memory();
    kernels();
    host_code();
    for (const Json& note : record_.at("notes")) {
      text_ += "note: " + printable(note.get<std::string>()) + "\n";
    }
    const std::string trace = printable(record_.at("trace").get<std::string>());
    text_ +=
        fmt::format("\ntrace: {0}\n`stoker trace {0}` explains it; ui.perfetto.dev and TensorBoard open it\n", trace);
    return text_;
  }

 private:
  [[nodiscard]] double ms_per_step(double seconds) const { return 1e3 * seconds / std::max(1.0, steps_); }
  [[nodiscard]] double share(double seconds) const { return seconds_ > 0 ? seconds / seconds_ : 0; }
  [[nodiscard]] bool on_device() const { return record_.at("exposed_on") == "device"; }

  void head() {
    const auto first = record_.at("first_step").get<std::int64_t>(), steps = record_.at("steps").get<std::int64_t>();
    text_ += printable(record_.at("title").get<std::string>()) + "\n";
    text_ += fmt::format("steps {} to {}: {:.4g} ms each", first, first + steps - 1,
                         1e3 * record_.at("step_seconds").get<double>());
    if (record_.contains("usual_step_seconds")) {
      text_ += fmt::format("; {:.4g} ms before the profile", 1e3 * record_["usual_step_seconds"].get<double>());
    }
    text_ += "\n";
    const Json& ceilings = record_.at("ceilings");
    std::string measured;
    for (const auto& [type, rate] : ceilings.at("flops_per_second").items()) {
      measured += fmt::format("{}{} product {}", measured.empty() ? "" : ", ", type, rate_text(rate, "FLOP/s"));
    }
    if (ceilings.contains("bytes_per_second")) {
      measured +=
          fmt::format("{}copy {}", measured.empty() ? "" : ", ", rate_text(ceilings["bytes_per_second"], "B/s"));
    }
    text_ += fmt::format("ceilings measured here: {}\n", measured.empty() ? "none" : measured);
    if (record_.contains("flops")) {
      const auto flops = record_["flops"].get<double>();
      text_ += fmt::format("arithmetic: {} per step, {}", rate_text(flops / steps_, "FLOP"),
                           rate_text(flops / seconds_, "FLOP/s"));
      text_ += record_.contains("mfu") ? fmt::format(": {} of the ceiling (MFU)\n", percent(record_["mfu"])) : "\n";
    }
  }

  void phases() {
    text_ += fmt::format("\n{:{}} {:>10} {:>7}\n", "range", kNameWidth, "ms/step", "share");
    for (const Json& row : record_.at("phases")) {
      const auto seconds = row.at("own_seconds").get<double>();
      text_ +=
          fmt::format("{:{}} {:>10.3f} {:>7}\n", cut_text(printable(row.at("name").get<std::string>()), kNameWidth),
                      kNameWidth, ms_per_step(seconds), percent(share(seconds)));
    }
  }

  void row(const std::string& name, const std::string& shapes, double calls, double seconds, const std::string& rate,
           const std::string& of_ceiling) {
    text_ +=
        fmt::format("{:>6} {:>9.3f} {:>7} {:{}} {:{}} {:>12} {:>6}\n", percent(share(seconds)), ms_per_step(seconds),
                    calls < 0 ? "" : fmt::format("{:.4g}", calls / steps_), cut_text(printable(name), kNameWidth),
                    kNameWidth, cut_text(printable(shapes), kShapesWidth), kShapesWidth, rate, of_ceiling);
    while (text_.ends_with(" \n")) {
      text_.erase(text_.size() - 2, 1);
    }
  }

  void operator_row(const Json& each) {
    const auto seconds = each.at("exposed_seconds").get<double>();
    const std::string type = each.at("type").get<std::string>();
    std::string rate;
    if (seconds > 0 && each.contains("flops")) {
      rate = rate_text(each["flops"].get<double>() / seconds, "FLOP/s");
    } else if (seconds > 0 && each.contains("bytes")) {
      rate = rate_text(each["bytes"].get<double>() / seconds, "B/s");
    }
    row(each.at("name"), each.at("shapes").get<std::string>() + (type.empty() ? "" : " " + type), each.at("calls"),
        seconds, rate, each.contains("of_ceiling") ? percent(each["of_ceiling"]) : "");
  }

  void operators() {
    const Json& all = record_.at("operators");
    text_ += fmt::format(
        "\noperators by {}\n{:>6} {:>9} {:>7} {:{}} {:{}} {:>12} {:>6}\n",
        on_device() ? "the time that the device works for them alone" : "their own time on the thread that steps",
        "share", "ms/step", "calls", "operator", kNameWidth, "shapes and type", kShapesWidth, "rate", "of max");
    double shown = 0;
    for (std::size_t i = 0; i < std::min(kRows, all.size()); ++i) {
      operator_row(all[i]);
      shown += all[i].at("exposed_seconds").get<double>();
    }
    const auto exposed = record_.at("exposed_seconds").get<double>();
    if (all.size() > kRows) {
      row(fmt::format("{} more rows", all.size() - kRows), "", -1, exposed - shown, "", "");
    }
    row(on_device() ? "the device is idle" : "outside operators", "", -1, std::max(0.0, seconds_ - exposed), "", "");
  }

  void indexing() {
    double seconds = 0;
    std::string names;
    for (const Json& each : record_.at("operators")) {
      const auto own = each.at("exposed_seconds").get<double>();
      if (each.at("indexing").get<bool>() && own > 0) {
        seconds += own;
        const auto name = each.at("name").get<std::string>();
        if (names.find(name) == names.npos && names.size() < 80) {
          names += (names.empty() ? "" : ", ") + name;
        }
      }
    }
    text_ += seconds > 0 ? fmt::format("\nby index or mask: {} ({:.3f} ms/step): {}\n", percent(share(seconds)),
                                       ms_per_step(seconds), printable(names))
                         : "\nby index or mask: none\n";
  }

  void memory() {
    std::vector<const Json*> rows;
    for (const Json& each : record_.at("operators")) {
      if (each.contains("allocated_bytes")) {
        rows.push_back(&each);
      }
    }
    std::ranges::stable_sort(rows, std::greater(),
                             [](const Json* each) { return each->at("allocated_bytes").get<std::int64_t>(); });
    text_ += fmt::format("\n{:>12} allocated per step by\n", "memory");
    for (std::size_t i = 0; i < std::min(kMemoryRows, rows.size()); ++i) {
      const auto bytes = rows[i]->at("allocated_bytes").get<double>() / steps_;
      text_ += fmt::format("{:>12} {} {}\n", bytes_text(std::llround(bytes)),
                           printable(rows[i]->at("name").get<std::string>()),
                           cut_text(printable(rows[i]->at("shapes").get<std::string>()), kShapesWidth));
    }
  }

  void kernels() {
    if (!record_.contains("kernels")) {
      return;
    }
    text_ += fmt::format("\n{:>9} {:>7} kernel\n", "ms/step", "calls");
    const Json& all = record_["kernels"];
    for (std::size_t i = 0; i < std::min(kRows / 2, all.size()); ++i) {
      text_ += fmt::format("{:>9.3f} {:>7.4g} {}\n", ms_per_step(all[i].at("seconds")),
                           all[i].at("calls").get<double>() / steps_,
                           cut_text(printable(all[i].at("name").get<std::string>()), 90));
    }
  }

  void function_row(const Json& row, double samples) {
    const std::string where = row.contains("file")
                                  ? fmt::format("{}:{}", row["file"].get<std::string>(), row["line"].get<int>())
                                  : row.at("module").get<std::string>();
    text_ += fmt::format("{:>6}  {:{}} {}\n", percent(row.at("samples").get<double>() / samples),
                         cut_text(printable(row.at("function").get<std::string>()), kFunctionWidth), kFunctionWidth,
                         printable(where));
  }

  // All functions by their own time; then those of the program.
  void host_code() {
    if (!record_.contains("host_code")) {
      return;
    }
    const Json& all = record_["host_code"];
    const auto samples = all.at("samples").get<double>();
    text_ += fmt::format("\nhost code by own CPU time, {} samples; threads:", samples);
    for (const Json& thread : all.at("threads")) {
      text_ += fmt::format(" {} {}", printable(thread.at("name").get<std::string>()),
                           percent(thread.at("samples").get<double>() / samples));
    }
    text_ += fmt::format("\n{:>6}  {:{}} where\n", "share", "function", kFunctionWidth);
    for (const bool own : {false, true}) {
      text_ += own ? "of this program:\n" : "";
      std::size_t shown = 0;
      for (const Json& row : all.at("functions")) {
        if ((!own || row.at("own").get<bool>()) && ++shown <= kFunctions) {
          function_row(row, samples);
        }
      }
    }
  }

  const Json& record_;
  double steps_, seconds_;
  std::string text_;
};

}  // namespace

std::string profile_text(const std::string& record) {
  try {
    const Json json = Json::parse(record);
    return Page(json).text();
  } catch (const Json::exception& error) {
    fail<DataError>("job.profile", "the record of the profile is damaged: {}", printable(error.what()));
  }
}

}  // namespace stoker::job
