// SPDX-License-Identifier: Apache-2.0
// stoker predict: predictions of a trained model for images or table rows.
#include "stoker/job/predict.h"

#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/job/prediction_writer.h"
#include "stoker/job/process.h"

namespace stoker::app {
namespace {

struct PredictArguments {
  std::string run, format = "csv", out, checkpoint, device = "auto";
  std::vector<std::string> files;
  int top_k = 5;
};

// The error on its way is the one that the command ends with.
void finish_before_error(job::PredictionWriter& writer) {
  try {
    writer.finish();
  } catch (const Error& second) {
    fmt::print(stderr, "stoker: {}\n", second.what());
  }
}

int run_predict(const PredictArguments& arguments) {
  if (!arguments.out.empty()) {
    check_target("stoker.predict", arguments.out);
  }
  job::PredictionWriter writer(arguments.out, arguments.format == "json");
  job::start_process();
  job::LoadedModel loaded = job::open_model(arguments.run, arguments.device, arguments.checkpoint);
  const auto source = job::open_unlabelled(loaded, {arguments.files.begin(), arguments.files.end()});
  for (const std::string& finding : source->findings()) {
    fmt::print(stderr, "note: {}\n", printable(finding));
  }
  std::int64_t answered = 0, unreadable = 0;
  try {
    job::predict(loaded, *source, arguments.top_k, 64, [&](const job::Prediction& prediction) {
      const std::string& error = prediction.sample.error;
      unreadable += error.empty() ? 0 : 1;
      if (!error.empty()) {
        fmt::print(stderr, "stoker: {}\n", error);
      }
      writer.write(prediction);
      ++answered;
    });
  } catch (...) {
    if (answered > 0) {
      finish_before_error(writer);
    }
    throw;
  }
  writer.finish();
  return unreadable == 0 ? kDone : kDataError;
}

}  // namespace

void add_predict(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<PredictArguments>();
  CLI::App* command =
      app.add_subcommand("predict", "Predict classes with probabilities, or numbers, for images or table rows");
  command->add_option("RUN", arguments->run, "run or checkpoint folder")->required();
  command
      ->add_option("FILES", arguments->files,
                   "images or folders of images; tables with the same columns as in training")
      ->required();
  command->add_option("--top", arguments->top_k, "number of predictions per image or row")
      ->check(in_range(1, 1'000'000));
  command->add_option("--format", arguments->format, "csv or json (one object per line)")
      ->check(CLI::IsMember({"csv", "json"}));
  command->add_option("--out", arguments->out, "write to this file instead of standard output")->type_name("FILE");
  command->add_option("--checkpoint", arguments->checkpoint, "best or last; default: best if it exists")
      ->check(CLI::IsMember({"best", "last"}));
  command->add_option("--device", arguments->device, "auto, cpu, cuda or cuda:N");
  command->callback([arguments, &exit_code] { exit_code = run_predict(*arguments); });
}

}  // namespace stoker::app
