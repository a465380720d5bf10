// SPDX-License-Identifier: Apache-2.0
// The critical path of a trace: the longest chain of work in which each piece waited for the one before, through the
// host's threads and the devices' streams. Making a piece on it shorter makes the whole shorter, until another chain is
// the longest. Thread-safe: no state.
//
// The graph is that of HolisticTraceAnalysis (hta/analyzers/critical_path_analysis.py), so that lengths can be
// compared: a node per begin and end of a call, kernel or copy; edges of calls follow their nesting; a call that blocks
// for the device counts nothing itself, but ends after the work that it waited for; a kernel begins after its launch if
// its stream was empty, else after the work before it on its stream; events between streams are edges, too. Time of a
// thread between two outermost calls counts nothing, since nobody knows what it was.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/observe/trace/facts/links.h"
#include "stoker/observe/trace/trace.h"

namespace stoker::observe::trace {

enum class PathPart : std::uint8_t {
  kHost,         // in a call of the host
  kDevice,       // in a kernel, copy or fill
  kLaunchDelay,  // from the launch to the begin of the work
  kQueueDelay,   // between two pieces of work of a stream
  kOrder,        // nothing; one outermost call comes after another
  kWait,         // nothing; one waits for the other
};
inline constexpr std::size_t kPathParts = 6;
[[nodiscard]] std::string_view path_part_name(PathPart part);

struct PathEdge {
  PathPart part = PathPart::kHost;
  std::int64_t begin = 0, end = 0;  // ns of the two nodes; end < begin if the trace's clocks disagree
  std::int64_t counted = 0;         // ns; what it adds to the length
  std::uint32_t event = kNone;      // that the time belongs to
};

struct CriticalPath {
  std::vector<PathEdge> edges;                   // in order
  std::int64_t length = 0;                       // ns; sum of what the edges count
  std::int64_t host = 0, device = 0, delay = 0;  // of these
  // Time between the first and the last node that no edge counts: the program outside recorded calls.
  std::int64_t uncounted = 0;
  bool found = false;  // false: the graph has a circle, or the window holds no calls
};

// What HolisticTraceAnalysis leaves out; without all of it, paths of CUDA programs are as long as its own.
struct PathRules {
  // Work of a stream begins after the work before it, also if it was launched later than that ended.
  bool stream_order = true;
  // In a trace without records of waiting, a synchronize call ends after all work that had ended by then.
  bool inferred_waits = true;
  // Work whose launch was not recorded takes part.
  bool unlaunched_work = true;
  // Work on an empty stream waits for its launch, also if more was launched before it began.
  bool every_launch = true;
};
inline constexpr PathRules kRecordedEdges{
    .stream_order = false, .inferred_waits = false, .unlaunched_work = false, .every_launch = false};

// Of the calls that begin in a window, and of what they launched.
[[nodiscard]] CriticalPath critical_path(const Trace& trace, const Links& links, Interval window, PathRules rules = {});

}  // namespace stoker::observe::trace
