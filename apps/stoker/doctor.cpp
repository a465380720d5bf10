// SPDX-License-Identifier: Apache-2.0
// stoker doctor: why a training is slow, what a cure would gain, and what to change.
#include <memory>

#include "commands.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/study/doctor/report.h"

namespace stoker::app {

void add_doctor(CLI::App& app, int& exit_code) {
  struct Words {
    std::string path;
    bool json = false, explain = false;
  };
  const auto words = std::make_shared<Words>();
  CLI::App* command =
      app.add_subcommand("doctor", "Say why a training is slow, what a cure would gain, and what to change");
  command->add_option("PATH", words->path,
                      "the folder of a run, which may be training; or a trace of any PyTorch program");
  command->add_flag("--json", words->json, "print everything as JSON instead");
  command->add_flag("--explain", words->explain,
                    "list the rules: what each reads, its threshold, and where that is from");
  command->callback([words, &exit_code] {
    if (words->explain) {
      fmt::print("{}", study::rules_text());
    } else if (words->path.empty()) {
      fail<ConfigError>("stoker.doctor", "give the folder of a run, or a trace: stoker doctor runs/NAME");
    } else {
      const study::Examined examined = study::examine_path(words->path);
      fmt::print("{}\n", words->json ? study::diagnosis_json(examined) : study::diagnosis_text(examined));
    }
    exit_code = kDone;
  });
}

}  // namespace stoker::app
