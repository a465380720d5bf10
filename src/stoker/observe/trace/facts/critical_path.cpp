// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/critical_path.h"

#include <array>

#include "stoker/observe/trace/facts/path_graph.h"

namespace stoker::observe::trace {

std::string_view path_part_name(PathPart part) {
  constexpr std::array<std::string_view, kPathParts> kNames = {"host",        "device", "launch delay",
                                                               "queue delay", "order",  "wait"};
  return kNames[static_cast<std::size_t>(part)];
}

CriticalPath critical_path(const Trace& trace, const Links& links, Interval window, PathRules rules) {
  CriticalPath path;
  const PathGraph graph(trace, links, window, rules);
  const std::vector<PathGraph::Edge> edges = graph.longest();
  path.edges.reserve(edges.size());
  for (const PathGraph::Edge& edge : edges) {
    const std::int64_t counted = graph.counted(edge);
    path.edges.push_back({edge.part, graph.time(edge.from), graph.time(edge.to), counted, edge.event});
    path.length += counted;
    switch (edge.part) {
      case PathPart::kHost: path.host += counted; break;
      case PathPart::kDevice: path.device += counted; break;
      default: path.delay += counted; break;
    }
  }
  path.found = !path.edges.empty();
  if (path.found) {
    path.uncounted = path.edges.back().end - path.edges.front().begin - path.length;
  }
  return path;
}

}  // namespace stoker::observe::trace
