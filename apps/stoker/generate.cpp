// SPDX-License-Identifier: Apache-2.0
// stoker generate: generates text with a trained language model.
#include "stoker/job/generate.h"

#include <cstdio>
#include <memory>

#include "commands.h"
#include "stoker/base/fmt.h"
#include "stoker/job/process.h"

namespace stoker::app {

void add_generate(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string run, checkpoint, device = "auto";
    tasks::GenerateRequest request;
    std::uint32_t samples = 1;
  };
  const auto arguments = std::make_shared<Arguments>();
  tasks::GenerateRequest& request = arguments->request;
  CLI::App* command = app.add_subcommand("generate", "Generate text with a trained language model");
  command->add_option("RUN", arguments->run, "run or checkpoint folder")->required();
  command->add_option("--prompt", request.prompt, "start of the text; empty: it begins as if on a new line");
  command->add_option("--tokens", request.tokens, "number of tokens to generate")
      ->check(in_range(0, 100'000'000))
      ->capture_default_str();
  command->add_option("--temperature", request.temperature, "0: always the most likely token")
      ->check(in_range(0.0, 100.0))
      ->capture_default_str();
  command->add_option("--top-k", request.top_k, "sample from this many most likely tokens; 0: from all")
      ->check(in_range(0, 1 << 30))
      ->capture_default_str();
  command->add_option("--seed", request.seed, "the same seed gives the same text")->capture_default_str();
  command->add_option("--samples", arguments->samples, "number of different texts")
      ->check(in_range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--checkpoint", arguments->checkpoint, "best or last; default: best if it exists")
      ->check(CLI::IsMember({"best", "last"}));
  command->add_option("--device", arguments->device, "auto, cpu, cuda or cuda:N");
  command->callback([arguments, &exit_code] {
    job::start_process();
    job::LoadedModel loaded = job::open_model(arguments->run, arguments->device, arguments->checkpoint);
    for (std::uint32_t sample = 0; sample < arguments->samples; ++sample) {
      arguments->request.sample = sample;
      std::string before = (sample == 0 ? "" : "\n---------------\n") + arguments->request.prompt;
      job::generate(loaded, arguments->request, [&](std::string_view piece) {
        fmt::print("{}", std::exchange(before, ""));  // not of a prompt that cannot be read
        std::fwrite(piece.data(), 1, piece.size(), stdout);
        return std::fflush(stdout) == 0;  // people read along
      });
    }
    fmt::print("\n");
    exit_code = kDone;
  });
}

}  // namespace stoker::app
