// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/tips/table.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
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
#include "stoker/precision/process_switches.h"

namespace stoker::study {
namespace {

constexpr double kMostOver = 1.5;  // times the requested seconds
constexpr double kFar = 10;        // ratio of times above which few pairs are enough

struct Measuring {
  PairingOptions pairing;  // seconds: for the whole cell
  std::function<Paired(const Side&, const Side&, const PairingOptions&)> timer;
  std::function<double()> clock;
  bool may_wait = true;  // a cell that takes longer than its share is measured after the others
};

// A way after its first calls, with their measurements.
struct Weighed {
  Way way;
  std::int64_t peak = -1;   // bytes of its tensors during the last call
  double call_seconds = 0;  // of the last call
  bool waits = false;       // it takes longer than its share; only called once so far
};

constexpr int kFewestCalls = 2 + kFarPairs;

// Two calls, then a third whose bytes count; only one call before it if three do not fit into the cell's share of time.
Weighed weigh(const Tip& tip, const TipCase& tip_case, bool with, const Measuring& measuring) {
  std::optional<device::TensorBytes> bytes;
  if (tip.counts_bytes) {
    bytes.emplace(tip_case.device);
  }
  Weighed weighed{tip.make(tip_case, with)};
  const auto call = [&] {
    const double start = measuring.clock();
    weighed.way.side.call();
    if (weighed.way.side.finish) {
      weighed.way.side.finish();
    }
    weighed.call_seconds = measuring.clock() - start;
  };
  call();  // creates moments and buffers
  const bool takes_long = kFewestCalls * weighed.call_seconds > measuring.pairing.seconds;
  weighed.waits = takes_long && measuring.may_wait;
  if (weighed.waits) {
    return weighed;
  }
  if (!takes_long) {
    call();
  }
  if (bytes) {
    bytes->reset_peak();
  }
  call();
  weighed.peak = bytes ? bytes->peak() : -1;
  return weighed;
}

// 0, or the seconds of a call if the cell waits.
double measure(TipCell& cell, const TipCase& tip_case, const Measuring& measuring) {
  const double began = measuring.clock();
  const Weighed without = weigh(*cell.tip, tip_case, false, measuring);
  if (without.waits) {
    return without.call_seconds;
  }
  const Weighed with = weigh(*cell.tip, tip_case, true, measuring);
  if (with.waits) {
    return with.call_seconds;
  }
  PairingOptions pairing = measuring.pairing;
  pairing.seconds = std::max(0.0, began + pairing.seconds - measuring.clock());
  pairing.call_seconds = std::max(without.call_seconds, with.call_seconds);
  const Paired paired = measuring.timer(without.way.side, with.way.side, pairing);
  if (paired.ratio.pairs < pairing.least_pairs && !is_far(paired.ratio, pairing.far)) {
    cell.note = "stopped before enough pairs were measured";
    return 0;
  }
  if (std::isnan(paired.ratio.median)) {
    cell.note = "too short for the clock";
    return 0;
  }
  cell.bytes_without = without.peak;
  cell.bytes_with = with.peak;
  cell.seconds_without = paired.first_seconds;
  cell.seconds_with = paired.second_seconds;
  cell.ratio = paired.ratio;
  cell.word = word_of(cell.ratio, without.peak, with.peak);
  return 0;
}

// The same; errors become a note.
double fill(TipCell& cell, const TipCase& tip_case, const Measuring& measuring) {
  double waits_for = 0;
  try {
    job::with_typed_errors([&] { waits_for = measure(cell, tip_case, measuring); });
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    cell.note = printable(text.substr(0, text.find('\n')));
  }
  return waits_for;
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

// Measures the cells of a table one by one, each with an equal share of the remaining seconds.
class Measurer {
 public:
  Measurer(const TipsOptions& options, TipsTable& table, c10::Device on, Measuring measuring)
      : options_(options), table_(table), on_(on), measuring_(std::move(measuring)), start_(measuring_.clock()) {
    for (TipCell& cell : table.cells) {
      if (is_wanted(cell)) {
        cells_.push_back(&cell);
      }
    }
  }

  // Cells that take longer than their share come last, the slowest at the end, so that they take no time from others.
  void all() {
    std::size_t left = cells_.size();
    std::vector<std::pair<double, TipCell*>> waiting;  // with seconds per call
    for (TipCell* cell : cells_) {
      if (const double seconds = one(*cell, left); seconds > 0) {
        waiting.emplace_back(seconds, cell);
      } else {
        --left;
      }
    }
    measuring_.may_wait = false;
    std::ranges::stable_sort(waiting, {}, &std::pair<double, TipCell*>::first);
    for (const auto& [seconds, cell] : waiting) {
      one(*cell, left--);
    }
  }
  [[nodiscard]] double seconds_taken() const { return measuring_.clock() - start_; }

 private:
  // As measure().
  double one(TipCell& cell, std::size_t left) {
    if (options_.stop && options_.stop()) {
      table_.stopped = true;
      cell.note = "stopped before it was measured";
      return 0;
    }
    if (seconds_taken() > kMostOver * options_.seconds) {
      cell.note = "no time left; set a larger --seconds";
      return 0;
    }
    const double seconds_left = std::max(0.0, options_.seconds - seconds_taken());
    if (options_.progress) {
      const auto cells = static_cast<int>(cells_.size());
      options_.progress({.cell = cells - static_cast<int>(left) + 1,
                         .cells = cells,
                         .tip = cell.tip,
                         .model = cell.model,
                         .seconds_left = seconds_left});
    }
    measuring_.pairing.seconds = seconds_left / static_cast<double>(left);
    return fill(cell, {.model = cell.model, .device = on_, .cores = table_.intra_op}, measuring_);
  }

  const TipsOptions& options_;
  TipsTable& table_;
  c10::Device on_;
  Measuring measuring_;
  double start_;
  std::vector<TipCell*> cells_;
};

}  // namespace

TipsTable measure_tips(const std::vector<Tip>& tips, const TipsOptions& options) {
  const c10::Device on = device::choose_device(device_asked(options)).device;
  if (options.cpu_time && (!on.is_cpu() || options.intra_op > 1)) {
    fail<ConfigError>("study.tips", "--cpu-time measures one thread of a CPU; leave out --device and --intra-op");
  }
  TipsTable table = head(options, on);
  table.cells = chosen_cells(tips, options, on);
  table.intra_op = options.cpu_time ? 1 : (options.intra_op > 0 ? options.intra_op : device::cpu_quota().cores);
  const precision::ProcessSwitches switches;
  at::set_num_threads(table.intra_op);
  if (on.is_cuda()) {
    precision::apply({});  // as the engine does by default
  }
  Measuring measuring{{}, options.timer ? options.timer : time_in_turns, options.clock ? options.clock : now_s};
  measuring.pairing.least_pairs = options.quick ? kQuickPairs : measuring.pairing.least_pairs;
  measuring.pairing.most_pairs = options.quick ? kQuickPairs : measuring.pairing.most_pairs;
  measuring.pairing.clock = options.cpu_time ? Clock::kThreadCpu : Clock::kWall;
  measuring.pairing.stop = options.stop;
  measuring.pairing.far = kFar;
  Measurer measurer(options, table, on, std::move(measuring));
  measurer.all();
  table.stopped = table.stopped || (options.stop && options.stop());
  table.seconds_taken = measurer.seconds_taken();
  table.load_after = device::machine_facts().load_1min;
  return table;
}

}  // namespace stoker::study
