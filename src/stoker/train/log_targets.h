// SPDX-License-Identifier: Apache-2.0
// Tools of other people that a run reports to besides its own folder: the value of the option `log`. Read by the list
// of options and by job, which makes the sinks. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::train {

struct LogTargets {
  std::optional<std::string> mlflow;  // address of the server; empty text: MLFLOW_TRACKING_URI
  bool wandb = false;
  std::optional<std::uint16_t> prometheus;  // port; 0: a free one
};

// What log= accepts, for help and errors.
inline constexpr std::string_view kLogTargetsExpected =
    "none, or a list such as mlflow:http://HOST:5000,wandb,prometheus:9400 (mlflow alone: the server of "
    "MLFLOW_TRACKING_URI; no password in an address: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, which "
    "go "
    "to the server of MLFLOW_TRACKING_URI only)";

// Empty: the text is not such a list.
[[nodiscard]] std::optional<LogTargets> parse_log_targets(std::string_view text);
[[nodiscard]] bool is_log_targets(std::string_view text);

// Whether MLflow's REST interface can be reached there: http or https, a host, and no password.
[[nodiscard]] bool is_server_address(std::string_view text);

}  // namespace stoker::train
