// SPDX-License-Identifier: Apache-2.0
// stoker eval, stoker predict: what a trained model is worth, and what it says.
#include <cmath>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/job/console.h"
#include "stoker/job/predict.h"

namespace stoker::app {
namespace {

struct EvalArguments {
  std::string run, data, split, checkpoint, device = "auto";
  bool json = false;
};

struct PredictArguments {
  std::string run, format = "csv", out, checkpoint, device = "auto";
  std::vector<std::string> files;
  int top_k = 5;
};

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<EvalArguments>();
  CLI::App* command = app.add_subcommand("eval", "Metrics of a run or checkpoint on a split, also per class");
  command->add_option("RUN", arguments->run, "run or checkpoint folder")->required();
  command->add_option("DIR", arguments->data, "data; the run's own if left out");
  command->add_option("--split", arguments->split, "train, val, test, or all; test if there is one, else val")
      ->check(CLI::IsMember({"train", "val", "test", "all"}));
  command->add_option("--checkpoint", arguments->checkpoint, "best or last; best if there is one")
      ->check(CLI::IsMember({"best", "last"}));
  command->add_option("--device", arguments->device, "auto, cpu, cuda or cuda:N");
  command->add_flag("--json", arguments->json, "as one JSON object");
  command->callback([arguments, &exit_code] {
    const job::SplitReport report =
        job::evaluate_run(arguments->run, arguments->data, arguments->split, arguments->checkpoint, arguments->device);
    fmt::print("{}", arguments->json ? job::report_json(report) : job::report_table(report));
    exit_code = kDone;
  });
}

void add_predict(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<PredictArguments>();
  CLI::App* command = app.add_subcommand("predict", "Classes and probabilities for files and folders");
  command->add_option("RUN", arguments->run, "run or checkpoint folder")->required();
  command->add_option("FILES", arguments->files, "pictures, or folders of them")->required();
  command->add_option("--top", arguments->top_k, "guesses a picture")->check(CLI::Range(1, 1'000'000));
  command->add_option("--format", arguments->format, "csv or json (one object a line)")->check(CLI::IsMember({"csv", "json"}));
  command->add_option("--out", arguments->out, "file to write instead of standard output");
  command->add_option("--checkpoint", arguments->checkpoint, "best or last; best if there is one")
      ->check(CLI::IsMember({"best", "last"}));
  command->add_option("--device", arguments->device, "auto, cpu, cuda or cuda:N");
  command->callback([arguments, &exit_code] {
    job::PredictionWriter writer(arguments->out, arguments->format == "json");
    auto loaded = job::load_model(arguments->run, job::device_named(arguments->device), arguments->checkpoint);
    const std::vector<std::filesystem::path> paths(arguments->files.begin(), arguments->files.end());
    std::int64_t unreadable = 0;
    job::predict_files(loaded, job::find_pictures(paths), arguments->top_k, 64, [&](const job::Prediction& prediction) {
      unreadable += prediction.error.empty() ? 0 : 1;
      if (!prediction.error.empty()) {
        fmt::print(stderr, "stoker: {}\n", prediction.error);
      }
      writer.write(prediction);
    });
    writer.finish();
    exit_code = unreadable == 0 ? kDone : kDataError;
  });
}

}  // namespace stoker::app
