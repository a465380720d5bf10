// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/top/run_tail.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker::study {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::streamoff kFarBack = 1 << 20;  // of a long log, only the end is read at the first look
constexpr double kKeep = 0.9;                 // of an average over steps

std::optional<double> real(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? printable(found->get<std::string>()) : "";
}

void average(double& mean, double value) { mean = mean == 0 ? value : kKeep * mean + (1 - kKeep) * value; }

}  // namespace

const RunState& RunTail::look() {
  std::ifstream file(folder_ / "metrics.jsonl", std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  if (size < read_) {
    read_ = 0;
    state_ = {};
  }
  std::string begin;
  if (read_ == 0 && size > kFarBack) {
    file.seekg(0);
    std::getline(file, begin);  // says what the run is
    line(begin);
    read_ = size - kFarBack;
  }
  file.seekg(read_);
  std::string content(static_cast<std::size_t>(size - read_), '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  std::size_t start = 0;
  for (std::size_t end; (end = content.find('\n', start)) != content.npos; start = end + 1) {
    line(std::string_view(content).substr(start, end - start));
  }
  read_ += static_cast<std::streamoff>(start);  // an incomplete line waits for its rest
  return state_;
}

void RunTail::step(const Json& event) {
  state_.step = static_cast<std::int64_t>(real(event, "step").value_or(0));
  const double seconds = real(event, "seconds").value_or(0), samples = real(event, "samples").value_or(0);
  if (seconds > 0) {
    average(state_.step_seconds, seconds);
    average(state_.samples, samples / seconds);
    remember(state_.speeds, samples / seconds);
  }
  const auto scalars = event.find("scalars");
  if (scalars != event.end() && scalars->is_object()) {
    state_.loss = real(*scalars, "loss");
    if (state_.loss) {
      remember(state_.losses, *state_.loss);
    }
  }
}

void RunTail::line(std::string_view words) {
  const Json event = Json::parse(words, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) {
    return;
  }
  const std::string kind = text(event, "event");
  if (kind == "step") {
    step(event);
  } else if (kind == "run_started") {
    state_.title = text(event, "title");
    state_.last_step = static_cast<std::int64_t>(real(event, "last_step").value_or(0));
    state_.outcome.clear();
  } else if (kind == "evaluated" && event.contains("metrics") && event["metrics"].is_object()) {
    for (const auto& [name, value] : event["metrics"].items()) {
      if (value.is_number()) {
        state_.evaluation = fmt::format("{} {} {:.4g}", text(event, "split"), printable(name), value.get<double>());
        break;
      }
    }
  } else if (kind == "monitor" && event.contains("figures") && event["figures"].is_object()) {
    state_.monitor.clear();
    for (const auto& [name, value] : event["figures"].items()) {
      if (value.is_number()) {
        state_.monitor.emplace(name, value.get<double>());
      }
    }
  } else if (kind == "anatomy" && event.contains("phases") && event["phases"].is_array()) {
    state_.phases.clear();
    state_.phase_seconds = real(event, "seconds").value_or(0);
    for (const Json& phase : event["phases"]) {
      if (phase.is_object()) {
        state_.phases.emplace_back(text(phase, "name"), real(phase, "seconds").value_or(0));
      }
    }
  } else if (kind == "finding") {
    state_.finding = text(event, "text");
  } else if (kind == "run_finished") {
    state_.outcome = text(event, "outcome");
  }
}

}  // namespace stoker::study
