// SPDX-License-Identifier: Apache-2.0
// stoker __complete: the words that shell completion asks for.
#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/fmt.h"
#include "stoker/job/completion.h"
#include "stoker/study/bench_model.h"
#include "stoker/study/tip.h"

namespace stoker::app {
namespace {

// After `bench`: what there is, its options, and the names that these take, of which commas part several.
std::vector<std::string> complete_bench(const std::vector<std::string>& words) {
  const std::string& last = words.back();
  const std::string before = words.size() > 2 ? words[words.size() - 2] : "";
  const std::string head = last.substr(0, last.rfind(',') + 1);
  std::vector<std::string> candidates{"--models",   "--tips",   "--seconds",  "--quick", "--intra-op", "--cpu-time",
                                      "--pictures", "--device", "--accuracy", "--json",  "--html"};
  if (words.size() == 2) {
    candidates = {"tips"};
  } else if (before == "--models" || before == "--tips") {
    candidates.clear();
    if (before == "--models") {
      for (const study::BenchModelInfo& model : study::bench_models()) {
        candidates.push_back(head + model.name);
      }
    } else {
      for (const study::Tip& tip : study::known_tips()) {
        candidates.push_back(head + tip.id);
      }
    }
  }
  std::erase_if(candidates, [&](const std::string& each) { return !each.starts_with(last); });
  return candidates;
}

}  // namespace

void add_complete(CLI::App& app, int& exit_code) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("__complete", "Candidates for shell completion, one a line");
  command->group("");  // not shown in the help
  command->add_option("WORDS", *words, "the words so far, the last one being completed");
  command->callback([words, &app, &exit_code] {
    std::vector<std::string> commands;
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (!each->get_group().empty()) {
        commands.push_back(each->get_name());
      }
    }
    const bool bench = words->size() > 1 && words->front() == "bench";
    for (const std::string& candidate : bench ? complete_bench(*words) : job::complete(commands, *words)) {
      fmt::print("{}\n", candidate);
    }
    exit_code = kDone;
  });
}

}  // namespace stoker::app
