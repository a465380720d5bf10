// SPDX-License-Identifier: Apache-2.0
// The newest figures of a run for Prometheus, which asks for them at http://127.0.0.1:PORT/metrics. A sink of the
// EventBus; called on one thread at a time. docs/formats.md describes the metrics.
#pragma once

#include <cstdint>
#include <memory>

#include "stoker/core/events.h"

namespace stoker::io {

class PrometheusEndpoint final : public core::EventSink {
 public:
  // port: 0 for a free one. findings: receives the address when the run starts. on() throws the IoError of a port that
  // is taken, so that the bus drops this sink and the run continues. Loopback only.
  PrometheusEndpoint(std::uint16_t port, core::EventEmitter& findings);
  ~PrometheusEndpoint() override;

  void on(const core::Event& event) override;
  [[nodiscard]] bool wants_every_step() const override { return true; }  // its counters add them up

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::io
