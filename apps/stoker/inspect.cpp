// SPDX-License-Identifier: Apache-2.0
// stoker inspect: checks the data. Reads every image, row or line once.
#include "stoker/study/inspect/inspect.h"

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "status_line.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/thousands.h"
#include "stoker/study/inspect/by_kind.h"
#include "stoker/study/inspect/report.h"

namespace stoker::app {
namespace {

struct InspectWords {
  std::string data, json, html = "inspect.html";
  std::vector<std::string> assignments;
  study::InspectOptions options;
};

std::string status(const study::InspectProgress& progress) {
  return progress.of > 0 ? fmt::format("{} of {} images, {:.0f} per second, {:.0f} s left", thousands(progress.looked),
                                       thousands(progress.of), progress.rate, progress.seconds_left)
                         : fmt::format("{} files found", thousands(progress.files));
}

// Prints the text, then writes the requested files.
void hand_out(const InspectWords& words, const std::string& text, const std::function<std::string()>& json,
              const std::function<std::string()>& page) {
  fmt::print("{}", text);
  std::fflush(stdout);  // before anything else can fail
  if (!words.json.empty()) {
    write_file_atomically(words.json, json());
  }
  if (!words.html.empty()) {
    write_file_atomically(words.html, page());
    fmt::print("\nreport: {}\n", printable(words.html));
  }
}

int run_inspect(InspectWords& words) {
  for (const std::string& file : {words.json, words.html}) {
    if (!file.empty()) {
      check_target("stoker.inspect", file);
    }
  }
  if (const auto sheet = study::inspect_by_kind(words.data, words.assignments)) {
    hand_out(
        words, study::sheet_text(*sheet), [&] { return study::sheet_json(*sheet); },
        [&] { return study::sheet_page(*sheet); });
    return kDone;
  }
  const std::atomic<bool>& stop = stop_on_signal("stopping; the results so far follow. Press again to stop at once");
  StatusLine line(/*apart=*/10);
  words.options.progress = [&line](const study::InspectProgress& progress) { line.show(status(progress)); };
  words.options.stop = [&stop] { return stop.load(); };
  const study::InspectReport report(study::inspect_images(words.data, words.options));
  line.hide();
  hand_out(
      words, study::inspect_text(report), [&] { return study::inspect_json(report); },
      [&] { return study::inspect_page(report); });
  return report.found.stopped ? kStopped : kDone;
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<InspectWords>();
  CLI::App* command = app.add_subcommand("inspect", "Check data: duplicates, leaks, bad files, sizes, columns");
  command->add_option("DATA", words->data, "data as for train: a folder or tar file of images, a table, a text")
      ->required();
  command->add_option(kOptions, words->assignments, "for a table: target=, sep=, header=, regression=, leave_out=");
  command->add_option("--images", words->options.images, "maximum number of images, spread over the data; default: all")
      ->check(in_range<std::int64_t>(1, 1'000'000'000));
  command->add_option("--threads", words->options.threads, "number of threads; default: one per available core")
      ->check(in_range(1, 1024));
  command->add_option("--html", words->html, "HTML report; default inspect.html, \"\" for none")->type_name("FILE");
  command->add_option("--json", words->json, "also write the result to this file as JSON")->type_name("FILE");
  command->callback([words, &exit_code] { exit_code = run_inspect(*words); });
}

}  // namespace stoker::app
