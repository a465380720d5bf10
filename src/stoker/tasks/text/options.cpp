// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/text/options.h"

namespace stoker::tasks {
namespace {

using core::always;
using core::depends;
using core::File;
using core::Real;
using core::Text;
using core::Whole;
using O = TextTaskOptions;
using Rows = std::vector<core::OptionRow<O>>;

constexpr auto B = core::OptionGroup::kBehaviour;
constexpr auto P = core::OptionGroup::kPerformance;

// A row per option: field, key, group, type, default with its reason, help, names in other tools.
// clang-format off
Rows network_options() {
  return {
      {&O::tokenizer, {"tokenizer", B,
                       File{.expected = "bytes, characters or a tokenizer.json", .words = {"bytes", "characters"},
                            .may_be_empty = false},
                       depends("characters if the text has at most 256 different ones, else bytes"),
                       "how text becomes tokens"}},
      {&O::context, {"context", B, Whole{1, 1 << 20}, depends("64, on a GPU 256, for gpt2 1024"),
                     "context length in tokens", {"block_size", "seq_len", "max_length"}}},
      {&O::layers, {"layers", B, Whole{1, 1000}, depends("4, on a GPU 6, for gpt2 12"),
                    "transformer blocks", {"n_layer", "depth"}}},
      {&O::heads, {"heads", B, Whole{1, 1024}, depends("4, on a GPU 6, for gpt2 12"), "attention heads per block",
                   {"n_head"}}},
      {&O::width, {"width", B, Whole{1, 65536}, depends("128, on a GPU 384, for gpt2 768"), "embedding width",
                   {"n_embd", "hidden"}}},
      {&O::dropout, {"dropout", B, Real{0, 0.95}, depends("0, on a GPU 0.2, for gpt2 0"),
                     "dropout probability"}},
      {&O::loss_chunk, {"loss_chunk", P, Whole{0, 1 << 30},
                        depends("0 if all logits fit into 256 MiB, else as many tokens as fit into 64 MiB"),
                        "compute the loss for this many tokens at a time, to save memory; 0: all at once"}},
  };
}

Rows sample_options() {
  return {
      {&O::sample_tokens, {"sample_tokens", B, Whole{0, 100'000}, depends("300, fewer for a large network"),
                           "tokens of sample text to generate at each evaluation; 0: none"}},
      {&O::sample_prompt, {"sample_prompt", B, Text{"text"}, always("", "as at the beginning of a line"),
                           "beginning of the sample text", {"prompt"}}},
      {&O::sample_temperature, {"sample_temperature", B, Real{0, 100}, always("0.8", "as in nanoGPT"),
                                "sampling temperature; 0: greedy", {"temperature"}}},
      {&O::sample_top_k, {"sample_top_k", B, Whole{0, 1 << 30}, always("200", "as in nanoGPT"),
                          "sample from the k most likely tokens; 0: from all", {"top_k"}}},
  };
}
// clang-format on

}  // namespace

const core::OptionTable<TextTaskOptions>& text_options() {
  static const core::OptionTable<TextTaskOptions> table([] {
    Rows all;
    core::append_rows(all, order_options());
    core::append_rows<O>(all, network_options());
    core::append_rows<O>(all, sample_options());
    return all;
  }());
  return table;
}

}  // namespace stoker::tasks
