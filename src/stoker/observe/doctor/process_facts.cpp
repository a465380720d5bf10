// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/process_facts.h"

#include <algorithm>

namespace stoker::observe::doctor {
namespace {

double share(std::int64_t some, std::int64_t all) {
  return all > 0 ? static_cast<double>(some) / static_cast<double>(all) : 0;
}

// Workers that take turns on a core are at a sample for longer than they compute.
core::SourceFigures loader_of(const ProcessSlice& slice) {
  const StackSamples& stacks = *slice.stacks;
  core::SourceFigures loader;
  loader.threads = stacks.workers;
  const double all = slice.seconds * stacks.workers;
  const double busy = share(stacks.samples + stacks.collate, stacks.of_workers) * all;
  const double computing = std::min(busy, slice.children_cpu_seconds);
  for (const auto& [name, count] : {std::pair("samples", stacks.samples), {"collate", stacks.collate}}) {
    const double seconds = share(count, stacks.of_workers) * all;
    const double cpu = busy > 0 ? computing * seconds / busy : 0;
    loader.stages.push_back({.name = name,
                             .seconds = seconds,
                             .probed_seconds = seconds,
                             .probed_cpu_seconds = cpu,
                             .probed_asleep_seconds = seconds - cpu});
  }
  return loader;
}

Period period_of(const ProcessSlice& slice) {
  Period period{.last_step = 0, .steps = 0, .seconds = slice.seconds, .parts = {}, .loader = {}};
  if (!slice.stacks || slice.stacks->all == 0) {
    return period;
  }
  for (const auto& [part, count] : slice.stacks->parts) {
    period.parts[part] = {share(count, slice.stacks->all) * slice.seconds, -1};
  }
  if (slice.stacks->workers > 0) {
    period.loader = loader_of(slice);
  } else if (const double fetch = period.part("fetch"); fetch > 0) {  // the program loads by itself
    core::SourceFigures own;
    own.stages = {{.name = "samples", .seconds = fetch}};
    period.loader = own;
  }
  return period;
}

}  // namespace

Facts process_facts(std::string job, const std::vector<ProcessSlice>& slices) {
  Facts facts;
  facts.source = Source::kProcess;
  facts.job = std::move(job);
  StackSamples stacks;
  double seconds = 0;
  for (const ProcessSlice& slice : slices) {
    facts.periods.push_back(period_of(slice));
    for (const auto& [name, value] : slice.figures) {
      facts.figures[name].value += value * slice.seconds;
    }
    seconds += slice.seconds;
    if (slice.stacks) {
      stacks.add(*slice.stacks);
    }
  }
  for (auto& [name, figure] : facts.figures) {
    figure = {figure.value / seconds, "monitor"};
  }
  facts.sites = stacks.sites;
  if (stacks.all > 0) {
    facts.figures["loader.workers"] = {static_cast<double>(stacks.workers), "py-spy"};
  }
  return facts;
}

}  // namespace stoker::observe::doctor
