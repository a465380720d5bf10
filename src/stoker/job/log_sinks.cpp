// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/log_sinks.h"

#include <cstdlib>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/http_client.h"
#include "stoker/io/loggers/mlflow.h"
#include "stoker/io/loggers/prometheus.h"
#include "stoker/io/loggers/wandb.h"
#include "stoker/train/log_targets.h"

namespace stoker::job {
namespace {

std::string mlflow_address(const std::string& asked) {
  if (!asked.empty()) {
    return asked;
  }
  const char* const address = std::getenv("MLFLOW_TRACKING_URI");
  if (address == nullptr || !train::is_server_address(address)) {
    fail<ConfigError>(
        "job.log_sinks",
        "log=mlflow needs the address of a server, MLFLOW_TRACKING_URI {}; set log=mlflow:http://HOST:5000",
        address == nullptr ? "is not set" : "must be http://HOST:PORT, without a password");
  }
  return address;
}

}  // namespace

void check_log_targets(const std::string& log) {
  if (const auto targets = train::parse_log_targets(log); targets && targets->mlflow) {
    static_cast<void>(mlflow_address(*targets->mlflow));
    static_cast<void>(io::HttpClient());
  }
}

void add_log_sinks(io::EventBus& bus, const RunFolder& run, const train::Plan& plan) {
  const train::LogTargets targets = train::parse_log_targets(plan.log).value_or(train::LogTargets{});
  if (targets.mlflow) {
    bus.add(std::make_unique<io::MlflowLog>(run.path(), mlflow_address(*targets.mlflow), bus));
  }
  if (targets.wandb) {
    bus.add(std::make_unique<io::WandbLog>(run.path(), bus));
  }
  if (targets.prometheus) {
    bus.add(std::make_unique<io::PrometheusEndpoint>(*targets.prometheus, bus));
  }
}

}  // namespace stoker::job
