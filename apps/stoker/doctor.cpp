// SPDX-License-Identifier: Apache-2.0
// stoker doctor: why a training is slow, what a cure would gain, and what to change.
#include <memory>

#include "commands.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/study/doctor/report.h"
#include "stoker/study/doctor/tips.h"
#include "stoker/study/doctor/watch_process.h"
#include "stoker/study/doctor/watch_script.h"

namespace stoker::app {
namespace {

int run_script(const std::string& path, const study::WatchScriptOptions& options) {
  if (options.command.empty() || !path.empty()) {
    fail<ConfigError>("stoker.doctor", "{}; write: stoker doctor -- python train.py",
                      path.empty() ? "no command follows the two dashes" : "give a PATH or a command, not both");
  }
  return study::watch_script(options);
}

struct Words {
  std::string path, out, keep;
  int pid = 0;
  double seconds = 10;
  bool json = false, explain = false;
};

void add_options(CLI::App& command, Words& words) {
  command.add_option("PATH", words.path,
                     "the folder of a run, which may be training; or a trace of any PyTorch program");
  command
      .add_option("--pid", words.pid, "watch this running process from outside; with py-spy installed it tells more")
      ->type_name("PID");
  command.add_option("--seconds", words.seconds, "with --pid: how long to watch; default 10")
      ->check(in_range(4.0, 3600.0))
      ->type_name("SECONDS");
  command
      .add_option("--out", words.out, "with a script: write what is found to this file, and nothing to the terminal")
      ->type_name("FILE");
  command
      .add_option("--keep", words.keep,
                  "with a script: keep its records in this new folder, for `stoker doctor FOLDER`")
      ->type_name("FOLDER");
  command.add_flag("--json", words.json, "print everything as JSON instead");
  command.add_flag(
      "--explain", words.explain,
      "list all tips that Stoker knows, and the rules: what each reads, its threshold, where that is from");
  command.footer(
      "stoker doctor -- python train.py ...   runs an unmodified script with PyTorch and says why it is slow");
}

void print(const study::Examined& examined, bool json) {
  fmt::print("{}\n", json ? study::diagnosis_json(examined) : study::diagnosis_text(examined));
}

void run_words(const Words& words) {
  if (words.explain) {
    fmt::print("The tips (docs/tips.md)\n\n{}\nThe rules (docs/doctor.md)\n\n{}", study::tips_text(),
               study::rules_text());
  } else if (words.pid != 0) {
    fmt::print(stderr, "watching process {} for {:.0f} s\n", words.pid, words.seconds);
    print(study::examine_process(words.pid, words.seconds), words.json);
  } else if (words.path.empty()) {
    fail<ConfigError>("stoker.doctor",
                      "give the folder of a run, a trace, --pid, or a command after two dashes: "
                      "stoker doctor runs/NAME, stoker doctor -- python train.py");
  } else {
    print(study::examine_path(words.path), words.json);
  }
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code, const std::optional<std::vector<std::string>>& script) {
  const auto words = std::make_shared<Words>();
  CLI::App* command =
      app.add_subcommand("doctor", "Say why a training is slow, what a cure would gain, and what to change");
  add_options(*command, *words);
  command->callback([words, &script, &exit_code] {
    exit_code = kDone;
    if (script) {
      exit_code = run_script(words->path, {*script, words->out, words->keep, words->json,
                                           [](const std::string& text) { fmt::print(stderr, "{}", text); }});
    } else {
      run_words(*words);
    }
  });
}

}  // namespace stoker::app
