// SPDX-License-Identifier: Apache-2.0
// stoker bench: measures this machine: tips for faster training, how fast it loads data, and what more ranks bring.
#include <cstdio>
#include <memory>
#include <optional>

#include "commands.h"
#include "status_line.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/job/process.h"
#include "stoker/study/data_bench/data_bench.h"
#include "stoker/study/ranks_bench/ranks_bench.h"
#include "stoker/study/tips/report.h"
#include "training_command.h"

namespace stoker::app {
namespace {

struct TipsWords {
  study::TipsOptions options;
  study::AccuracyOptions accuracy;
  std::string json, html, data;
  std::int64_t images = 5000;
};

void write_files(const TipsWords& words, const study::TipsTable& table) {
  if (!words.json.empty()) {
    write_file_atomically(words.json, study::tips_json(table));
  }
  if (!words.html.empty()) {
    write_file_atomically(words.html, study::tips_page(table));
  }
}

// Measurements go to the terminal first, before anything can fail, and to the files before the accuracies, which take
// longer than everything else.
int run_tips(TipsWords& words) {
  for (const std::string& file : {words.json, words.html}) {
    if (!file.empty()) {
      check_target("stoker.bench", file);
    }
  }
  job::start_process();
  std::optional<data::ImageFolder> images;
  if (!words.data.empty()) {
    images = study::accuracy_images(words.data, words.images);
  }
  const std::atomic<bool>& stop = stop_on_signal("stopping after this pair or step; press again to stop at once");
  StatusLine line;
  words.options.progress = [&line](const study::TipsProgress& progress) {
    line.show(fmt::format("{} of {}: {}, {}; {:.0f} s left", progress.cell, progress.cells, progress.tip->id,
                          progress.model, progress.seconds_left));
  };
  words.options.stop = [&stop] { return stop.load(); };
  study::TipsTable table = study::measure_tips(study::known_tips(), words.options);
  line.hide();
  fmt::print("{}", study::tips_text(table));
  std::fflush(stdout);
  write_files(words, table);
  if (images && !table.stopped) {
    words.accuracy.device = study::device_asked(words.options);
    words.accuracy.intra_op = table.intra_op;
    words.accuracy.say = [&line](const std::string& text) { line.show(text); };
    words.accuracy.stop = words.options.stop;
    table.accuracies = study::accumulation_accuracy(*images, words.accuracy);
    table.stopped = stop.load();
    line.hide();
    fmt::print("{}{}", study::accuracy_text(table.accuracies), table.stopped ? "Stopped before its end.\n" : "");
    write_files(words, table);
  }
  return table.stopped ? kStopped : kDone;
}

void add_tips(CLI::App& bench, int& exit_code) {
  const auto words = std::make_shared<TipsWords>();
  study::TipsOptions& options = words->options;
  options.device = "auto";
  CLI::App* command =
      bench.add_subcommand("tips", "Measure well-known performance tips, off and on: which ones help here?");
  command->add_option("--models", options.models, "only these models: mlp,cnn,...")->delimiter(',');
  command->add_option("--tips", options.tips, "only these tips: channels-last,autocast-bf16,...")->delimiter(',');
  command
      ->add_option("--seconds", options.seconds,
                   "time for the whole table; default 600; with less, some rows are not measured")
      ->check(in_range(1.0, 86400.0));
  command->add_flag("--quick", options.quick, "as few pairs as possible: takes a few minutes, gives wider intervals");
  command->add_option("--intra-op", options.intra_op, "threads per operator; default: one per available core")
      ->check(in_range(1, 1024));
  command->add_flag("--cpu-time", options.cpu_time, "measure the CPU time of one thread: for a machine that is busy");
  command->add_option("--device", options.device, "auto, cpu, cuda or cuda:N");
  command->add_option("--json", words->json, "also write the table to this file as JSON")->type_name("FILE");
  command->add_option("--html", words->html, "also write the table to this file as a page with bars")
      ->type_name("FILE");
  CLI::Option* accuracy =
      command
          ->add_option("--accuracy", words->data,
                       "also train on these images (CIFAR-10) to see how accumulation changes accuracy; takes long")
          ->type_name("DATA");
  command->add_option("--images", words->images, "number of images for --accuracy, spread evenly over the data")
      ->check(in_range<std::int64_t>(1, 1'000'000'000))
      ->needs(accuracy);
  command->callback([words, &exit_code] { exit_code = run_tips(*words); });
}

struct DataWords {
  TrainingWords training;
  study::DataBenchOptions options;
  std::string json;
};

int run_data(DataWords& words) {
  if (!words.json.empty()) {
    check_target("stoker.bench", words.json);
  }
  words.options.request = request_of(words.training);
  job::start_process();
  const std::atomic<bool>& stop = stop_on_signal("stopping after this batch; press again to stop at once");
  StatusLine line;
  words.options.say = [&line](const std::string& text) { line.show(text); };
  words.options.stop = [&stop] { return stop.load(); };
  const study::DataBench bench = study::bench_data(words.options);
  line.hide();
  fmt::print("{}", study::data_bench_text(bench));
  std::fflush(stdout);
  if (!words.json.empty()) {
    write_file_atomically(words.json, study::data_bench_json(bench));
  }
  return bench.stopped ? kStopped : kDone;
}

void add_data(CLI::App& bench, int& exit_code) {
  const auto words = std::make_shared<DataWords>();
  CLI::App* command =
      bench.add_subcommand("data", "Measure how fast this machine loads your data, and where the time goes");
  command->add_option("DATA", words->training.path, "data, as for train");
  add_options(*command, words->training);
  command
      ->add_option("--seconds", words->options.seconds,
                   "time per way of loading; three times as long for ways that tune themselves")
      ->check(in_range(0.05, 3600.0));
  command->add_option("--json", words->json, "also write the result to this file as JSON")->type_name("FILE");
  command->callback([words, &exit_code] { exit_code = run_data(*words); });
}

struct RanksWords {
  study::RanksBenchOptions options;
  double latency_us = 0, megabytes_per_s = 0;
  std::string json;
};

int run_ranks(RanksWords& words) {
  if (!words.json.empty()) {
    check_target("stoker.bench", words.json);
  }
  words.options.latency_s = 1e-6 * words.latency_us;
  words.options.bytes_per_s = 1e6 * words.megabytes_per_s;
  job::start_process();
  const bool first = study::is_first_rank();
  const std::atomic<bool>& stop =
      stop_on_signal(first ? "stopping after this measurement; press again to stop at once" : "");
  StatusLine line;
  words.options.say = [&line](const std::string& text) { line.show(text); };
  words.options.stop = [&stop] { return stop.load(); };
  const study::RanksBench bench = study::bench_ranks(words.options);
  line.hide();
  if (!first) {
    return kDone;
  }
  fmt::print("{}", study::ranks_bench_text(bench));
  std::fflush(stdout);
  if (!words.json.empty()) {
    write_file_atomically(words.json, study::ranks_bench_json(bench));
  }
  return bench.stopped ? kStopped : kDone;
}

void add_ranks(CLI::App& bench, int& exit_code) {
  const auto words = std::make_shared<RanksWords>();
  study::RanksBenchOptions& options = words->options;
  CLI::App* command = bench.add_subcommand(
      "ranks", "Measure what more processes bring, and what messages between them cost; forecast up to 1,024");
  command->add_option("--model", options.model,
                      "a model of `stoker bench tips`: cnn (the default), mlp, resnet50, ...");
  command->add_option("--device", options.device, "cpu (the default), or cuda: each rank has a GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--batch", options.batch, "samples of each rank; default: the model's own")
      ->check(in_range<std::int64_t>(1, 1'048'576));
  command
      ->add_option("--ranks", options.ranks,
                   "the most ranks to measure; default: one per core, at least 4, or one per GPU")
      ->check(in_range(2, 1024));
  command->add_option("--intra-op", options.intra_op, "threads per operator of each rank; default 1")
      ->check(in_range(1, 1024));
  command->add_option("--seconds", options.seconds, "time per measurement; there are about 11 for each number of ranks")
      ->check(in_range(0.01, 3600.0));
  command
      ->add_option("--latency", words->latency_us, "forecast for a network whose messages take this many microseconds")
      ->check(in_range(0.01, 1e7));
  command
      ->add_option("--bandwidth", words->megabytes_per_s, "forecast for a network with this many megabytes per second")
      ->check(in_range(0.001, 1e7));
  command->add_option("--json", words->json, "also write the result to this file as JSON")->type_name("FILE");
  command->callback([words, &exit_code] { exit_code = run_ranks(*words); });
}

// The list that `stoker bench` without a subcommand prints.
void list(CLI::App& bench) {
  for (const CLI::App* each : bench.get_subcommands([](const CLI::App*) { return true; })) {
    fmt::print("stoker bench {:<8} {}\n", each->get_name(), each->get_description());
  }
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("bench", "Measure what makes training faster on this machine");
  add_tips(*command, exit_code);
  add_data(*command, exit_code);
  add_ranks(*command, exit_code);
  command->callback([command, &exit_code] {
    if (command->get_subcommands().empty()) {
      list(*command);
      exit_code = kDone;
    }
  });
}

}  // namespace stoker::app
