// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/facts/ranks.h"

#include <algorithm>
#include <map>
#include <set>

namespace stoker::observe::trace {
namespace {

constexpr double kLate = 0.01;  // of the window; less is noise of the network

RankRow row_of(const TraceFacts& facts) {
  RankRow row{.rank = facts.trace.rank, .file = facts.trace.file, .step = facts.mean_step()};
  for (const DeviceFactsOfTrace& device : facts.devices) {
    const DeviceUse& use = device.time.steps;
    row.window += use.total();
    row.busy += use.busy();
    row.compute += use.time(kComputing);
    row.communication += use.time(kCommunicating);
    row.exposed_communication += use.time(kCommunicating) - use.time(kCommunicating | kComputing);
  }
  return row;
}

// A trace's collectives in their order, by the name of the kernel.
using Collectives = std::map<std::string_view, std::vector<Interval>>;

Collectives collectives_of(const Trace& trace) {
  Collectives calls;
  for (const Event& event : trace.events) {
    if (event.on_device() && work_of(event.kind, trace.name(event)) == Work::kCommunication) {
      calls[trace.name(event)].push_back({event.begin, event.end});
    }
  }
  return calls;
}

// A collective that all ranks took part in: its time on each.
using Meeting = std::vector<Interval>;

// Times of ranks are compared only as distances on the clock of each.
RankPath path_of(std::vector<Meeting> meetings, const std::vector<std::unique_ptr<TraceFacts>>& traces) {
  RankPath path{.by_row = std::vector<std::int64_t>(traces.size(), 0)};
  if (meetings.empty()) {
    return path;
  }
  std::ranges::stable_sort(meetings, {}, [](const Meeting& each) { return each.front().end; });
  std::vector<Interval> whole;
  std::vector<std::int64_t> before;  // on each rank, the end of the meeting before
  for (const auto& each : traces) {
    whole.push_back(each->devices.empty() ? Interval{} : each->devices.front().time.whole.window.front());
    before.push_back(whole.back().begin);
  }
  path.length = 0;
  const auto add = [&](const auto& distance) {  // the rank that is farthest from the meeting before
    std::size_t last = 0;
    for (std::size_t r = 1; r < traces.size(); ++r) {
      last = distance(r) > distance(last) ? r : last;
    }
    path.by_row[last] += std::max<std::int64_t>(distance(last), 0);
    path.length += std::max<std::int64_t>(distance(last), 0);
  };
  for (const Meeting& meeting : meetings) {
    add([&](std::size_t r) { return meeting[r].begin - before[r]; });
    const std::int64_t shortest = std::ranges::min(meeting, {}, &Interval::length).length();
    path.in_collectives += shortest;
    path.length += shortest;
    for (std::size_t r = 0; r < traces.size(); ++r) {
      before[r] = std::max(before[r], meeting[r].end);
    }
  }
  add([&](std::size_t r) { return whole[r].end - before[r]; });
  return path;
}

std::vector<Meeting> match(RanksFacts& facts, const std::vector<Collectives>& ranks) {
  std::vector<Meeting> meetings;
  std::set<std::string_view> names;
  for (const auto& rank : ranks) {
    for (const auto& [name, calls] : rank) {
      names.insert(name);
    }
  }
  for (const std::string_view name : names) {
    std::size_t least = SIZE_MAX, most = 0;
    for (const auto& rank : ranks) {
      const std::size_t calls = rank.contains(name) ? rank.at(name).size() : 0;
      least = std::min(least, calls);
      most = std::max(most, calls);
    }
    facts.unmatched += static_cast<std::int64_t>(most - least);
    Collective each{.name = std::string(name),
                    .matched = static_cast<std::int64_t>(least),
                    .time = std::vector<std::int64_t>(ranks.size(), 0),
                    .waited = std::vector<std::int64_t>(ranks.size(), 0)};
    for (std::size_t call = 0; call < least; ++call) {
      Meeting meeting;
      for (const auto& rank : ranks) {
        meeting.push_back(rank.at(name)[call]);
      }
      const std::int64_t shortest = std::ranges::min(meeting, {}, &Interval::length).length();
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        each.time[r] += meeting[r].length();
        each.waited[r] += meeting[r].length() - shortest;
        facts.rows[r].waited += meeting[r].length() - shortest;
      }
      meetings.push_back(std::move(meeting));
    }
    facts.collectives.push_back(std::move(each));
  }
  std::ranges::stable_sort(facts.collectives, std::ranges::greater(),
                           [](const Collective& each) { return std::ranges::max(each.waited); });
  return meetings;
}

std::vector<std::int64_t> missing_ranks(const std::vector<std::unique_ptr<TraceFacts>>& traces) {
  std::int64_t world = 0;
  std::set<std::int64_t> present;
  for (const auto& facts : traces) {
    world = std::max({world, facts->trace.world_size, facts->trace.rank + 1});
    present.insert(facts->trace.rank);
  }
  std::vector<std::int64_t> missing;
  constexpr std::int64_t kMostRanks = 1 << 16;
  for (std::int64_t rank = 0; rank < std::min(world, kMostRanks) && !present.contains(-1); ++rank) {
    if (!present.contains(rank)) {
      missing.push_back(rank);
    }
  }
  return missing;
}

int straggler_of(const RanksFacts& facts) {
  if (facts.rows.size() < 2) {
    return -1;
  }
  std::vector<std::size_t> order(facts.rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return facts.rows[i].waited; });
  const RankRow &last = facts.rows[order[0]], &next = facts.rows[order[1]];
  const double late = static_cast<double>(next.waited - last.waited);
  return last.window > 0 && late >= kLate * static_cast<double>(last.window) ? static_cast<int>(order[0]) : -1;
}

}  // namespace

double RanksFacts::step_skew() const {
  double shortest = -1, longest = -1;
  for (const RankRow& row : rows) {
    if (row.step > 0) {
      shortest = shortest < 0 ? row.step : std::min(shortest, row.step);
      longest = std::max(longest, row.step);
    }
  }
  return shortest > 0 ? longest / shortest - 1 : -1;
}

RanksFacts ranks_facts(const std::vector<std::unique_ptr<TraceFacts>>& traces) {
  RanksFacts facts;
  std::vector<Collectives> collectives;
  for (const auto& each : traces) {
    facts.rows.push_back(row_of(*each));
    collectives.push_back(collectives_of(each->trace));
  }
  facts.path = path_of(match(facts, collectives), traces);
  facts.missing = missing_ranks(traces);
  facts.straggler = straggler_of(facts);
  return facts;
}

}  // namespace stoker::observe::trace
