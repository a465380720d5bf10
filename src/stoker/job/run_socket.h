// SPDX-License-Identifier: Apache-2.0
// A Unix socket in the folder of a run that trains, by which `stoker profile RUN` reaches it: a line of JSON asks,
// lines of JSON tell the progress (docs/observe-profile.md). Only this user can open it; nothing listens on a network.
// Made by Run; its own thread sleeps until someone connects. ask_run() is the other end, for any process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "stoker/job/profile_orders.h"
#include "stoker/job/request.h"

namespace stoker::job {

inline constexpr const char* kRunSocket = "run.sock";  // in the run folder

class RunSocket {
 public:
  // Replaces a socket that a killed process left. Where there can be none (some network file systems, another process
  // listens, the system gives no descriptor or no thread), it does nothing: a run is not worse without.
  // patience: seconds for a client's request.
  RunSocket(std::filesystem::path run, ProfileOrders& orders, double patience = 5);
  // Removes the socket.
  ~RunSocket();
  RunSocket(const RunSocket&) = delete;
  RunSocket& operator=(const RunSocket&) = delete;

  [[nodiscard]] bool listens() const { return thread_.joinable(); }

 private:
  // The socket and its file, which goes with it.
  struct Listener {
    explicit Listener(std::filesystem::path folder);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    std::filesystem::path run;
    int wake = -1;    // readable when the thread must end
    int socket = -1;  // -1: there is none
  };
  void serve(const std::stop_token& stop);
  void accept_one(const std::stop_token& stop);
  void answer(int client, const std::stop_token& stop);

  ProfileOrders& orders_;
  double patience_;
  std::optional<Listener> listener_;
  std::jthread thread_;  // the last: it uses the others
};

// Asks for a profile of the next steps and waits for it; returns the path of the record. Empty if no process of the run
// listens. say: progress. IoError with the run's reason if it takes none, or goes away.
[[nodiscard]] std::optional<std::filesystem::path> ask_run(const std::filesystem::path& run, std::int64_t steps,
                                                           const Say& say);

}  // namespace stoker::job
