// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/run_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/start_thread.h"
#include "stoker/job/socket_lines.h"
#include "stoker/train/profile_steps.h"

namespace stoker::job {
namespace {

using Json = nlohmann::ordered_json;
using Progress = ProfileOrders::Progress;
constexpr std::string_view kWhere = "job.profile";
constexpr double kPatience = 5;     // seconds for the other end's first line
constexpr double kLookEvery = 0.5;  // seconds between looks whether the other end is still there

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string line_of(const Progress& progress) {
  switch (progress.state) {
    case Progress::State::kWaiting: return text_of({{"state", "waiting"}});
    case Progress::State::kRecording:
      return text_of({{"state", "recording"}, {"done", progress.done}, {"steps", progress.steps}});
    case Progress::State::kDone: return text_of({{"state", "done"}, {"record", progress.text}});
    case Progress::State::kFailed: break;
  }
  return text_of({{"state", "failed"}, {"text", progress.text}});
}

// The steps that a line asks for; 0: it asks for nothing that is known.
std::int64_t asked_steps(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("profile") || !json["profile"].is_number_integer()) {
    return 0;
  }
  const auto steps = json["profile"].get<std::int64_t>();
  return steps > train::kMostProfileSteps ? 0 : steps;
}

}  // namespace

RunSocket::RunSocket(std::filesystem::path run, ProfileOrders& orders)
    : run_(std::move(run)), orders_(orders), listener_(listen_in(run_, kRunSocket)) {
  if (listener_ < 0) {
    return;
  }
  wake_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ =
      start_thread(kWhere, "listens for wishes of a profile", [this](const std::stop_token& stop) { serve(stop); });
}

RunSocket::~RunSocket() {
  orders_.failed("the training has ended");
  if (listener_ < 0) {
    return;
  }
  thread_.request_stop();
  (void)::eventfd_write(wake_, 1);
  thread_.join();
  std::error_code ignored;
  std::filesystem::remove(run_ / kRunSocket, ignored);
  ::close(listener_);
  ::close(wake_);
}

void RunSocket::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> both = {{{listener_, POLLIN, 0}, {wake_, POLLIN, 0}}};
    if (::poll(both.data(), both.size(), -1) > 0 && (both[0].revents & POLLIN) != 0 && !stop.stop_requested()) {
      if (const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); client >= 0) {
        answer(client, stop);
      }
    }
  }
}

// One client at a time; the next ones wait in the listener's queue.
void RunSocket::answer(int client, const std::stop_token& stop) {
  SocketLines lines(client);
  const std::int64_t steps = asked_steps(lines.get(kPatience).value_or(""));
  if (steps < 1) {
    lines.put(text_of({{"state", "failed"},
                       {"text", fmt::format("the request must be {{\"profile\": N}} with N from 1 to {}",
                                            train::kMostProfileSteps)}}));
    return;
  }
  if (!orders_.place(steps)) {
    lines.put(text_of({{"state", "failed"}, {"text", "a profile is being taken already; try again when it is done"}}));
    return;
  }
  bool told = true;
  for (std::int64_t version = 0; told && !lines.closed();) {
    const Progress progress = orders_.wait(version, kLookEvery);
    const bool newer = std::exchange(version, progress.version) != progress.version;
    told = !newer || lines.put(line_of(progress));
    if (progress.state == Progress::State::kDone || progress.state == Progress::State::kFailed) {
      return;
    }
    if (stop.stop_requested()) {
      orders_.failed("the training has ended");
    }
  }
}

std::optional<std::filesystem::path> ask_run(const std::filesystem::path& run, std::int64_t steps, const Say& say) {
  const int socket = connect_in(run, kRunSocket);
  if (socket < 0) {
    return std::nullopt;
  }
  SocketLines lines(socket);
  lines.put(text_of({{"profile", steps}}));
  constexpr double kLong = 24 * 3600;  // an evaluation may come first
  while (const auto line = lines.get(kLong)) {
    const Json json = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
    const std::string state = json.is_object() ? json.value("state", "") : "";
    if (state == "waiting") {
      say("asked the run; its next steps will be recorded");
    } else if (state == "recording") {
      say(fmt::format("recorded {} of {}", json.value("done", 0), counted(json.value("steps", 0), "step")));
    } else if (state == "done") {
      return run / json.value("record", "");
    } else {
      fail<IoError>(kWhere, "the run takes no profile: {}",
                    printable(json.is_object() ? json.value("text", "") : *line));
    }
  }
  fail<IoError>(kWhere, "the run ended before it had written the profile");
}

}  // namespace stoker::job
