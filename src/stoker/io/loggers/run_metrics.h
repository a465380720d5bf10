// SPDX-License-Identifier: Apache-2.0
// The figures of a run as metrics for Prometheus: takes events, gives text. Used by the Prometheus sink. Not
// thread-safe. docs/formats.md describes the metrics.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stoker/core/events.h"
#include "stoker/io/loggers/open_metrics.h"

namespace stoker::io {

class RunMetrics {
 public:
  RunMetrics();

  void on(const core::Event& event);
  // Of all events so far, in the OpenMetrics format. now: seconds since 1970; figures of the machine that are too old
  // by then are left out.
  [[nodiscard]] std::string text(double now);

 private:
  void take(const core::RunStarted& event);
  void take(const core::StepFinished& event);
  void show(const core::StepFinished& step);
  void show_machine(double now);
  void take(const core::Fed& event);
  void take(const core::Evaluated& event);
  void take(const core::CheckpointSaved& event);
  void take(const core::FaultSurvived& event);
  void take(const core::Finding& event);
  void take(const core::Monitored& event);
  void take(const core::Anatomy& event);
  void take(const core::SlowStep& event);
  template <typename Other>
  void take(const Other&) {}  // nothing to measure

  OpenMetrics metrics_;
  std::vector<std::string> scalars_;  // names
  std::optional<core::StepFinished> newest_;
  std::int64_t samples_ = 0;  // of all steps of this session
  double seconds_ = 0, waited_ = 0;
  struct Pace {
    std::int64_t samples = 0;
    double seconds = 0, waited = 0;
  };
  Pace pace_, known_pace_;  // of the steps of less than a second, and of the second before
  struct Watched {          // a figure of the monitor
    std::string metric;
    Labels labels;
    double value = 0;
    double time = 0;      // of its newest record, seconds since 1970
    double interval = 0;  // seconds between its records
  };
  std::map<std::string, Watched> watched_;  // by the name of the figure
};

}  // namespace stoker::io
