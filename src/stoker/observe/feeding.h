// SPDX-License-Identifier: Apache-2.0
// Explains whether and why data comes late: finds the bottleneck from the times of the stages in a window, predicts the
// effect of more cores or threads, and makes a sentence for people. Functions without state.
#pragma once

#include <string>

#include "stoker/core/source_figures.h"

namespace stoker::observe {

// Share of the time spent waiting for data; less is normal hand-over and the first batch of a short window.
inline constexpr double kStarved = 0.05;

struct Feeding {
  double starved = 0;    // share of the time spent waiting for data
  bool late = false;     // worth reporting: starved is above normal hand-over, and data is the bottleneck
  std::string stage;     // the bottleneck: "JPEG decode", "copy", "step"; "one sample" for a single slow sample
  double share = 0;      // share in the time of its station: loader threads, copy, or consumer thread
  double rate = 0;       // samples per second
  double fed = 0;        // samples per second that the consumer would take without waiting; 0: it only waited
  int more_cores = 0;    // additional cores needed for that, if the loader is limited by computing
  int more_threads = 0;  // additional threads needed for that, if the loader's threads sleep
  double predicted = 0;  // samples per second with these
  // "data-starved 18 %: JPEG decode; with 3 more cores the loader would reach 1,450 samples/s"
  std::string words;
};

// Predicted samples per second of a loader with these measurements on the given threads and cores: each sample uses the
// time of its stages on a thread, and its CPU time on a core. Valid if cores do not slow each other down.
[[nodiscard]] double loader_rate(const core::SourceFigures& source, int threads, int cores);

// If there is almost no waiting, or a pause (log, checkpoint, evaluation) is longer than the waiting, names the
// consumer's longest stage. Otherwise the bottleneck is the station that works for the largest share of the time, and
// in it the longest stage. If no station is busy and one sample took as long as many, that sample is the cause, since
// batches are delivered in order.
[[nodiscard]] Feeding explain(const core::Fed& figures);

}  // namespace stoker::observe
