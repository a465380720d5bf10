// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/mlflow_courier.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/json_fields.h"
#include "stoker/base/utc.h"
#include "stoker/io/loggers/growing_file.h"
#include "stoker/io/loggers/log_file.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostWaiting = 200'000;          // values, about 40 MB
constexpr double kEach = 1;                            // seconds between deliveries
constexpr double kFirstPause = 1, kLongestPause = 30;  // seconds after a failure
constexpr std::int64_t kPatience = 10'000;             // milliseconds for a call
constexpr double kLastSeconds = 60;                    // to deliver what is left at the end, while calls succeed
constexpr const char* kRunFile = "mlflow.json";
constexpr const char* kPendingFile = "mlflow-pending.jsonl";

// For a call; MLflow's own variable has seconds.
std::chrono::milliseconds patience() {
  const char* const text = std::getenv("MLFLOW_HTTP_REQUEST_TIMEOUT");
  const double seconds = text == nullptr ? 0 : std::strtod(text, nullptr);
  return std::chrono::milliseconds(seconds > 0.001 && seconds < 1e6 ? static_cast<std::int64_t>(seconds * 1000)
                                                                    : kPatience);
}

// Numbers that JSON lacks are text.
std::optional<MlflowPoint> point_from(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  try {
    const nlohmann::json& value = json.at("value");
    return MlflowPoint{json.at("key").get<std::string>(),
                       value.is_string() ? std::strtod(value.get<std::string>().c_str(), nullptr) : value.get<double>(),
                       json.at("timestamp").get<std::int64_t>(), json.at("step").get<std::int64_t>()};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

// The ID in mlflow.json if it is of this server.
std::string known_run(const fs::path& file, const std::string& address) {
  if (std::error_code error; !fs::exists(file, error)) {
    return "";
  }
  const auto json = nlohmann::json::parse(read_text(file), nullptr, /*allow_exceptions=*/false);
  // Empty if the file is damaged.
  return text_at(json, "address") == address ? text_at(json, "run_id") : "";
}

}  // namespace

MlflowCourier::MlflowCourier(const fs::path& run_folder, const std::string& address, core::EventEmitter& findings)
    : folder_(run_folder), findings_(findings), server_(address) {
  server_.set_patience(patience());
}

void MlflowCourier::say(const std::string& text) {
  findings_.emit(core::Finding{fmt::format("MLflow at {} {}", printable(server_.address()), text)});
}

void MlflowCourier::begin(MlflowRun run) {
  run_ = std::move(run);
  id_ = known_run(folder_ / kRunFile, server_.address());
  take_up_pending();
}

void MlflowCourier::take_up_pending() {
  std::int64_t damaged = 0;
  if (std::error_code error; fs::exists(folder_ / kPendingFile, error)) {
    each_line(folder_ / kPendingFile, [&](std::string_view line) {
      const std::optional<MlflowPoint> point = point_from(line);
      point ? points_.push_back(*point) : void(++damaged);
      return true;
    });
  }
  if (damaged > 0) {
    say(fmt::format("does not get {} of {} that cannot be read; metrics.jsonl has the values", counted(damaged, "line"),
                    kPendingFile));
  }
}

void MlflowCourier::add(MlflowPoint point) {
  if (points_.size() < kMostWaiting) {
    points_.push_back(std::move(point));
  } else {
    ++left_out_;
  }
}

bool MlflowCourier::all_done() const {
  return open_ && run_.parameters.empty() && points_.empty() && final_status_.empty();
}

void MlflowCourier::deliver_when_due(bool quiet) {
  if ((now_s() >= next_ || (quiet && pause_ == 0)) && !all_done()) {
    deliver(kEach);
  }
}

// Calls for these seconds, at least once.
void MlflowCourier::deliver(double seconds) {
  const double end = now_s() + seconds;
  next_ = end;
  while (!all_done() && now_s() < end) {
    if (const MlflowResult failure = next_call()) {
      failed(*failure);
      return;
    }
    pause_ = 0;
  }
}

void MlflowCourier::failed(const MlflowFailure& failure) {
  pause_ = pause_ == 0 ? kFirstPause : std::min(2 * pause_, kLongestPause);
  next_ = now_s() + pause_;
  reason_ = failure.text;
  if (!std::exchange(said_failure_, true)) {
    say(fmt::format("does not take the figures of this run now ({}); the run goes on, and they are delivered later",
                    reason_));
  }
}

MlflowResult MlflowCourier::next_call() {
  if (!open_) {
    return open_run();
  }
  if (!run_.parameters.empty()) {
    const auto some = run_.parameters.begin() +
                      static_cast<std::ptrdiff_t>(std::min(run_.parameters.size(), MlflowServer::kMostPairs));
    MlflowResult result = server_.log(id_, {}, {run_.parameters.begin(), some}, {});
    if (!result) {
      run_.parameters.erase(run_.parameters.begin(), some);
    }
    return result;
  }
  return points_.empty() ? end_run() : send_points();
}

// A run that the server no longer has is made again.
MlflowResult MlflowCourier::open_run() {
  if (!id_.empty()) {
    MlflowResult result = server_.update(id_, "RUNNING", 0);
    if (!result) {
      open_ = true;
      run_.parameters.clear();  // the server has them, and takes no others
    } else if (result->refused) {
      id_.clear();
      return std::nullopt;
    }
    return result;
  }
  std::string experiment;
  if (MlflowResult result = server_.find_experiment(run_.experiment, experiment)) {
    return result;
  }
  if (MlflowResult result = server_.create_run(experiment, run_.name, run_.start, run_.tags, id_)) {
    return result;
  }
  open_ = true;
  const nlohmann::ordered_json json = {
      {"format", 1}, {"address", server_.address()}, {"experiment_id", experiment}, {"run_id", id_}};
  write_file_atomically(folder_ / kRunFile, json.dump(2) + "\n");
  return std::nullopt;
}

MlflowResult MlflowCourier::send_points() {
  const std::size_t count = std::min(points_.size(), MlflowServer::kMostPoints);
  const auto end = points_.begin() + static_cast<std::ptrdiff_t>(count);
  const std::vector<MlflowPoint> some(points_.begin(), end);
  const MlflowResult result = server_.log(id_, some, {}, {});
  if (result && !result->refused) {
    return result;
  }
  if (result && !std::exchange(said_refusal_, true)) {
    say(fmt::format("refused {} ({}); metrics.jsonl has them", counted(static_cast<std::int64_t>(count), "value"),
                    result->text));
  }
  points_.erase(points_.begin(), end);
  return std::nullopt;
}

MlflowResult MlflowCourier::end_run() {
  if (MlflowResult result = server_.log(id_, {}, {}, run_.tags)) {
    return result;
  }
  MlflowResult result = server_.update(id_, final_status_, end_);
  if (!result) {
    final_status_.clear();
  }
  return result;
}

void MlflowCourier::finish(const std::string& status, MlflowPairs tags) {
  final_status_ = status;
  run_.tags = std::move(tags);
  end_ = unix_ms();
  deliver(kLastSeconds);
  if (pause_ == 0) {  // calls succeed, but there are too many
    reason_ = fmt::format("more than {:.0f} s of calls", kLastSeconds);
  }
  keep_pending();
}

void MlflowCourier::keep_pending() {
  const fs::path file = folder_ / kPendingFile;
  std::error_code error;
  if (all_done()) {
    fs::remove(file, error);
  } else {
    std::string text;
    for (const MlflowPoint& point : points_) {
      text += mlflow_json(point) + '\n';
    }
    write_file_atomically(file, text);
    say(fmt::format("did not take the end of this run ({}); {} kept in {}; deliver with: stoker resume {}", reason_,
                    points_.size() == 1 ? "1 value is" : fmt::format("{} values are", points_.size()),
                    printable(file.native()), printable(folder_.native())));
  }
  if (left_out_ > 0) {
    say(fmt::format("never got {} of this run; metrics.jsonl has them", counted(left_out_, "value")));
  }
}

}  // namespace stoker::io
