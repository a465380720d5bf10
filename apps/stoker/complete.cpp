// SPDX-License-Identifier: Apache-2.0
// stoker __complete: candidates for shell completion.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "commands.h"
#include "stoker/base/fmt.h"
#include "stoker/job/completion.h"
#include "stoker/study/tips/bench_model.h"
#include "stoker/study/tips/tip.h"

namespace stoker::app {
namespace {

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!each->get_group().empty()) {
      names.push_back(each->get_name());
    }
  }
  return names;
}

// Null for an unknown name.
const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* each : command.get_options()) {
    for (const std::string& name : each->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> beginning_with(const std::string& word, std::vector<std::string> candidates) {
  std::erase_if(candidates, [&](const std::string& each) { return !each.starts_with(word); });
  return candidates;
}

// After `bench`: subcommands, their flags, and the names that these take, separated by commas.
std::vector<std::string> complete_bench(const CLI::App& bench, const std::vector<std::string>& words) {
  const std::string& last = words.back();
  const std::string before = words.size() > 2 ? words[words.size() - 2] : "";
  const std::string head = last.substr(0, last.rfind(',') + 1);
  const std::vector<std::string> commands = commands_of(bench);
  std::vector<std::string> candidates;
  if (words.size() == 2) {
    candidates = commands;
  } else if (before == "--models") {
    for (const study::BenchModelInfo& model : study::bench_models()) {
      candidates.push_back(head + model.name);
    }
  } else if (before == "--tips") {
    for (const study::Tip& tip : study::known_tips()) {
      candidates.push_back(head + tip.id);
    }
  } else if (std::ranges::find(commands, words[1]) != commands.end()) {
    candidates = flags_of(*bench.get_subcommand(words[1]));
  }
  return beginning_with(last, std::move(candidates));
}

}  // namespace

void add_complete(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("__complete", "Candidates for shell completion, one per line");
  command->group("");  // not shown in the help
  command->add_option("WORDS", *words, "the words so far; the last one is completed");
  command->callback([words, &app, &exit_code] {
    const CLI::App* chosen = words->size() > 1 ? find_command(app, words->front()) : nullptr;
    std::vector<std::string> candidates;
    if (chosen != nullptr && chosen->get_name() == "bench") {
      candidates = complete_bench(*chosen, *words);
    } else {
      const auto flags = chosen == nullptr ? std::vector<std::string>() : flags_of(*chosen);
      candidates = job::complete(commands_of(app), flags, *words);
    }
    for (const std::string& candidate : candidates) {
      fmt::print("{}\n", candidate);
    }
    exit_code = kDone;
  });
}

}  // namespace stoker::app
