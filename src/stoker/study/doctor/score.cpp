// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/score.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/utc.h"

namespace stoker::study {
namespace {

using Json = nlohmann::json;

// Empty if the environment names no absolute folder, as in the XDG specification.
std::filesystem::path score_file() {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    const std::filesystem::path path(value == nullptr ? "" : value);
    return path.is_absolute() ? path : std::filesystem::path();
  };
  const std::filesystem::path state = folder("XDG_STATE_HOME"), home = folder("HOME");
  return !state.empty()  ? state / "stoker/predictions.jsonl"
         : !home.empty() ? home / ".local/state/stoker/predictions.jsonl"
                         : std::filesystem::path();
}

std::string line_of(const Tried& each) {
  const observe::doctor::Prediction& gain = *each.cure.prediction;
  return Json{{"time", utc_now("%Y-%m-%dT%H:%M:%SZ")},
              {"rule", each.cure.rule},
              {"option", each.cure.option},
              {"likely", gain.speedup},
              {"low", gain.low},
              {"high", gain.high},
              {"measured", each.gain.median},
              {"pairs", each.gain.pairs}}
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

double number(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

}  // namespace

void keep_score(std::span<const Tried> tried) {
  const std::filesystem::path path = score_file();
  std::string lines;
  for (const Tried& each : tried) {
    if (each.cure.prediction && each.trouble.empty()) {
      lines += line_of(each);
    }
  }
  if (path.empty() || lines.empty()) {
    return;
  }
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::app);
  if (!(file << lines << std::flush)) {
    fail<IoError>("stoker.doctor", "{}: the score of the predictions cannot be kept", printable(path.native()));
  }
}

std::string score_text() {
  std::ifstream file(score_file());
  std::vector<double> errors;
  int inside = 0;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) {
      continue;
    }
    const double likely = number(json, "likely"), measured = number(json, "measured");
    if (likely > 0 && measured > 0) {
      errors.push_back(100 * std::abs(likely / measured - 1));
      inside += number(json, "low") <= measured && measured <= number(json, "high") ? 1 : 0;
    }
  }
  return errors.empty()
             ? ""
             : fmt::format(
                   "Score of all predictions here so far: {}; the measured gain was inside the "
                   "interval in {}; error: median {:.1f} %\n",
                   counted(static_cast<std::int64_t>(errors.size()), "prediction"), inside, median_of(errors));
}

}  // namespace stoker::study
