// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/run_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "stoker/base/counted.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/json_fields.h"
#include "stoker/base/start_thread.h"
#include "stoker/job/socket_lines.h"
#include "stoker/train/profile_steps.h"

namespace stoker::job {
namespace {

using Json = nlohmann::ordered_json;
using Progress = ProfileOrders::Progress;
constexpr std::string_view kWhere = "job.profile";
constexpr double kLookEvery = 0.5;  // seconds between looks whether the other end is still there

// An object's destructor allocates (nlohmann), so a thread that must survive without memory writes text.
std::string text_of(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string line_of(const Progress& progress) {
  switch (progress.state) {
    case Progress::State::kWaiting: return R"({"state":"waiting"})";
    case Progress::State::kRecording:
      return fmt::format(R"({{"state":"recording","done":{},"steps":{}}})", progress.done, progress.steps);
    case Progress::State::kDone: return fmt::format(R"({{"state":"done","record":{}}})", text_of(progress.text));
    case Progress::State::kFailed: break;
  }
  return fmt::format(R"({{"state":"failed","text":{}}})", text_of(progress.text));
}

std::string refusal(const std::string& why) { return line_of({.state = Progress::State::kFailed, .text = why}); }

// The steps that a line asks for; 0: it asks for nothing that is known.
std::int64_t asked_steps(const std::string& line) {
  constexpr std::string_view kKey = "\"profile\"";
  std::string_view rest = line;
  const auto skip = [&rest](std::string_view word) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r"), rest.size()));
    const bool found = rest.starts_with(word);
    rest.remove_prefix(found ? word.size() : 0);
    return found;
  };
  std::int64_t steps = 0;
  if (!skip("{") || !skip(kKey) || !skip(":")) {
    return 0;
  }
  (void)skip("");
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), steps);
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  const bool whole = error == std::errc() && skip("}") && skip("") && rest.empty();
  return whole && steps >= 1 && steps <= train::kMostProfileSteps ? steps : 0;
}

}  // namespace

RunSocket::Listener::Listener(std::filesystem::path folder)
    : run(std::move(folder)), wake(::eventfd(0, EFD_CLOEXEC)), socket(wake < 0 ? -1 : listen_in(run, kRunSocket)) {}

RunSocket::Listener::~Listener() {
  if (socket >= 0) {
    std::error_code ignored;
    std::filesystem::remove(run / kRunSocket, ignored);
    ::close(socket);
  }
  if (wake >= 0) {
    ::close(wake);
  }
}

RunSocket::RunSocket(std::filesystem::path run, ProfileOrders& orders, double patience)
    : orders_(orders), patience_(patience) {
  try {
    if (listener_.emplace(std::move(run)).socket >= 0) {
      thread_ = start_thread(kWhere, "waits for requests for a profile",
                             [this](const std::stop_token& stop) { serve(stop); });
    }
  } catch (const std::exception&) {
  }
  if (!thread_.joinable()) {
    listener_.reset();
  }
}

RunSocket::~RunSocket() {
  try {
    orders_.failed("the training has ended");
  } catch (const std::exception&) {  // std::bad_alloc; the client sees that its socket closes
  }
  if (thread_.joinable()) {
    thread_.request_stop();
    (void)::eventfd_write(listener_->wake, 1);
    thread_.join();
  }
}

void RunSocket::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> both = {{{listener_->socket, POLLIN, 0}, {listener_->wake, POLLIN, 0}}};
    if (::poll(both.data(), both.size(), -1) > 0 && both[0].revents != 0 && !stop.stop_requested()) {
      accept_one(stop);
    }
  }
}

// Without a descriptor or memory for it, a client waits or is sent away, and the training goes on.
void RunSocket::accept_one(const std::stop_token& stop) {
  const int client = ::accept4(listener_->socket, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) {
    pollfd wake{listener_->wake, POLLIN, 0};
    (void)::poll(&wake, 1, static_cast<int>(1e3 * kLookEvery));  // the socket stays readable: do not spin
    return;
  }
  try {
    answer(client, stop);
  } catch (...) {  // std::bad_alloc; answer() has closed the client
  }
}

// One client at a time; the next ones wait in the listener's queue.
void RunSocket::answer(int client, const std::stop_token& stop) {
  SocketLines lines(client, listener_->wake);
  const std::int64_t steps = asked_steps(lines.get(patience_).value_or(""));
  if (steps < 1) {
    lines.put(
        refusal(fmt::format("the request must be {{\"profile\": N}} with N from 1 to {}", train::kMostProfileSteps)));
    return;
  }
  if (!orders_.place(steps)) {
    lines.put(refusal("a profile is being taken already; try again when it is done"));
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
  lines.put(fmt::format(R"({{"profile": {}}})", steps));
  constexpr double kLong = 24 * 3600;  // an evaluation may come first
  while (const auto line = lines.get(kLong)) {
    const Json json = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
    const std::string state = text_at(json, "state");
    if (state == "waiting") {
      say("asked the run; its next steps will be recorded");
    } else if (state == "recording") {
      say(fmt::format("recorded {} of {}", integer_at(json, "done"), counted(integer_at(json, "steps"), "step")));
    } else if (state == "done" && !text_at(json, "record").empty()) {
      return run / text_at(json, "record");
    } else {
      const std::string why = state == "failed" ? text_at(json, "text") : *line;
      fail<IoError>(kWhere, "the run takes no profile: {}", printable(why));
    }
  }
  fail<IoError>(kWhere, "the run ended before it had written the profile");
}

}  // namespace stoker::job
