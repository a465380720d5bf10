// SPDX-License-Identifier: Apache-2.0
// stoker report: one page that shows a run, or compares several runs.
#include "stoker/job/report.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker::app {

void add_report(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::vector<std::string> runs;
    std::string out;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("report", "Write report.html with curves, images and plan; or compare several runs");
  command->add_option("RUN", arguments->runs, "run folders")->required();
  command
      ->add_option("--out", arguments->out, "file to write; default: RUN/report.html, comparison.html for several runs")
      ->type_name("FILE");
  command->callback([arguments, &exit_code] {
    const std::vector<std::filesystem::path> runs(arguments->runs.begin(), arguments->runs.end());
    fmt::print("{}\n", printable(job::write_report(runs, arguments->out).native()));
    exit_code = kDone;
  });
}

}  // namespace stoker::app
