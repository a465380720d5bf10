// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/prometheus.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/io/http_server.h"
#include "stoker/io/loggers/run_metrics.h"

namespace stoker::io {
namespace {

constexpr const char* kType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

}  // namespace

struct PrometheusEndpoint::State {
  State(std::uint16_t wanted, core::EventEmitter& emitter) : port(wanted), findings(emitter) {}

  // Prometheus asks on the server's thread.
  HttpPage page(const std::string& path) {
    if (path != "/metrics") {
      return {};
    }
    const std::lock_guard lock(mutex);
    return {kType, metrics.text(clock_s(CLOCK_REALTIME))};
  }
  void start() {
    server.emplace(port, [this](const std::string& path) { return page(path); });
    findings.emit(core::Finding{fmt::format("metrics for Prometheus: http://127.0.0.1:{}/metrics", server->port())});
  }

  std::uint16_t port;
  core::EventEmitter& findings;
  std::mutex mutex;  // guards metrics
  RunMetrics metrics;
  std::optional<HttpServer> server;  // last: its thread uses the others
};

PrometheusEndpoint::PrometheusEndpoint(std::uint16_t port, core::EventEmitter& findings)
    : state_(std::make_unique<State>(port, findings)) {}
PrometheusEndpoint::~PrometheusEndpoint() = default;

void PrometheusEndpoint::on(const core::Event& event) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->metrics.on(event);
  }
  if (!state_->server) {
    state_->start();
  }
}

}  // namespace stoker::io
