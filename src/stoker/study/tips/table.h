// SPDX-License-Identifier: Apache-2.0
// `stoker bench tips`: every switch of the engine, off and on, measured on this machine: time, bytes, and whether it
// helps. Called by the command line; tips_text, tips_json and tips_page show what comes out. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/study/paired.h"
#include "stoker/study/tips/accumulation_accuracy.h"
#include "stoker/study/tips/tip.h"

namespace stoker::study {

enum class Word { kHelps, kHelpsMemory, kNoDifference, kHurts, kNotMeasured };
[[nodiscard]] std::string_view text_of(Word word);  // "helps", "helps (memory)", "no difference", "hurts here", ...

// By the interval of without / with: all of it above 1.01 helps, all of it below 0.99 hurts. In between 2 % fewer bytes
// (of the two peaks; -1: unknown) help; but all of it below 1 hurts then: such bytes are bought with time.
[[nodiscard]] Word word_of(const Ratio& ratio, std::int64_t bytes_without, std::int64_t bytes_with);

inline constexpr int kQuickPairs = 6;  // the fewest whose range is a 95 % interval

// One tip on one model.
struct TipCell {
  const Tip* tip = nullptr;
  std::string model;  // empty: the tip as a whole
  Word word = Word::kNotMeasured;
  std::string note = {};  // why it was not measured
  // Of a call: a step, an evaluation, an epoch. NaN: not measured.
  double seconds_without = std::numeric_limits<double>::quiet_NaN();
  double seconds_with = std::numeric_limits<double>::quiet_NaN();
  std::int64_t bytes_without = -1, bytes_with = -1;  // held by tensors at the peak of a call; -1: not measured
  Ratio ratio = {};                                  // of seconds, without / with: above 1 the tip helps
};

struct TipsProgress {
  int cell = 0, cells = 0;  // from 1
  const Tip* tip = nullptr;
  std::string model;
  double seconds_left = 0;
};

struct TipsOptions {
  std::vector<std::string> models = {}, tips = {};  // names and ids; empty: all
  double seconds = 600;  // for the whole table, shared out over its cells; where even the fewest pairs take longer, the
                         // table ends at one and a half times that, and says what it left out
  int intra_op = 0;      // threads of an operator; 0: as many as this process may use cores
  // Count the CPU time of one thread instead of the clock on the wall: for a machine that others keep busy.
  bool cpu_time = false;
  bool quick = false;          // kQuickPairs pairs: wider intervals
  std::string device = "cpu";  // as device::choose_device() takes it
  std::function<void(const TipsProgress&)> progress = {};
  std::function<bool()> stop = {};  // asked between pairs: true ends the table with what there is

  // For tests.
  std::function<double()> clock = {};  // seconds; empty: the real one
  std::function<Paired(const Side&, const Side&, const PairingOptions&)> timer = {};
};

// What was measured, and on what.
struct TipsTable {
  std::string stoker, torch, compiler, cpu, device, kernel, date;  // date: UTC, ISO 8601
  int cores = 0, cores_used = 0, intra_op = 0;
  std::int64_t memory_bytes = -1;
  double load_before = -1, load_after = -1;  // 1 minute; -1: unknown
  double seconds = 0, seconds_taken = 0;     // asked for, spent
  bool cpu_time = false, quick = false, stopped = false;
  std::vector<TipCell> cells;                // by tip, in the order of known_tips()
  std::vector<ScheduleAccuracy> accuracies;  // of accumulation; empty without --accuracy
};

// The device that the options ask for: with CPU time "auto" is the CPU.
[[nodiscard]] std::string device_asked(const TipsOptions& options);

// The cells that the options choose. ConfigError with the nearest for an unknown tip or model, and with the models that
// tips are about where no tip that is chosen meets a model that is; where some do, a cell of each other says so.
[[nodiscard]] std::vector<TipCell> chosen_cells(const std::vector<Tip>& tips, const TipsOptions& options,
                                                c10::Device device);

// Measures them. A way that fails, for want of memory or of a kernel, is a cell that says so. tips outlives the table.
[[nodiscard]] TipsTable measure_tips(const std::vector<Tip>& tips, const TipsOptions& options);

}  // namespace stoker::study
