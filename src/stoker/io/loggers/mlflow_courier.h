// SPDX-License-Identifier: Apache-2.0
// Delivers the values of a run to an MLflow server that may be down, slow or faulty: a bounded queue, later attempts,
// and a file for what is left at the end. The part of the MLflow sink that talks to the server. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>

#include "stoker/core/events.h"
#include "stoker/io/loggers/mlflow_server.h"

namespace stoker::io {

// What a run is called on the server, and what is sent once.
struct MlflowRun {
  std::string experiment, name;
  std::int64_t start = 0;  // milliseconds since 1970
  MlflowPairs tags, parameters;
};

class MlflowCourier {
 public:
  MlflowCourier(const std::filesystem::path& run_folder, const std::string& address, core::EventEmitter& findings);

  // Continues the run of mlflow.json if there is one on this server, and takes up mlflow-pending.jsonl.
  void begin(MlflowRun run);
  void add(MlflowPoint point);
  // Delivers if something waits and it is time to: for about a second, or one call. quiet: nothing else is to do.
  void deliver_when_due(bool quiet);
  // Delivers for up to a minute and while calls succeed, then keeps the rest in the run folder. status: as in
  // MlflowServer::update().
  void finish(const std::string& status, MlflowPairs tags);

 private:
  [[nodiscard]] bool all_done() const;
  void deliver(double seconds);
  MlflowResult next_call();
  MlflowResult open_run();
  MlflowResult send_points();
  MlflowResult end_run();
  void failed(const MlflowFailure& failure);
  void take_up_pending();
  void keep_pending();
  void say(const std::string& text);

  std::filesystem::path folder_;
  core::EventEmitter& findings_;
  MlflowServer server_;
  MlflowRun run_;
  std::string id_;     // of the run on the server; empty: none yet
  bool open_ = false;  // the server knows that the run runs
  std::deque<MlflowPoint> points_;
  std::int64_t left_out_ = 0;  // that the queue had no room for
  std::string final_status_;   // empty: not at the end, or delivered
  std::int64_t end_ = 0;       // milliseconds since 1970
  double next_ = 0;            // time of the next attempt, by now_s()
  double pause_ = 0;           // after a failure; 0: the last call succeeded
  std::string reason_;         // of the last failure
  bool said_failure_ = false, said_refusal_ = false;
};

}  // namespace stoker::io
