// SPDX-License-Identifier: Apache-2.0
// The calls of MLflow's REST interface 2.0 that a run needs. Used by the MLflow sink. One thread; each call waits for
// the server.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stoker/io/http_client.h"

namespace stoker::io {

struct MlflowPoint {
  std::string key;
  double value = 0;
  std::int64_t time = 0;  // milliseconds since 1970
  std::int64_t step = 0;
};

using MlflowPairs = std::vector<std::pair<std::string, std::string>>;  // parameters or tags

// Why a call failed. refused: the same call will fail again; otherwise a later one may succeed.
struct MlflowFailure {
  bool refused = false;
  std::string text;  // for people: "503 Service Unavailable ..."
};
using MlflowResult = std::optional<MlflowFailure>;  // empty: done

// A point as MLflow's JSON object, which is also the format of mlflow-pending.jsonl.
[[nodiscard]] std::string mlflow_json(const MlflowPoint& point);

class MlflowServer {
 public:
  // address: http(s)://HOST[:PORT][/PATH]. The user or token of MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD,
  // or MLFLOW_TRACKING_TOKEN, is sent with each call if the address is that of MLFLOW_TRACKING_URI: an address may come
  // from a plan that somebody else wrote. IoError if there is no libcurl.
  explicit MlflowServer(std::string address);

  // How long a call may take from now on.
  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }
  [[nodiscard]] const std::string& address() const { return address_; }

  // The experiment of this name, made if there is none.
  MlflowResult find_experiment(const std::string& name, std::string& id);
  MlflowResult create_run(const std::string& experiment, const std::string& name, std::int64_t start_ms,
                          const MlflowPairs& tags, std::string& id);
  // At most kMostPoints points, and kMostPairs pairs of each kind.
  static constexpr std::size_t kMostPoints = 800, kMostPairs = 100;
  MlflowResult log(const std::string& run, std::span<const MlflowPoint> points, const MlflowPairs& parameters,
                   const MlflowPairs& tags);
  // status: "RUNNING", "FINISHED", "FAILED", "KILLED". end_ms: 0 for none.
  MlflowResult update(const std::string& run, std::string_view status, std::int64_t end_ms);

 private:
  MlflowResult call(const std::string& method, const std::string& path, std::string body, HttpReply& reply);

  std::string address_;
  std::vector<std::string> headers_;
  bool withheld_ = false;  // credentials, since they are for another server
  std::chrono::milliseconds patience_{10'000};
  HttpClient client_;
};

}  // namespace stoker::io
