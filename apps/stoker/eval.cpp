// SPDX-License-Identifier: Apache-2.0
// stoker eval: metrics of a trained model on a split.
#include <memory>

#include "commands.h"
#include "stoker/base/fmt.h"
#include "stoker/job/process.h"
#include "stoker/job/split_report.h"

namespace stoker::app {
namespace {

struct EvalArguments {
  std::string run, data, split, checkpoint, device = "auto";
  bool json = false;
};

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<EvalArguments>();
  CLI::App* command = app.add_subcommand("eval", "Evaluate a run or checkpoint on a split: metrics, also per class");
  command->add_option("RUN", arguments->run, "run or checkpoint folder")->required();
  command->add_option("DATA", arguments->data, "data; default: the data of the run; other data is not split");
  command
      ->add_option("--split", arguments->split,
                   "train, val, test or all; default: test if it exists, else val, else all")
      ->check(CLI::IsMember({"train", "val", "test", "all"}));
  command->add_option("--checkpoint", arguments->checkpoint, "best or last; default: best if it exists")
      ->check(CLI::IsMember({"best", "last"}));
  command->add_option("--device", arguments->device, "auto, cpu, cuda or cuda:N");
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments, &exit_code] {
    job::start_process();
    const job::SplitReport report =
        job::evaluate_run(arguments->run, arguments->data, arguments->split, arguments->checkpoint, arguments->device);
    fmt::print("{}", arguments->json ? job::report_json(report) : job::report_table(report));
    exit_code = kDone;
  });
}

}  // namespace stoker::app
