// SPDX-License-Identifier: Apache-2.0
// Entry point of the command line: runs a subcommand and turns errors into exit codes.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/nearest.h"
#include "stoker/job/options_text.h"
#include "stoker/job/process.h"

namespace stoker::app {
namespace {

// Options are words KEY=VALUE and flags begin with dashes, so the help does not call both "options".
class Help final : public CLI::Formatter {
 public:
  Help() { label("OPTIONS", "FLAGS"); }
  [[nodiscard]] std::string make_group(std::string group, bool positional,
                                       std::vector<const CLI::Option*> options) const override {
    return CLI::Formatter::make_group(group == "Options" ? "Flags" : std::move(group), positional, std::move(options));
  }
  [[nodiscard]] std::string make_option_name(const CLI::Option* option, bool positional) const override {
    return option->get_name() == kOptions ? "KEY=VALUE" : CLI::Formatter::make_option_name(option, positional);
  }
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional()) {  // the usage line shows which are required
      return option->get_items_expected_max() > 1 ? " ..." : "";
    }
    return CLI::Formatter::make_option_opts(option);
  }
};

// The first word that is not a flag must be a command. A command with subcommands must be followed by one of them.
void check_command(const CLI::App& app, std::span<char*> words, const std::string& said = "stoker") {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (commands.empty() || words.empty() || words[0][0] == '-') {
    return;
  }
  std::vector<std::string> names;
  for (const CLI::App* each : commands) {
    if (each->get_name() == words[0]) {
      return check_command(*each, words.subspan(1), said + " " + words[0]);
    }
    if (!each->get_group().empty()) {
      names.push_back(each->get_name());
    }
  }
  fail<ConfigError>("stoker", "{}",
                    unknown_name("command", words[0], names, fmt::format("`{} --help` lists them", said)));
}

// Of `stoker doctor FLAGS -- COMMAND`: the command, whose words are not ours.
std::optional<std::vector<std::string>> script_after_dashes(std::span<char*> words) {
  const auto dashes = std::ranges::find(words, std::string_view("--"));
  if (words.empty() || words[0] != std::string_view("doctor") || dashes == words.end()) {
    return std::nullopt;
  }
  return std::vector<std::string>(dashes + 1, words.end());
}

// The command that the words name; with `bench data`, the second one.
const CLI::App& parsed_command(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? app : parsed_command(*parsed.front());
}

// Helps people who write `--batch-size 64` instead of batch=64.
void hint_at_option(const CLI::App& command, std::span<char*> words) {
  if (command.get_name() == "doctor") {
    fmt::print(stderr, "stoker: a command follows two dashes: stoker doctor -- python train.py\n");
  }
  if (command.get_option_no_throw(kOptions) == nullptr) {
    return;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    const std::size_t equals = std::min(word.find('='), word.size());
    if (!word.starts_with("--") || equals == 2 || command.get_option_no_throw(word.substr(0, equals)) != nullptr) {
      continue;
    }
    std::string name = word.substr(2, equals - 2);
    std::ranges::replace(name, '-', '_');
    const std::string next = i + 1 < words.size() && words[i + 1][0] != '-' ? words[i + 1] : "VALUE";
    const std::string value = equals < word.size() ? word.substr(equals + 1) : next;
    if (const std::string instead = job::option_instead(command.get_name(), name, printable(value)); !instead.empty()) {
      fmt::print(stderr, "stoker: training options have no dashes; {}\n", instead);
    }
  }
}

// Printed text may still be in a buffer that a full disk cannot take.
void flush_output() {
  const bool refused = std::fflush(stdout) != 0;
  if (refused || std::ferror(stdout) != 0) {
    fail<IoError>("stoker", "standard output cannot be written: {}",
                  refused ? std::strerror(errno) : "its reader is gone, or the disk is full");
  }
}

int run(int argc, char** argv) {
  CLI::App app("Stoker trains networks: it keeps the GPU fed, fits its memory, and explains every idle millisecond.");
  app.name("stoker");
  app.require_subcommand(1);
  app.formatter(std::make_shared<Help>());
  app.failure_message([](const CLI::App* command, const CLI::Error& error) {
    return "stoker: " + CLI::FailureMessage::simple(command, error);
  });
  app.set_version_flag("--version", job::version_text());
  int exit_code = kDone;
  const auto all_words = std::span(argv, static_cast<std::size_t>(argc)).subspan(1);
  const auto script = script_after_dashes(all_words);
  const auto words = all_words.first(all_words.size() - (script ? script->size() + 1 : 0));
  add_train(app, exit_code);
  add_plan(app, exit_code);
  add_tune(app, exit_code);
  add_resume(app, exit_code);
  add_eval(app, exit_code);
  add_predict(app, exit_code);
  add_generate(app, exit_code);
  add_export(app, exit_code);
  add_report(app, exit_code);
  add_info(app, exit_code);
  add_memory(app, exit_code);
  add_profile(app, exit_code);
  add_inspect(app, exit_code);
  add_doctor(app, exit_code, script);
  add_trace(app, exit_code);
  add_ps(app, exit_code);
  add_top(app, exit_code);
  add_bench(app, exit_code);
  add_complete(app, exit_code);
  app.footer(  // added after the commands, which would inherit it
      "Start with `stoker train DATA`. DATA is a folder with one subfolder of images per class, a table (with\n"
      "target=COLUMN) or a text.\n"
      "Exit codes: 0 done, 2 usage, 65 data, 71 device or memory, 74 I/O, 75 stopped (continue training with\n"
      "stoker resume), 1 training failed, 130 stopped with nothing to continue.");
  check_command(app, words);
  try {
    app.parse(static_cast<int>(words.size()) + 1, argv);
  } catch (const CLI::ExtrasError& error) {
    app.exit(error);
    hint_at_option(parsed_command(app), words);
    return kUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  flush_output();
  return exit_code;
}

int fail_with(int code, const char* text) {
  std::fflush(stdout);
  std::fprintf(stderr, "stoker: %s\n", text);
  return code;
}

}  // namespace
}  // namespace stoker::app

int main(int argc, char** argv) {
  using namespace stoker;
  using namespace stoker::app;
  try {
    int exit_code = kFailed;
    job::with_typed_errors([&] { exit_code = run(argc, argv); });
    return exit_code;
  } catch (const ConfigError& error) {
    return fail_with(kUsage, error.what());
  } catch (const DataError& error) {
    return fail_with(kDataError, error.what());
  } catch (const CheckpointError& error) {
    return fail_with(kDataError, error.what());
  } catch (const DeviceError& error) {
    return fail_with(kDeviceError, error.what());
  } catch (const OutOfMemory& error) {
    return fail_with(kDeviceError, error.what());
  } catch (const IoError& error) {
    return fail_with(kIoError, error.what());
  } catch (const RankError& error) {
    return fail_with(kStopped, error.what());
  } catch (const std::exception& error) {
    return fail_with(kFailed, error.what());
  }
}
