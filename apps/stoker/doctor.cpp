// SPDX-License-Identifier: Apache-2.0
// stoker doctor: why a training is slow, what a cure would gain, and what to change.
#include <memory>

#include "ask.h"
#include "commands.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/study/doctor/apply_cures.h"
#include "stoker/study/doctor/patch.h"
#include "stoker/study/doctor/report.h"
#include "stoker/study/doctor/score.h"
#include "stoker/study/doctor/tips.h"
#include "stoker/study/doctor/try_cures.h"
#include "stoker/study/doctor/watch_process.h"
#include "stoker/study/doctor/watch_script.h"

namespace stoker::app {
namespace {

struct Words {
  std::string path, out, keep, patch, html;
  int pid = 0, steps = 60, pairs = 5;
  double seconds = 10;
  bool json = false, explain = false, try_cures = false, apply = false, yes = false, in_place = false;
};

void tell(const std::string& text) { fmt::print(stderr, "{}", text); }

void write_patch(const std::string& file, std::span<const study::Cure> changes, const study::Examined& examined) {
  const std::string patch = study::patch_of(changes, examined.facts);
  write_file_atomically(file, patch);
  for (std::size_t begin = 0; patch.compare(begin, study::kNotInPatch.size(), study::kNotInPatch) == 0;) {
    const std::size_t end = patch.find('\n', begin);
    tell(patch.substr(begin, end - begin) + "\n");
    begin = end + 1;
  }
  tell(patch.find("@@") == std::string::npos
           ? fmt::format("{}: no change, since none has a place in the script\n", printable(file))
           : fmt::format("{}: the changes, for `git apply`\n", printable(file)));
}

// Findings whose cure is no single change of a call.
void tell_rest(const study::Examined& examined) {
  for (const observe::doctor::Found& each : examined.diagnosis.found) {
    if (each.worth_saying() && each.finding.option.empty()) {
      tell(fmt::format("not in the patch: {}: {}\n", each.rule->id, each.finding.cure));
    }
  }
}

// What trials told, on standard output or in the file, and then what may fail.
int print(const Words& words, const study::Trials& trials, const std::string& next = {}) {
  const std::string text = words.json ? study::trials_json(trials) + "\n" : study::trials_text(trials.tried) + next;
  words.out.empty() ? fmt::print("{}", text) : write_file_atomically(words.out, text);
  if (trials.stopped) {
    tell("stopped before all was tried; nothing was changed\n");
  }
  std::vector<study::Cure> kept;
  bool measured = trials.tried.empty();
  for (const study::Tried& each : trials.tried) {
    measured = measured || each.trouble.empty();
    if (each.kept) {
      kept.push_back(each.cure);
    }
  }
  if (!words.patch.empty()) {
    write_patch(words.patch, kept, trials.examined);
  }
  try {
    study::keep_score(trials.tried);
    tell(study::score_text());
  } catch (const IoError& error) {
    tell(fmt::format("{}\n", error.what()));
  }
  return trials.stopped ? kRefused : measured ? kDone : kDataError;
}

int apply_to_run(const Words& words) {
  const study::ApplyOptions options{.run = words.path, .pairs = words.pairs, .say = tell};
  const study::Trials trials = study::apply_cures(options);
  const std::string next = study::next_command(options, trials);
  return print(words, trials,
               next.empty() ? "" : "\nGo on with (a run that has ended needs more epochs=, too):\n" + next);
}

int try_script(const Words& words, const std::vector<std::string>& command) {
  const study::TryOptions options{
      .command = command, .steps = words.steps, .pairs = words.pairs, .in_place = words.in_place, .say = tell};
  if (!words.yes && !typed_yes(study::plan_of_trials(options) + "Start? [yes/no] ", stderr)) {
    tell("nothing was done\n");
    return kRefused;
  }
  return print(words, study::try_cures(options));
}

// What a flag is for, where it would have no effect.
void check_flags(const Words& words, bool script) {
  const auto refuse = [](bool wrong, const char* flag, const char* purpose) {
    if (wrong) {
      fail<ConfigError>("stoker.doctor", "{} is for {}", flag, purpose);
    }
  };
  refuse(script && words.apply, "--apply", "a run of Stoker: stoker doctor --apply runs/NAME");
  refuse(script && !words.html.empty(), "--html", "a PATH; keep a script's records with --keep FOLDER first");
  refuse(words.try_cures && !words.keep.empty(), "--keep", "a script that is watched, without --try");
  refuse(!script && !words.keep.empty(), "--keep", "a script: stoker doctor --keep FOLDER -- python train.py");
  refuse(!script && !words.patch.empty(), "--patch", "a script: stoker doctor --patch FILE -- python train.py");
  refuse(!script && !words.out.empty() && !words.apply, "--out", "a script, and for --apply");
  for (const std::string& file : {words.patch, words.out, words.html}) {
    if (!file.empty()) {
      check_target("stoker.doctor", file);
    }
  }
}

int run_script(const Words& words, const std::vector<std::string>& command) {
  if (command.empty() || !words.path.empty()) {
    fail<ConfigError>("stoker.doctor", "{}; write: stoker doctor -- python train.py",
                      words.path.empty() ? "no command follows the two dashes" : "give a PATH or a command, not both");
  }
  check_flags(words, true);
  if (words.try_cures) {
    return try_script(words, command);
  }
  return study::watch_script({command, words.out, words.keep, words.json, tell, [&](const study::Examined& examined) {
                                if (!words.patch.empty()) {
                                  write_patch(words.patch, study::proposed(examined), examined);
                                  tell_rest(examined);
                                }
                              }});
}

void add_try(CLI::App& command, Words& words) {
  CLI::Option* const tries = command.add_flag("--try", words.try_cures,
                                              "with a script: try what may help in short runs, with and without each "
                                              "change in turns; the script stays as it is");
  command
      .add_flag("--apply", words.apply,
                "with a run: measure what its findings propose, in short trainings like it, and say how to go on")
      ->excludes(tries);
  command.add_flag("--yes", words.yes, "with --try: do not ask")->needs(tries);
  command.add_option("--steps", words.steps, "with --try: steps of a run that are measured, 5 to 100000; default 60")
      ->needs(tries)
      ->check(in_range(5, 100'000))
      ->type_name("N");
  command
      .add_option("--pairs", words.pairs,
                  "with --try and --apply: runs with and without a change, in turns, 3 to 100; default 5")
      ->check(in_range(3, 100))
      ->type_name("N");
  command
      .add_flag("--in-place", words.in_place,
                "with --try: what the script writes in this folder is real, where it cannot be kept apart")
      ->needs(tries);
}

void add_options(CLI::App& command, Words& words) {
  command.add_option(
      "PATH", words.path,
      "the folder of a run, which may be training; or a trace of any PyTorch program, or a folder of traces "
      "of its ranks");
  command
      .add_option("--pid", words.pid, "watch this running process from outside; with py-spy installed it tells more")
      ->type_name("PID");
  command.add_option("--seconds", words.seconds, "with --pid: how long to watch, 4 to 3600; default 10")
      ->check(in_range(4.0, 3600.0))
      ->type_name("SECONDS");
  command
      .add_option("--out", words.out,
                  "with a script or --apply: write what is found to this file, and nothing to the terminal")
      ->type_name("FILE");
  command
      .add_option("--keep", words.keep,
                  "with a script: keep its records in this new folder, for `stoker doctor FOLDER`")
      ->type_name("FOLDER");
  command.add_option("--html", words.html, "with a PATH: also write a page, with the evidence on the time line")
      ->type_name("FILE");
  command
      .add_option("--patch", words.patch,
                  "with a script: write the changes to this file, for `git apply`; with --try those that gained")
      ->type_name("FILE");
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

int run_words(const Words& words) {
  check_flags(words, false);
  if (words.apply && !words.path.empty()) {
    return apply_to_run(words);
  }
  if (words.explain) {
    fmt::print("The tips (docs/tips.md)\n\n{}\nThe rules (docs/doctor.md)\n\n{}{}", study::tips_text(),
               study::rules_text(), study::score_text());
  } else if (words.pid != 0) {
    if (std::error_code error; std::filesystem::exists(fmt::format("/proc/{}", words.pid), error)) {
      fmt::print(stderr, "watching process {} for {:.0f} s\n", words.pid, words.seconds);
    }
    print(study::examine_process(words.pid, words.seconds), words.json);
  } else if (words.try_cures && !words.path.empty()) {
    fail<ConfigError>("stoker.doctor",
                      "--try is for a script: stoker doctor --try -- python train.py; of a run, --apply tries changes");
  } else if (words.path.empty() || words.try_cures) {
    fail<ConfigError>("stoker.doctor",
                      "give the folder of a run, a trace, --pid, or a command after two dashes: "
                      "stoker doctor runs/NAME, stoker doctor -- python train.py");
  } else if (words.path.ends_with(".py")) {
    fail<ConfigError>("stoker.doctor", "{}: is a script; run it: stoker doctor -- python {}", printable(words.path),
                      printable(words.path));
  } else {
    const study::Examined examined = study::examine_path(words.path);
    if (!words.html.empty()) {
      write_file_atomically(words.html, study::diagnosis_page(examined, words.path));
    }
    print(examined, words.json);
  }
  return kDone;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code, const std::optional<std::vector<std::string>>& script) {
  const auto words = std::make_shared<Words>();
  CLI::App* command =
      app.add_subcommand("doctor", "Say why a training is slow, what a cure would gain, and what to change");
  add_options(*command, *words);
  add_try(*command, *words);
  command->callback(
      [words, &script, &exit_code] { exit_code = script ? run_script(*words, *script) : run_words(*words); });
}

}  // namespace stoker::app
