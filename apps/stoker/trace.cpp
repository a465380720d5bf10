// SPDX-License-Identifier: Apache-2.0
// stoker trace: what a recorded trace of any PyTorch program holds; several ranks, or two traces side by side.
#include <cstdio>
#include <memory>

#include "commands.h"
#include "status_line.h"
#include "stoker/base/bytes_text.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/study/trace/open_traces.h"

namespace stoker::app {
namespace {

struct TraceWords {
  std::vector<std::string> files;
  bool json = false, compare = false, ranks = false;
  std::string html;
  study::TraceReportOptions options;
};

int run_trace(const TraceWords& words) {
  if (words.compare && words.ranks) {
    fail<ConfigError>("stoker.trace", "--compare and --ranks exclude each other; give one of them");
  }
  if (!words.html.empty()) {
    check_target("stoker.trace", words.html);
  }
  const study::TracesAre how = words.compare ? study::TracesAre::kBeforeAfter
                               : words.ranks ? study::TracesAre::kRanks
                                             : study::TracesAre::kUnsaid;
  StatusLine line(/*apart=*/10);
  const study::OpenedTraces opened =
      study::open_traces(words.files, how, [&](const std::string& file, std::int64_t bytes) {
        line.show(fmt::format("{}: {} of JSON read", printable(file), bytes_text(bytes)));
      });
  line.hide();
  for (const std::string& reason : opened.passed_over) {
    fmt::print(stderr, "note: passed over: {}\n", printable(reason));
  }
  const auto& traces = opened.traces;
  if (words.json) {
    fmt::print("{}\n", opened.comparison ? study::comparison_json(*traces[0], *traces[1]) : study::trace_json(traces));
  } else {
    fmt::print("{}", opened.comparison ? study::comparison_text(*traces[0], *traces[1], words.options)
                                       : study::trace_text(traces, words.options));
  }
  std::fflush(stdout);  // before anything else can fail
  if (!words.html.empty()) {
    write_file_atomically(words.html, opened.comparison ? study::comparison_page(*traces[0], *traces[1])
                                                        : study::trace_page(traces, words.options));
    if (!words.json) {
      fmt::print("\npage: {}\n", printable(words.html));
    }
  }
  return kDone;
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<TraceWords>();
  CLI::App* command =
      app.add_subcommand("trace", "Explain recorded traces of PyTorch programs: busy and idle time, kernels, ranks");
  command
      ->add_option("FILE", words->files,
                   "a trace of torch.profiler (.json, .json.gz), a tar archive or a folder of ranks; two files: before "
                   "and after a change")
      ->required();
  command->add_flag("--json", words->json, "print everything as JSON instead");
  command->add_option("--html", words->html, "also write a page with the time line of a step")->type_name("FILE");
  command->add_option("--rows", words->options.rows, "maximum number of rows of a table; default 15")
      ->type_name("N")
      ->check(in_range<std::size_t>(1, 1'000'000));
  command->add_option("--step", words->options.step, "step shown on the page, from 0; default: one of median duration")
      ->type_name("N")
      ->check(in_range<std::int64_t>(0, 1'000'000'000));
  CLI::Option* const compare =
      command->add_flag("--compare", words->compare, "two files are before and after a change");
  command->add_flag("--ranks", words->ranks, "the files are ranks of one training")->excludes(compare);
  command->callback([words, &exit_code] { exit_code = run_trace(*words); });
}

}  // namespace stoker::app
