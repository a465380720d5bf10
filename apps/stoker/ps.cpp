// SPDX-License-Identifier: Apache-2.0
// stoker ps: shows who holds GPU memory, and ends a chosen holder.
#include <cstdio>
#include <memory>
#include <string>

#include "ask.h"
#include "commands.h"
#include "stoker/base/fmt.h"
#include "stoker/study/ps/free.h"
#include "stoker/study/ps/ps_text.h"

namespace stoker::app {
namespace {

int free_holder(int pid) {
  if (study::free_gpu(pid, [](const std::string& question) { return typed_yes(question, stdout); })) {
    fmt::print("process {} has ended\n", pid);
    return kDone;
  }
  fmt::print("nothing was done\n");
  return kRefused;
}

}  // namespace

void add_ps(CLI::App& app, int& exit_code) {
  struct Arguments {
    bool json = false;
    int free = 0;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("ps", "Show who holds GPU memory, running trainings and leftover workers");
  CLI::Option* json = command->add_flag("--json", arguments->json, "print JSON");
  command->add_option("--free", arguments->free, "end this holder of a GPU, after a question")
      ->type_name("PID")
      ->check(in_range(1, 1 << 30))
      ->excludes(json);
  command->callback([arguments, &exit_code] {
    if (arguments->free > 0) {
      exit_code = free_holder(arguments->free);
      return;
    }
    const study::Holders holders = study::find_holders();
    fmt::print("{}", arguments->json ? study::holders_json(holders) : study::holders_text(holders));
    exit_code = kDone;
  });
}

}  // namespace stoker::app
