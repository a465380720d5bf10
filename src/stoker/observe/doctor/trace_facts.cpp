// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/doctor/trace_facts.h"

#include <algorithm>

#include "stoker/base/counted.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/observe/trace/facts/ranks.h"
#include "stoker/observe/trace/facts/replay.h"

namespace stoker::observe::doctor {
namespace {

using namespace trace;

double seconds(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

std::vector<Interval> windows_of(const TraceFacts& facts) {
  std::vector<Interval> windows;
  for (const Step& step : facts.steps) {
    windows.push_back(step.time);
  }
  if (!windows.empty()) {
    return windows;
  }
  if (!facts.devices.empty() && !facts.devices[0].time.whole.window.empty()) {
    return facts.devices[0].time.whole.window;  // from the first to the last work: loading before it is no step
  }
  return {whole_time(facts.trace)};
}

// Idle time by what was waited for, clipped to the windows. Both are in order of time.
void add_idle(const IdleTime& idle, const std::vector<Interval>& windows, std::vector<Period>& periods) {
  for (std::size_t i = 0; i < windows.size(); ++i) {
    auto piece = std::ranges::partition_point(idle.pieces,
                                              [&](const IdlePiece& each) { return each.time.end <= windows[i].begin; });
    for (; piece != idle.pieces.end() && piece->time.begin < windows[i].end; ++piece) {
      const std::int64_t begin = std::max(piece->time.begin, windows[i].begin);
      const std::int64_t end = std::min(piece->time.end, windows[i].end);
      periods[i].parts[std::string(doing_key(piece->doing))].seconds += seconds(end - begin);
    }
  }
}

void add_busy(const DeviceTime& device, const std::vector<Interval>& windows, std::vector<Period>& periods) {
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const DeviceUse use = use_in({windows[i]}, device.kinds);
    Parts& parts = periods[i].parts;
    parts["compute"].seconds = seconds(use.by_state[kComputing]);
    parts["communication"].seconds = seconds(use.by_state[kCommunicating]);
    parts["copy"].seconds = seconds(use.by_state[kCopying]);
    parts["overlap"].seconds =
        seconds(use.busy() - use.by_state[kComputing] - use.by_state[kCommunicating] - use.by_state[kCopying]);
  }
}

// Matrix products and convolutions of fp32 that use no tensor cores, by the names that cuBLAS, cuDNN and CUTLASS give.
bool is_plain_product(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  const bool product = has("sgemm") || has("_ffma_") || has("scudnn") || has("dgrad_engine<float") ||
                       has("dgrad2d_alg") || has("wgrad_alg0_engine") || has("wgrad2d_");
  return product && !has("tf32") && !has("tensorop") && !has("1688") && !has("16816");
}

bool is_convolution(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return has("fprop") || has("dgrad") || has("wgrad") || has("cudnn");
}

bool is_tf32_product(std::string_view name) { return name.find("tf32") != std::string_view::npos; }

bool is_layout_change(std::string_view name) {
  return name.find("nchwToNhwc") != std::string_view::npos || name.find("nhwcToNchw") != std::string_view::npos;
}

// Shares of the time of kernels, and of their number.
void add_kinds(const TraceFacts& facts, Facts& into) {
  double all = 0, plain = 0, convolutions = 0, tf32 = 0, layout = 0, kernels = 0, changes = 0;
  for (const WorkSum& sum : facts.work) {
    if (sum.kind == Kind::kKernel && sum.work == Work::kCompute) {
      const double time = seconds(sum.total);
      all += time;
      kernels += static_cast<double>(sum.times);
      changes += is_layout_change(sum.name) ? static_cast<double>(sum.times) : 0;
      plain += is_plain_product(sum.name) ? time : 0;
      convolutions += is_plain_product(sum.name) && is_convolution(sum.name) ? time : 0;
      tf32 += is_tf32_product(sum.name) ? time : 0;
      layout += is_layout_change(sum.name) ? time : 0;
    }
  }
  if (!facts.trace.devices.empty() && facts.trace.devices.front().compute_major > 0) {
    into.figures["device.compute_major"] = {static_cast<double>(facts.trace.devices.front().compute_major), "trace"};
  }
  if (all > 0) {
    into.figures["kernels.plain_product_share"] = {plain / all, "trace"};
    into.figures["kernels.plain_convolution_share"] = {convolutions / all, "trace"};
    into.figures["kernels.tf32_product_share"] = {tf32 / all, "trace"};
    into.figures["kernels.layout_share"] = {layout / all, "trace"};
    into.figures["kernels.layout_count_share"] = {changes / kernels, "trace"};
  }
}

// Attention in separate operators: products of batches, softmax, masks. As a share of the time of kernels; 0 if the
// trace has none, or if a part of the program computes it in one operator.
void add_attention(const TraceFacts& facts, Facts& into) {
  double all = 0, parts = 0;
  std::int64_t products = 0, softmax = 0, masks = 0, kernels = 0;
  bool fused = false, math = false;
  for (const OperatorSum& sum : facts.operators) {
    const bool of_softmax = sum.name == "aten::_softmax" || sum.name == "aten::_softmax_backward_data";
    all += seconds(sum.device_self);
    products += sum.name == "aten::bmm" ? sum.times : 0;
    softmax += of_softmax ? sum.times : 0;
    masks += sum.name == "aten::masked_fill_" ? sum.times : 0;
    fused |= sum.name.find("_attention_forward") != std::string::npos ||
             sum.name.find("_flash_attention") != std::string::npos ||
             sum.name.find("_efficient_attention") != std::string::npos ||
             sum.name.find("_cudnn_attention") != std::string::npos;
    math |= sum.name == "aten::_scaled_dot_product_attention_math";
    if (of_softmax) {
      parts += seconds(sum.device);
    } else if (sum.name == "aten::bmm" || sum.name == "aten::masked_fill_") {
      parts += seconds(sum.device_self);
    }
  }
  for (const WorkSum& sum : facts.work) {
    kernels += sum.kind == Kind::kKernel ? sum.times : 0;
  }
  if (all > 0 && kernels > 0) {
    const bool separate = softmax > 0 && products >= 2 * softmax && !fused;
    if (math) {
      into.words["operators.attention"] = "math";
    }
    const auto operators = static_cast<double>(products + softmax + masks);
    into.figures["operators.attention_share"] = {separate ? parts / all : 0, "trace"};
    into.figures["operators.attention_count_share"] = {separate ? operators / static_cast<double>(kernels) : 0,
                                                       "trace"};
  }
}

// By the call that most of a kind of idle time is charged to.
void add_names(const IdleTime& idle, double steps, Facts& facts) {
  for (const IdleName& name : idle.names) {  // longest first
    const std::string key = "idle." + std::string(doing_key(name.doing));
    facts.words.try_emplace(key + ".name", printable(name.name));
    facts.figures[key + ".times"].value += static_cast<double>(name.times) / steps;
    facts.figures[key + ".times"].source = "trace";
  }
}

void add_kernels(const TraceFacts& facts, const DeviceTime& device, double steps, Facts& into) {
  std::vector<double> lengths;
  for (const std::uint32_t i : device.work) {
    if (facts.trace.events[i].kind == Kind::kKernel) {
      lengths.push_back(seconds(facts.trace.events[i].duration()));
    }
  }
  if (lengths.empty()) {
    return;
  }
  double copying = 0, pageable = 0;
  for (const WorkSum& sum : facts.work) {
    const bool copy = sum.kind == Kind::kCopy;
    copying += copy ? seconds(sum.total) : 0;
    pageable += copy && sum.name.find("Pageable") != std::string::npos ? seconds(sum.total) : 0;
  }
  if (copying > 0) {
    into.figures["copies.pageable_share"] = {pageable / copying, "trace"};
  }
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::ranges::nth_element(lengths, middle);
  into.figures["kernels.median_seconds"] = {*middle, "trace"};
  into.figures["kernels.per_step"] = {static_cast<double>(lengths.size()) / steps, "trace"};
}

// What would be saved without a kind of waiting, as a share of the time.
void add_replay(const TraceFacts& trace, Interval window, Facts& into) {
  const Replay replay = observe::trace::replay(trace, window);
  for (const Doing doing : kReplayed) {
    if (const auto saved = replay.saved(doing)) {
      into.figures[fmt::format("replay.{}.saved_share", doing_key(doing))] = {*saved, "trace"};
    }
  }
  into.figures["replay.length_share"] = {replay.length_share(), "trace"};
}

// device: null if none worked; then idle is not read.
Facts facts_in(const TraceFacts& trace, const std::vector<Interval>& windows, const DeviceFactsOfTrace* device,
               const IdleTime* idle) {
  Facts facts;
  facts.source = Source::kTrace;
  facts.job = trace.trace.file;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    facts.periods.push_back({.last_step = static_cast<std::int64_t>(i + 1),
                             .steps = 1,
                             .seconds = seconds(windows[i].length()),
                             .parts = {},
                             .loader = {}});
  }
  const auto steps = static_cast<double>(windows.size());
  facts.figures["steps.marked"] = {static_cast<double>(trace.steps.size()), "trace"};
  if (device != nullptr) {
    add_busy(device->time, windows, facts.periods);
    add_idle(*idle, windows, facts.periods);
    add_names(*idle, steps, facts);
    add_kernels(trace, device->time, steps, facts);
    add_kinds(trace, facts);
    add_attention(trace, facts);
  } else if (trace.host_idle) {
    add_idle(*trace.host_idle, windows, facts.periods);
    add_names(*trace.host_idle, steps, facts);
  }
  return facts;
}

}  // namespace

Facts trace_facts(const TraceFacts& trace) {
  const DeviceFactsOfTrace* device = trace.devices.empty() ? nullptr : &trace.devices.front();
  const std::vector<Interval> windows = windows_of(trace);
  Facts facts = facts_in(trace, windows, device, device == nullptr ? nullptr : &device->idle);
  if (device != nullptr) {
    add_replay(trace, {windows.front().begin, windows.back().end}, facts);
  }
  return facts;
}

Facts device_facts(const TraceFacts& trace, std::int64_t steps) {
  const auto& device = *std::ranges::max_element(trace.devices, {},
                                                 [](const DeviceFactsOfTrace& each) { return each.time.whole.busy(); });
  const Intervals& whole = device.time.whole.window;
  const std::int64_t begin = whole.front().begin, length = whole.back().end - begin;
  std::vector<Interval> windows;
  for (std::int64_t i = 0; i < steps; ++i) {
    windows.push_back({begin + length * i / steps, begin + length * (i + 1) / steps});
  }
  return facts_in(trace, windows, &device, &device.idle_whole);
}

Facts ranks_trace_facts(const std::vector<std::unique_ptr<TraceFacts>>& ranks) {
  const RanksFacts found = ranks_facts(ranks);
  const auto longest = std::ranges::max_element(found.rows, {}, &RankRow::step);
  const auto row = found.straggler >= 0 ? static_cast<std::size_t>(found.straggler)
                                        : static_cast<std::size_t>(longest - found.rows.begin());
  Facts facts = trace_facts(*ranks[row]);
  const auto& own = *ranks[row];
  facts.damage.push_back(fmt::format("{} traces are taken for the ranks of one training; {} is examined{}",
                                     ranks.size(), printable(own.trace.file),
                                     found.straggler >= 0 ? ", the slowest" : ", with the longest steps"));
  const auto set = [&](const char* name, double value) { facts.figures[name] = {value, "trace"}; };
  set("ranks.row", static_cast<double>(row));
  set("ranks.seen", static_cast<double>(ranks.size()));
  if (!found.collectives.empty()) {
    double waited = 0, window = 0;
    for (const RankRow& each : found.rows) {
      waited += seconds(each.waited);
      window += seconds(each.window);
    }
    set("ranks.waiting_share", window > 0 ? std::min(waited / window, 1.0) : 0);
    set("ranks.slowest",
        found.rows[row].rank >= 0 ? static_cast<double>(found.rows[row].rank) : static_cast<double>(row));
    set("ranks.slowest_share", found.straggler >= 0 ? 1 : 0);
  }
  if (!found.missing.empty()) {
    facts.damage.push_back(fmt::format("{} of the training without a trace here",
                                       counted(static_cast<std::int64_t>(found.missing.size()), "rank")));
  }
  return facts;
}

}  // namespace stoker::observe::doctor
