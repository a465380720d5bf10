// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/text/task.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/text/token_windows.h"
#include "stoker/tasks/text/card.h"
#include "stoker/tasks/text/generate.h"
#include "stoker/tasks/text/model.h"

namespace stoker::tasks {
namespace {

constexpr std::string_view kWhere = "tasks.text";
constexpr std::int64_t kMostEvaluated = 65536;  // tokens per batch of an evaluation
constexpr std::int64_t kRestoredChunk = 1024;   // tokens at a time whose logits a restored model computes

// The number of bytes of text per token.
at::Tensor token_bytes(const data::Tokenizer& tokenizer) {
  at::Tensor lengths = at::empty({tokenizer.size()}, at::kDouble);
  for (std::int32_t id = 0; id < tokenizer.size(); ++id) {
    lengths.mutable_data_ptr<double>()[id] = static_cast<double>(tokenizer.decode({&id, 1}).size());
  }
  return lengths;
}

std::unique_ptr<Model> make_text_model(const ModelRequest& request, models::GptOptions network, std::int64_t loss_chunk,
                                       const data::Tokenizer& tokenizer) {
  network.seed = request.seed;
  network.open_head = loss_chunk > 0;
  return std::make_unique<TextModel>(models::make_gpt(network), TextModelOptions{loss_chunk, token_bytes(tokenizer)});
}

// The model as a text generator; ConfigError if a derived kind uses another model.
TextModel& text_model(Model& model) {
  auto* text = dynamic_cast<TextModel*>(&model);
  if (text == nullptr) {
    fail<ConfigError>(kWhere,
                      "a language model that generates text must derive from tasks::TextModel; set sample_tokens=0");
  }
  return *text;
}

class ReadyText final : public WithText<ReadyTask> {
 public:
  ReadyText(TextFiles files, TextTaskOptions options) : WithText(std::move(files)), options_(std::move(options)) {}

  void check_same(const nlohmann::json& card, const std::string& run) const override {
    if (card.at("tokenizer") != files_.tokenizer->to_json() || card.at("train_tokens") != files_.train.numel()) {
      fail<CheckpointError>(
          kWhere, "the text, its tokenizer or the validation split changed since {} was started; train again", run);
    }
  }
  [[nodiscard]] std::unique_ptr<Model> make_model(const ModelRequest& request) const override {
    return make_text_model(request, files_.network, options_.loss_chunk, *files_.tokenizer);
  }
  [[nodiscard]] BatchChecks checks() const override {
    return {.input = "ids", .target = "target", .classes = files_.network.vocabulary};
  }
  [[nodiscard]] std::int64_t sample_flops(const Model&) const override { return models::gpt_flops(files_.network); }

  [[nodiscard]] std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const override {
    data::TokenWindowsOptions options = windows(files_.train, request);
    options.seed = request.seed;
    options.drop_tail = request.drop_tail;
    options.start = request.start;
    options.shuffle = options_.shuffle;
    return std::make_unique<data::TokenWindows>(std::move(options));
  }
  [[nodiscard]] std::unique_ptr<core::BatchSource> evaluation_batches(Split split,
                                                                      const BatchRequest& request) const override {
    data::TokenWindowsOptions options = windows(files_.of(split), request);
    options.train = false;
    options.batch = std::clamp<std::int64_t>(kMostEvaluated / files_.network.context, 1, request.batch);
    return std::make_unique<data::TokenWindows>(std::move(options));
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return fmt::format("{}, about token {}", printable(files_.path.filename().native()),
                       index * files_.network.context);
  }
  [[nodiscard]] std::vector<Exhibit> samples(Model& model, std::int64_t step) const override;
  [[nodiscard]] nlohmann::json card() const override {
    return {{"network", to_json(files_.network)},
            {"tokenizer", files_.tokenizer->to_json()},
            {"train_tokens", files_.train.numel()}};
  }

 private:
  [[nodiscard]] data::TokenWindowsOptions windows(const at::Tensor& tokens, const BatchRequest& request) const {
    data::TokenWindowsOptions options;
    options.tokens = tokens;
    options.context = files_.network.context;
    options.batch = request.batch;
    options.rank = request.rank;
    options.ranks = request.ranks;
    return options;
  }

  TextTaskOptions options_;
};

std::vector<Exhibit> ReadyText::samples(Model& model, std::int64_t step) const {
  GenerateRequest request;
  request.prompt = options_.sample_prompt;
  request.tokens = options_.sample_tokens;
  request.temperature = options_.sample_temperature;
  request.top_k = options_.sample_top_k;
  if (request.tokens == 0) {
    return {};
  }
  std::string text = request.prompt;
  generate(text_model(model), *files_.tokenizer, files_.network.context, request, [&](std::string_view piece) {
    text += piece;
    return true;
  });
  const std::string title = fmt::format("Samples at step {}", step);
  const nlohmann::json json = {{"kind", "text"}, {"title", title}, {"step", step}, {"text", text}};
  // A cut character is shown as U+FFFD.
  return {{fmt::format("samples-{:09}", step),
           title,
           json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace),
           {}}};
}

}  // namespace

std::unique_ptr<ReadyTask> ready_text(TextFiles files, TextTaskOptions options) {
  return std::make_unique<ReadyText>(std::move(files), std::move(options));
}

std::unique_ptr<Model> restore_text_model(const ModelRequest& request, const nlohmann::json& card) {
  return make_text_model(request, network_of(card), kRestoredChunk, *data::tokenizer_from_json(card.at("tokenizer")));
}

void generate_from_card(Model& model, const nlohmann::json& card, const GenerateRequest& request,
                        const std::function<bool(std::string_view)>& take) {
  const auto tokenizer = data::tokenizer_from_json(card.at("tokenizer"));
  generate(text_model(model), *tokenizer, network_of(card).context, request, take);
}

}  // namespace stoker::tasks
