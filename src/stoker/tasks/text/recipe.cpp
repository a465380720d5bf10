// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/text/recipe.h"

#include <algorithm>

#include "stoker/tasks/recipe_rows.h"

namespace stoker::tasks {
namespace {

// A network and its training. The first two are nanoGPT's settings for characters of Shakespeare, on a CPU and on a GPU
// (github.com/karpathy/nanoGPT, README); the third is the smallest GPT-2 with the values of its train_gpt2.py.
struct Preset {
  std::int64_t context;
  int layers, heads;
  std::int64_t width;
  double dropout;
  std::int64_t batch, steps;
  double lr, beta2;
  const char* why;
};
constexpr Preset kCpu{.context = 64,
                      .layers = 4,
                      .heads = 4,
                      .width = 128,
                      .dropout = 0,
                      .batch = 12,
                      .steps = 2000,
                      .lr = 1e-3,
                      .beta2 = 0.99,
                      .why = "nanoGPT's setting for a CPU"};
constexpr Preset kGpu{.context = 256,
                      .layers = 6,
                      .heads = 6,
                      .width = 384,
                      .dropout = 0.2,
                      .batch = 64,
                      .steps = 5000,
                      .lr = 1e-3,
                      .beta2 = 0.99,
                      .why = "nanoGPT's setting for a GPU"};
constexpr Preset kGpt2{.context = 1024,
                       .layers = 12,
                       .heads = 12,
                       .width = 768,
                       .dropout = 0,
                       .batch = 8,
                       .steps = 5000,
                       .lr = 6e-4,
                       .beta2 = 0.95,
                       .why = "the smallest GPT-2"};

const Preset& preset(const std::string& model, bool cuda) { return model == "gpt2" ? kGpt2 : cuda ? kGpu : kCpu; }

// Tokens whose logits exist at a time: all of them (0) as long as they are small. A rule instead of a trial: from 32 to
// 256 MiB per piece the time is the same within the noise of a trial (bench/results/chunked-loss.txt), and memory grows
// with the piece.
std::int64_t default_loss_chunk(std::int64_t tokens, std::int64_t vocabulary) {
  constexpr std::int64_t kSmall = 256 << 20, kPiece = 64 << 20;  // bytes
  const std::int64_t row = 4 * vocabulary;
  return tokens * row <= kSmall ? 0 : std::max<std::int64_t>(1, kPiece / row);
}

// Each token of a sample costs a forward pass: a second or two in total, unless they are at the minimum.
std::int64_t default_sample_tokens(const models::GptOptions& network, bool cuda) {
  constexpr std::int64_t kMost = 300, kLeast = 20, kCpuBudget = 50'000'000'000, kGpuBudget = 100'000'000'000'000;
  return std::clamp((cuda ? kGpuBudget : kCpuBudget) / models::gpt_flops(network), kLeast, kMost);
}

// A forward pass costs a third of a step: all evaluations together take at most a tenth of the run.
std::int64_t default_eval_every(std::int64_t val_windows, std::int64_t batch) {
  const std::int64_t steps = (10 * val_windows / 3 + batch - 1) / batch;
  return std::max<std::int64_t>(500, (steps + 99) / 100 * 100);
}

// sgd scales the gradient itself, so its values differ from those of adam and adamw.
void add_optimizer(RecipeRows& rows, const TextFacts& facts, const Preset& values) {
  constexpr const char* kFineTuning = "small steps for fine-tuning";
  if (facts.optimizer == "sgd") {
    rows.add("optimizer", "sgd", "asked for");
    rows.add("lr", facts.weights ? 0.01 : 0.1, facts.weights ? kFineTuning : "a usual first choice for sgd");
    rows.add("weight_decay", 1e-4, "usual for sgd");
    return;
  }
  rows.add("optimizer", facts.optimizer.empty() ? "adamw" : facts.optimizer, "adaptive steps");
  rows.add("lr", facts.weights ? 5e-5 : values.lr, facts.weights ? kFineTuning : values.why);
  rows.add("weight_decay", 0.1, "Brown et al. 2020");
}

void add_training(RecipeRows& rows, const TextFacts& facts, const Preset& values, std::int64_t batch) {
  add_optimizer(rows, facts, values);
  rows.add("lr_batch", values.batch, "the batch that lr is stated for");
  rows.add("optimizer.beta2", values.beta2, "nanoGPT: few tokens per step");
  rows.add("clip", 1, "Brown et al. 2020");
  rows.add("schedule", "cosine", "Brown et al. 2020");
  rows.add("lr_end", 0.1, "Brown et al. 2020");
  rows.add("warmup", 0.05, "a share of the run");
  const std::int64_t steps = facts.weights ? values.steps / 5 : values.steps;
  const std::int64_t epoch_steps = std::max<std::int64_t>(1, facts.train_windows / batch);
  const std::int64_t epochs = std::clamp<std::int64_t>((steps + epoch_steps - 1) / epoch_steps, 1, 1000);
  rows.add("epochs", epochs, fmt::format("whole epochs with at least {} steps: {}", steps, epochs * epoch_steps));
  rows.add("eval_every", default_eval_every(facts.val_windows, batch), "evaluations take at most a tenth of the run");
}

}  // namespace

TextTaskOptions with_defaults(const std::string& model, bool cuda, const core::TaskValues& given) {
  const Preset& values = preset(model, cuda);
  TextTaskOptions options;
  options.context = values.context;
  options.layers = values.layers;
  options.heads = values.heads;
  options.width = values.width;
  options.dropout = values.dropout;
  text_options().overlay(options, given);
  return options;
}

models::GptOptions text_network(const TextTaskOptions& options) {
  models::GptOptions network;
  network.context = options.context;
  network.layers = static_cast<int>(options.layers);
  network.heads = static_cast<int>(options.heads);
  network.width = options.width;
  network.dropout = options.dropout;
  return network;
}

std::vector<core::PlanRow> text_recipe(const TextFacts& facts) {
  const Preset& values = preset(facts.model, facts.cuda);
  const models::GptOptions& network = facts.network;
  const std::int64_t usual = std::min(values.batch, facts.train_windows);
  const std::int64_t batch = facts.batch > 0 ? facts.batch : usual;
  RecipeRows rows;
  rows.add("model", facts.model.empty() ? "gpt" : facts.model, "a causal transformer");
  rows.add("batch", usual, values.why);
  add_training(rows, facts, values, batch);
  rows.add("tokenizer", facts.tokenizer, facts.tokenizer_reason);
  rows.add("context", network.context, values.why);
  rows.add("layers", network.layers, values.why);
  rows.add("heads", network.heads, values.why);
  rows.add("width", network.width, values.why);
  rows.add("dropout", network.dropout, values.why);
  const std::int64_t chunk = default_loss_chunk(batch * network.context, network.vocabulary);
  rows.add("loss_chunk", chunk, chunk == 0 ? "the logits are small" : "all logits at once would be over 256 MiB");
  rows.add("sample_tokens", default_sample_tokens(network, facts.cuda), "a short text at each evaluation");
  return std::move(rows.rows);
}

}  // namespace stoker::tasks
