// SPDX-License-Identifier: Apache-2.0
// Selects the cells of the tips table, and the word for each result.
#include <algorithm>
#include <cmath>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/nearest.h"
#include "stoker/device/process_facts.h"
#include "stoker/study/tips/table.h"

namespace stoker::study {
namespace {

constexpr double kHelps = 1.01, kHurts = 0.99;
constexpr double kFewerBytes = 0.02;

std::string why_not(const Tip& tip, c10::Device on, bool cpu_time) {
  if (cpu_time && tip.own_threads) {
    return "needs wall time";
  }
  switch (tip.need) {
    case Need::kNothing: return "";
    case Need::kCpu: return on.is_cpu() ? "" : "works on a CPU only";
    case Need::kGpu: return on.is_cuda() ? "" : "needs a GPU";
    case Need::kHalfUnits: {
      const std::vector<std::string> flags = device::machine_facts().cpu_flags;
      const bool units =
          std::ranges::find(flags, "avx512_fp16") != flags.end() || std::ranges::find(flags, "amx_fp16") != flags.end();
      return on.is_cuda() || units ? "" : "needs a GPU: this CPU does not compute in float16";
    }
  }
  return "";
}

void check_names(const std::vector<std::string>& chosen, const std::vector<std::string>& known, const char* what) {
  for (const std::string& name : chosen) {
    if (std::ranges::find(known, name) == known.end()) {
      fail<ConfigError>("study.tips", "{}", unknown_name(what, name, known));
    }
  }
}

bool takes(const std::vector<std::string>& chosen, const std::string& name) {
  return chosen.empty() || std::ranges::find(chosen, name) != chosen.end();
}

// Reports selected tips that apply to none of the selected models.
[[noreturn]] void refuse_strangers(const std::vector<Tip>& tips, const TipsOptions& options) {
  std::vector<std::string> concerned;
  for (const Tip& tip : tips) {
    if (takes(options.tips, tip.id)) {
      concerned.push_back(fmt::format("{} applies to {}", tip.id, fmt::join(tip.models, ", ")));
    }
  }
  fail<ConfigError>("study.tips", "no selected tip applies to {}: {}; choose other --models or --tips",
                    fmt::join(options.models, ", "), fmt::join(concerned, "; "));
}

}  // namespace

std::string_view text_of(Word word) {
  switch (word) {
    case Word::kHelps: return "helps";
    case Word::kHelpsMemory: return "helps (memory)";
    case Word::kNoDifference: return "no difference";
    case Word::kHurts: return "hurts here";
    case Word::kNotMeasured: return "not measured";
  }
  return "";
}

Word word_of(const Ratio& ratio, std::int64_t bytes_without, std::int64_t bytes_with) {
  if (ratio.pairs == 0 || std::isnan(ratio.median)) {
    return Word::kNotMeasured;
  }
  if (ratio.low > kHelps) {
    return Word::kHelps;
  }
  const bool known = bytes_without > 0 && bytes_with >= 0;
  const bool fewer = known && static_cast<double>(bytes_with) <= (1 - kFewerBytes) * static_cast<double>(bytes_without);
  if (ratio.high < (fewer ? 1 : kHurts)) {
    return Word::kHurts;
  }
  return fewer ? Word::kHelpsMemory : Word::kNoDifference;
}

std::string device_asked(const TipsOptions& options) {
  return options.cpu_time && options.device == "auto" ? "cpu" : options.device;
}

std::vector<TipCell> chosen_cells(const std::vector<Tip>& tips, const TipsOptions& options, c10::Device on) {
  std::vector<std::string> ids, models;
  std::ranges::transform(tips, std::back_inserter(ids), &Tip::id);
  for (const Tip& tip : tips) {
    for (const std::string& model : tip.models) {
      if (std::ranges::find(models, model) == models.end()) {
        models.push_back(model);
      }
    }
  }
  check_names(options.tips, ids, "tip");
  check_names(options.models, models, "model");
  std::vector<TipCell> cells;
  bool met = false;
  for (const Tip& tip : tips) {
    if (!takes(options.tips, tip.id)) {
      continue;
    }
    if (const std::string why = why_not(tip, on, options.cpu_time); !why.empty()) {
      cells.push_back({.tip = &tip, .model = "", .note = why});
      met = true;
      continue;
    }
    const std::size_t before = cells.size();
    for (const std::string& model : tip.models) {
      if (takes(options.models, model)) {
        cells.push_back({.tip = &tip, .model = model});
      }
    }
    met = met || cells.size() > before;
    if (cells.size() == before && !options.tips.empty()) {
      cells.push_back({.tip = &tip, .model = "", .note = fmt::format("applies to {}", fmt::join(tip.models, ", "))});
    }
  }
  if (!met) {
    refuse_strangers(tips, options);
  }
  return cells;
}

}  // namespace stoker::study
