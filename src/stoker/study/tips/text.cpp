// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "stoker/base/fmt.h"
#include "stoker/study/tips/report.h"

namespace stoker::study {
namespace {

// Three significant digits: 0.297, 28.1, 1024.
std::string figure(double value) {
  if (std::isnan(value)) {
    return "-";
  }
  const int digits = value <= 0 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(value))), 0, 3);
  return fmt::format("{:.{}f}", value, digits);
}

std::string milliseconds(double seconds) { return figure(seconds * 1e3); }
std::string megabytes(std::int64_t bytes) { return bytes < 0 ? "-" : figure(static_cast<double>(bytes) * 1e-6); }

std::string times(double ratio) { return fmt::format("{:.{}f}", ratio, ratio >= 100 ? 0 : ratio >= 10 ? 1 : 2); }

std::string load_text(double load) { return load < 0 ? "unknown" : fmt::format("{:.2f}", load); }

std::string head_text(const TipsTable& table) {
  std::string text =
      fmt::format("stoker {}, torch {}, g++ {}; {}\n", table.stoker, table.torch, table.compiler, table.date);
  const std::string memory = table.memory_bytes < 0
                                 ? "memory unknown"
                                 : fmt::format("{:.1f} GB", static_cast<double>(table.memory_bytes) * 1e-9);
  text += fmt::format("{}; {} of {} cores of {}, {}, {}\n", table.device, table.cores_used, table.cores, table.cpu,
                      memory, table.kernel);
  const char* why = table.intra_op == table.cores_used ? ", one per core that the process may use" : "";
  text += fmt::format("intra-op threads: {}{}; load {} before, {} after; {:.0f} s{}\n", table.intra_op, why,
                      load_text(table.load_before), load_text(table.load_after), table.seconds_taken,
                      table.quick ? fmt::format(" (quick: {} pairs)", kQuickPairs) : "");
  text += table.device == "cpu"
              ? ""
              : "Matrix products of fp32 use TF32, the engine's default, except where a row says float32.\n";
  text += table.cpu_time ? "CPU time of one thread, not wall time.\n" : "";
  text +=
      "ms: median time per call, measured in turns. ratio: without / with; above 1 the tip helps. interval:\n"
      "95 %, of n pairs (range of 3 pairs if one way takes 10 times as long). MB: peak of tensor memory\n"
      "during a call.\n";
  text += table.stopped ? "Stopped early: only the results so far are shown.\n" : "";
  return text + fmt::format("\n  {:<21} {:>7} {:>7}   {:>5} {:<12} {:>3}  {:>6} {:>6}\n", "", "ms", "with", "ratio",
                            "interval", "n", "MB", "with");
}

std::string cell_text(const TipCell& cell) {
  const std::string name = cell.model.empty() ? "-" : cell.model;
  if (!cell.note.empty()) {
    return fmt::format("  {:<21} {}: {}\n", name, text_of(cell.word), cell.note);
  }
  const std::string interval = fmt::format("[{}, {}]", times(cell.ratio.low), times(cell.ratio.high));
  return fmt::format("  {:<21} {:>7} {:>7}   {:>5} {:<12} {:>3}  {:>6} {:>6}   {}\n", name,
                     milliseconds(cell.seconds_without), milliseconds(cell.seconds_with), times(cell.ratio.median),
                     interval, cell.ratio.pairs, megabytes(cell.bytes_without), megabytes(cell.bytes_with),
                     text_of(cell.word));
}

const TipCell* find(const TipsTable& table, std::string_view tip, const std::string& model) {
  const auto found = std::ranges::find_if(table.cells, [&](const TipCell& each) {
    return each.tip->id == tip && each.model == model && each.note.empty();
  });
  return found == table.cells.end() ? nullptr : &*found;
}

std::string precision_line(std::string_view name, std::string_view fp32, std::string_view bf16, std::string_view fp16) {
  return fmt::format("{:<23} {:>19} {:>19} {:>19}\n", name, fp32, bf16, fp16);
}

// The rows of autocast again, as tutorials show them: one line per model, one column per precision.
std::string precision_text(const TipsTable& table) {
  std::string text;
  for (const char* model : {"mlp", "unet", "bert"}) {
    const TipCell* bf16 = find(table, "autocast-bf16", model);
    const TipCell* fp16 = find(table, "autocast-fp16", model);
    if (const TipCell* any = bf16 != nullptr ? bf16 : fp16) {
      const auto with = [](const TipCell* cell) {
        return cell == nullptr
                   ? std::string("-")
                   : fmt::format("{} ms {:>5} MB", milliseconds(cell->seconds_with), megabytes(cell->bytes_with));
      };
      const std::string without =
          fmt::format("{} ms {:>5} MB", milliseconds(any->seconds_without), megabytes(any->bytes_without));
      text += precision_line(fmt::format("  {}", model), without, with(bf16), with(fp16));
    }
  }
  return text.empty() ? "" : "\n" + precision_line("mixed precision:", "fp32", "bf16", "fp16") + text;
}

}  // namespace

std::string accuracy_text(const std::vector<ScheduleAccuracy>& accuracies) {
  std::string text;
  for (const ScheduleAccuracy& each : accuracies) {
    std::string values;
    for (const double accuracy : each.accuracy) {
      values += fmt::format("  {:.1f} %", accuracy * 100);
    }
    text += fmt::format("  {:<22} {:<8}{}\n", each.model, each.schedule, values);
  }
  return text.empty() ? "" : "\naccuracy by schedule, one value per seed\n" + text;
}

std::string tips_text(const TipsTable& table) {
  std::string text = head_text(table);
  const Tip* tip = nullptr;
  for (const TipCell& cell : table.cells) {
    if (cell.tip != tip) {
      tip = cell.tip;
      text += fmt::format("\n{} ({})", tip->title, tip->id);
      text += tip->without.empty() ? "\n" : fmt::format(": {} | {}\n", tip->without, tip->with);
    }
    text += cell_text(cell);
  }
  return text + precision_text(table);
}

}  // namespace stoker::study
