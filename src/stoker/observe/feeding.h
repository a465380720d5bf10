// SPDX-License-Identifier: Apache-2.0
// Why data comes late, or that it does not: from what the stages of a stretch of time took to the one that holds the
// others up, what more cores or threads would bring, and a sentence for people. Functions without state.
#pragma once

#include <string>

#include "stoker/core/source_figures.h"

namespace stoker::observe {

struct Feeding {
  double starved = 0;    // share of the time that was waited for data
  bool late = false;     // worth saying: starved is more than handing over takes, and data is what held the others up
  std::string stage;     // that holds the others up: "JPEG decode", "copy", "step"; "one sample" where a single one did
  double share = 0;      // of the time of its station: loader threads, copy, or the thread that takes the batches
  double rate = 0;       // samples a second
  double fed = 0;        // samples a second that the consumer would take if it never waited; 0: it did nothing but wait
  int more_cores = 0;    // that it takes for that, if computing is what the loader lacks
  int more_threads = 0;  // that it takes for that, if its threads sleep; cores suffice then
  double predicted = 0;  // samples a second with those
  std::string words;     // "data-starved 18 %: JPEG decode; 3 more cores would feed 1,450 samples/s"
};

// Samples a second that a loader with these figures could make on so many threads and cores: each sample takes its
// stages' time from a thread, and of that its CPU time from a core. Holds as long as cores do not slow each other down.
[[nodiscard]] double loader_rate(const core::SourceFigures& source, int threads, int cores);

// Where hardly any time is waited, or more goes into a pause (a log, a checkpoint, an evaluation) than into waiting,
// the consumer's longest stage is named. Else the station that is at work for the largest share of the time holds the
// others up; in it, its longest stage. Where none is, and one sample took as long as many, that one did: batches come
// in order.
[[nodiscard]] Feeding explain(const core::Fed& figures);

}  // namespace stoker::observe
