// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/tips_table.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/utc.h"
#include "stoker/base/version.h"
#include "stoker/device/backend.h"
#include "stoker/device/cpu_quota.h"
#include "stoker/device/placement.h"
#include "stoker/device/process_facts.h"
#include "stoker/device/tensor_bytes.h"
#include "stoker/job/process.h"
#include "stoker/precision/policy.h"
#include "stoker/study/intra_op.h"

namespace stoker::study {
namespace {

constexpr double kMostOver = 1.5;  // of the seconds asked for

// A way after two calls, and the peak of its tensors' bytes within a third.
std::pair<Way, std::int64_t> weigh(const Tip& tip, const Setting& setting, bool with) {
  if (!tip.counts_bytes) {
    return {tip.make(setting, with), -1};
  }
  device::TensorBytes bytes(setting.device);
  Way way = tip.make(setting, with);
  const auto call = [&] {
    way.side.call();
    if (way.side.finish) {
      way.side.finish();
    }
  };
  call();  // moments and buffers exist after it
  call();
  bytes.reset_peak();
  call();
  return {std::move(way), bytes.peak()};
}

struct Measuring {
  PairingOptions pairing;  // seconds: of the cell as a whole
  std::function<Paired(const Side&, const Side&, const PairingOptions&)> timer;
  std::function<double()> clock;
};

void measure(TipCell& cell, const Setting& setting, const Measuring& measuring) {
  const double began = measuring.clock();
  const auto [without, bytes_without] = weigh(*cell.tip, setting, false);
  const auto [with, bytes_with] = weigh(*cell.tip, setting, true);
  PairingOptions pairing = measuring.pairing;
  pairing.seconds = std::max(0.0, began + pairing.seconds - measuring.clock());
  const Paired paired = measuring.timer(without.side, with.side, pairing);
  if (paired.ratio.pairs < pairing.least_pairs) {
    cell.note = "stopped before there were enough pairs";
    return;
  }
  if (std::isnan(paired.ratio.median)) {
    cell.note = "the clock saw no time pass";
    return;
  }
  cell.bytes_without = bytes_without;
  cell.bytes_with = bytes_with;
  cell.seconds_without = paired.first_seconds;
  cell.seconds_with = paired.second_seconds;
  cell.ratio = paired.ratio;
  cell.word = word_of(cell.ratio, bytes_without, bytes_with);
}

// The same, where what goes wrong is a note.
void fill(TipCell& cell, const Setting& setting, const Measuring& measuring) {
  try {
    job::with_typed_errors([&] { measure(cell, setting, measuring); });
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    cell.note = printable(text.substr(0, text.find('\n')));
  }
}

TipsTable head(const TipsOptions& options, c10::Device on) {
  const device::MachineFacts machine = device::machine_facts();
  const device::DeviceFacts facts = device::backend_for(on).describe(on);
  const device::Versions versions = device::versions();
  TipsTable table;
  table.stoker = kVersion;
  table.torch = versions.torch;
  table.compiler = versions.compiler;
  table.cpu = printable(machine.cpu);
  table.device = on.is_cpu() ? "cpu" : fmt::format("{} ({})", on.str(), printable(facts.name));
  table.kernel = printable(machine.kernel);
  table.date = utc_now("%Y-%m-%dT%H:%M:%SZ");
  table.cores = machine.cores;
  table.cores_used = device::cpu_quota().cores;
  table.memory_bytes = machine.memory_bytes;
  table.load_before = machine.load_1min;
  table.seconds = options.seconds;
  table.cpu_time = options.cpu_time;
  table.quick = options.quick;
  return table;
}

bool is_wanted(const TipCell& cell) { return cell.note.empty(); }

}  // namespace

TipsTable measure_tips(const std::vector<Tip>& tips, const TipsOptions& options) {
  const c10::Device on = device::choose_device(device_asked(options)).device;
  if (options.cpu_time && (!on.is_cpu() || options.intra_op > 1)) {
    fail<ConfigError>("study.tips", "CPU time is that of one thread of a CPU; leave out the device and the threads");
  }
  TipsTable table = head(options, on);
  table.cells = chosen_cells(tips, options, on);
  table.intra_op = options.cpu_time ? 1 : intra_op_threads(options.intra_op);
  const IntraOp intra_op(table.intra_op);
  if (on.is_cuda()) {
    precision::apply({});  // as the engine does by default
  }
  Measuring measuring{{}, options.timer ? options.timer : time_in_turns, options.clock ? options.clock : now_s};
  measuring.pairing.least_pairs = options.quick ? kQuickPairs : measuring.pairing.least_pairs;
  measuring.pairing.most_pairs = options.quick ? kQuickPairs : measuring.pairing.most_pairs;
  measuring.pairing.clock = options.cpu_time ? Clock::kThreadCpu : Clock::kWall;
  measuring.pairing.stop = options.stop;
  const double start = measuring.clock();
  int left = static_cast<int>(std::ranges::count_if(table.cells, is_wanted)), number = 0;
  const int cells = left;
  for (TipCell& cell : table.cells) {
    if (!is_wanted(cell)) {
      continue;
    }
    if (options.stop && options.stop()) {
      table.stopped = true;
      cell.note = "stopped before it";
      continue;
    }
    const double seconds_left = std::max(0.0, start + options.seconds - measuring.clock());
    if (measuring.clock() - start > kMostOver * options.seconds) {
      cell.note = "no time was left for it; give more with --seconds";
      continue;
    }
    if (options.progress) {
      options.progress({++number, cells, cell.tip, cell.model, seconds_left});
    }
    measuring.pairing.seconds = seconds_left / left--;
    fill(cell, {.model = cell.model, .device = on, .cores = table.intra_op}, measuring);
  }
  table.stopped = table.stopped || (options.stop && options.stop());
  table.seconds_taken = measuring.clock() - start;
  table.load_after = device::machine_facts().load_1min;
  return table;
}

}  // namespace stoker::study
