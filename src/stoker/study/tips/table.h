// SPDX-License-Identifier: Apache-2.0
// `stoker bench tips`: measures every switch of the engine, off and on, on this machine: time, bytes, and whether it
// helps. Called by the command line; tips_text, tips_json and tips_page show the results. One thread.
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

// From the interval of without / with: entirely above 1.01 helps, entirely below 0.99 hurts. In between, a peak with 2
// % fewer bytes (-1: unknown) helps, unless the interval is entirely below 1: then the bytes cost time, which hurts.
[[nodiscard]] Word word_of(const Ratio& ratio, std::int64_t bytes_without, std::int64_t bytes_with);

inline constexpr int kQuickPairs = 6;  // minimum for a range that is a 95 % interval

// One tip on one model.
struct TipCell {
  const Tip* tip = nullptr;
  std::string model;  // empty: the tip as a whole
  Word word = Word::kNotMeasured;
  std::string note = {};  // why it was not measured
  // Per call: a step, an evaluation or an epoch. NaN: not measured.
  double seconds_without = std::numeric_limits<double>::quiet_NaN();
  double seconds_with = std::numeric_limits<double>::quiet_NaN();
  std::int64_t bytes_without = -1, bytes_with = -1;  // held by tensors at the peak of a call; -1: not measured
  Ratio ratio = {};                                  // of seconds, without / with; above 1 the tip helps
};

struct TipsProgress {
  int cell = 0, cells = 0;  // from 1
  const Tip* tip = nullptr;
  std::string model;
  double seconds_left = 0;
};

struct TipsOptions {
  std::vector<std::string> models = {}, tips = {};  // names and ids; empty: all
  double seconds = 600;  // for the whole table, shared by its cells; the table ends at 1.5 times that at the latest and
                         // names the cells that it did not measure
  int intra_op = 0;      // threads per operator; 0: one per core that this process may use
  // Measure the CPU time of one thread instead of wall time, for a busy machine.
  bool cpu_time = false;
  bool quick = false;          // kQuickPairs pairs: wider intervals
  std::string device = "cpu";  // as for device::choose_device()
  std::function<void(const TipsProgress&)> progress = {};
  std::function<bool()> stop = {};  // called between pairs; true ends the table with the results so far

  // For tests.
  std::function<double()> clock = {};  // seconds; empty: the real one
  std::function<Paired(const Side&, const Side&, const PairingOptions&)> timer = {};
};

// The results, the machine and the versions.
struct TipsTable {
  std::string stoker, torch, compiler, cpu, device, kernel, date;  // date: UTC, ISO 8601
  int cores = 0, cores_used = 0, intra_op = 0;
  std::int64_t memory_bytes = -1;
  double load_before = -1, load_after = -1;  // 1 minute; -1: unknown
  double seconds = 0, seconds_taken = 0;     // requested, used
  bool cpu_time = false, quick = false, stopped = false;
  std::vector<TipCell> cells;                // by tip, in the order of known_tips()
  std::vector<ScheduleAccuracy> accuracies;  // of the schedules of accumulation; empty without --accuracy
};

// The requested device; with CPU time "auto" is the CPU.
[[nodiscard]] std::string device_asked(const TipsOptions& options);

// The cells that the options select. ConfigError with the nearest name for an unknown tip or model, and if no selected
// tip applies to a selected model. If only some apply, each other tip gets a cell with a note.
[[nodiscard]] std::vector<TipCell> chosen_cells(const std::vector<Tip>& tips, const TipsOptions& options,
                                                c10::Device device);

// Measures them. If a way fails (no memory, no kernel), its cell has a note. tips must outlive the table.
[[nodiscard]] TipsTable measure_tips(const std::vector<Tip>& tips, const TipsOptions& options);

}  // namespace stoker::study
