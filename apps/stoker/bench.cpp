// SPDX-License-Identifier: Apache-2.0
// stoker bench: measurements of this machine. `tips` is the first of them.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/nearest.h"
#include "stoker/job/process.h"
#include "stoker/study/tips_report.h"

namespace stoker::app {
namespace {

struct TipsWords {
  study::TipsOptions options;
  study::AccuracyOptions accuracy;
  std::string json, html, data;
};

// One line that is drawn over on a terminal; a line a time elsewhere.
void show_progress(const std::string& text) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  std::fputs((terminal ? "\r\x1b[K" + text : text + "\n").c_str(), stderr);
  std::fflush(stderr);
}

void hide_progress() {
  if (isatty(STDERR_FILENO) == 1) {
    std::fputs("\r\x1b[K", stderr);
  }
}

int run_tips(TipsWords& words) {
  job::start_process();
  const std::atomic<bool>& stop = stop_on_signal("stopping after this pair; once more to stop at once");
  words.options.progress = [](const study::TipsProgress& progress) {
    show_progress(fmt::format("{} of {}: {}, {}; {:.0f} s left", progress.cell, progress.cells, progress.tip->id,
                              progress.model, progress.seconds_left));
  };
  words.options.stop = [&stop] { return stop.load(); };
  study::TipsTable table = study::measure_tips(study::known_tips(), words.options);
  if (!words.data.empty() && !table.stopped) {
    words.accuracy.data = words.data;
    words.accuracy.device = words.options.device;
    words.accuracy.say = show_progress;
    words.accuracy.stop = words.options.stop;
    table.accuracies = study::accumulation_accuracy(words.accuracy);
    table.stopped = stop.load();
  }
  hide_progress();
  if (!words.json.empty()) {
    write_file_atomically(words.json, study::tips_json(table));
  }
  if (!words.html.empty()) {
    write_file_atomically(words.html, study::tips_page(table));
  }
  fmt::print("{}", study::tips_text(table));
  return table.stopped ? kStopped : kDone;
}

void add_tips(CLI::App& bench, int& exit_code) {
  const auto words = std::make_shared<TipsWords>();
  study::TipsOptions& options = words->options;
  options.device = "auto";
  CLI::App* command = bench.add_subcommand("tips", "Every tip of the tutorials, off and on: does it help here?");
  command->add_option("--models", options.models, "only these: mlp,cnn,...")->delimiter(',');
  command->add_option("--tips", options.tips, "only these: channels-last,autocast-bf16,...")->delimiter(',');
  command->add_option("--seconds", options.seconds, "for the whole table")->check(CLI::PositiveNumber);
  command->add_flag("--quick", options.quick, "the fewest pairs: a few minutes, wider intervals");
  command->add_option("--intra-op", options.intra_op, "threads of an operator; as many as cores unless said otherwise")
      ->check(CLI::PositiveNumber);
  command->add_flag("--cpu-time", options.cpu_time, "the CPU time of one thread: for a machine that others keep busy");
  command->add_option("--device", options.device, "auto, cpu, cuda or cuda:N");
  command->add_option("--json", words->json, "write it to this file, too, for programs");
  command->add_option("--html", words->html, "... and as a page with bars");
  command->add_option("--accuracy", words->data,
                      "also train on these pictures (CIFAR-10): what accumulation does to accuracy; takes long");
  command->add_option("--pictures", words->accuracy.pictures, "... on so many of them, spread evenly")
      ->check(CLI::PositiveNumber);
  command->callback([words, &exit_code] { exit_code = run_tips(*words); });
}

// What there is, for `stoker bench` alone.
void list(CLI::App& bench) {
  for (const CLI::App* each : bench.get_subcommands([](const CLI::App*) { return true; })) {
    fmt::print("stoker bench {:<8} {}\n", each->get_name(), each->get_description());
  }
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("bench", "Measure this machine: what makes training faster here");
  command->allow_extras();
  add_tips(*command, exit_code);
  command->callback([command, &exit_code] {
    if (!command->get_subcommands().empty()) {
      return;
    }
    if (const std::vector<std::string> words = command->remaining(); !words.empty()) {
      fail<ConfigError>("stoker.bench", "there is no bench \"{}\", did you mean \"{}\"? `stoker bench` lists them",
                        printable(words.front()), "tips");
    }
    list(*command);
    exit_code = kDone;
  });
}

}  // namespace stoker::app
