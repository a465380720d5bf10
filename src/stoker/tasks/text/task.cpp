// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/text/task.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/text/text_files.h"
#include "stoker/data/text/token_windows.h"
#include "stoker/data/text/tokenizer.h"
#include "stoker/models/gpt.h"
#include "stoker/tasks/sampling.h"
#include "stoker/tasks/task_values.h"
#include "stoker/tasks/text/card.h"
#include "stoker/tasks/text/generate.h"
#include "stoker/tasks/text/model.h"
#include "stoker/tasks/text/recipe.h"

namespace stoker::tasks {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "tasks.text";
constexpr std::int64_t kMostCharacters = 256;   // that a text may have to be cut into them unasked
constexpr std::int64_t kMostEvaluated = 65536;  // tokens of a batch of an evaluation
constexpr std::int64_t kRestoredChunk = 1024;   // tokens at a time whose logits a model that was brought back computes

struct ChosenTokenizer {
  std::unique_ptr<data::Tokenizer> tokenizer;
  std::string value, reason;  // for the plan
};

ChosenTokenizer choose_tokenizer(const std::string& asked, const std::string& text) {
  if (asked == "bytes") {
    return {data::byte_tokenizer(), asked, "asked for"};
  }
  if (asked == "characters") {
    return {data::character_tokenizer(text), asked, "asked for"};
  }
  if (!asked.empty()) {
    return {data::read_tokenizer(asked), asked, "asked for"};
  }
  try {
    auto characters = data::character_tokenizer(text);
    if (characters->size() <= kMostCharacters) {
      return {std::move(characters), "characters", "the text has few different ones"};
    }
    return {data::byte_tokenizer(), "bytes", fmt::format("the text has {} different characters", characters->size())};
  } catch (const DataError&) {
    return {data::byte_tokenizer(), "bytes", "the text is no UTF-8"};
  }
}

at::Tensor encode(const data::Tokenizer& tokenizer, std::string_view text) {
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  at::Tensor tokens = at::empty({static_cast<std::int64_t>(ids.size())}, at::kInt);
  std::ranges::copy(ids, tokens.mutable_data_ptr<std::int32_t>());
  return tokens;
}

// How many bytes of text each token stands for.
at::Tensor token_bytes(const data::Tokenizer& tokenizer) {
  at::Tensor lengths = at::empty({tokenizer.size()}, at::kDouble);
  for (std::int32_t id = 0; id < tokenizer.size(); ++id) {
    lengths.mutable_data_ptr<double>()[id] = static_cast<double>(tokenizer.decode({&id, 1}).size());
  }
  return lengths;
}

std::unique_ptr<NetworkTrainable> make_model_of(const ModelRequest& request, models::GptOptions network,
                                                std::int64_t loss_chunk, const data::Tokenizer& tokenizer) {
  network.seed = request.seed;
  network.open_head = loss_chunk > 0;
  return std::make_unique<TextModel>(models::make_gpt(network), TextModelOptions{loss_chunk, token_bytes(tokenizer)});
}

// What writes text; ConfigError for a model that a derived kind made of something else.
TextModel& text_model(NetworkTrainable& model) {
  auto* text = dynamic_cast<TextModel*>(&model);
  if (text == nullptr) {
    fail<ConfigError>(kWhere, "a language model that writes must derive from tasks::TextModel; set sample_tokens=0");
  }
  return *text;
}

class TextTask final : public Task {
 public:
  TextTask(const fs::path& path, const OpenOptions& options)
      : path_(path), cuda_(options.cuda), text_(data::read_text_files(path)) {
    network_ = text_network(options.model, cuda_, options.own);
    const double val = options.whole ? 0 : options.val;
    const std::size_t wanted =
        text_.bytes.size() - static_cast<std::size_t>(val * static_cast<double>(text_.bytes.size()));
    train_bytes_ = data::whole_characters(text_.bytes, wanted);
    if (!options.adopts) {
      tokenizer_ = choose_tokenizer(text_or(options.own, "tokenizer", ""), text_.bytes);
      cut();
      check_length();
    }
  }

  [[nodiscard]] std::int64_t size(Split split) const override {
    const at::Tensor& tokens = of(split);
    return tokens.defined() ? data::window_count(tokens.numel(), network_.context, split == Split::kTrain) : 0;
  }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("text, {:.3g} MB, {}", static_cast<double>(text_.bytes.size()) / 1e6,
                       tokenizer_.tokenizer->describe());
  }
  [[nodiscard]] std::string details() const override {
    std::string lines = fmt::format("{} files, {} bytes; as {} {} tokens to train on, {} to validate\n",
                                    text_.files.size(), text_.bytes.size(), tokenizer_.tokenizer->describe(),
                                    train_.numel(), val_.defined() ? val_.numel() : 0);
    return lines + fmt::format("windows of {} tokens\n", network_.context);
  }
  [[nodiscard]] const std::vector<std::string>& findings() const override { return findings_; }

  [[nodiscard]] std::vector<core::PlanRow> recipe(const Asked& asked) const override {
    TextFacts facts;
    facts.model = asked.model;
    facts.optimizer = asked.optimizer;
    facts.tokenizer = tokenizer_.value;
    facts.tokenizer_reason = tokenizer_.reason;
    facts.network = network_;
    facts.train_windows = size(Split::kTrain);
    facts.val_windows = size(Split::kVal);
    facts.batch = asked.batch;
    facts.weights = asked.weights;
    facts.cuda = cuda_;
    return text_recipe(facts);
  }
  [[nodiscard]] bool couples_samples(const std::string&) const override { return false; }

  void settle(const std::string& model, const core::TaskValues& own) override {
    own_ = own;
    const std::int64_t vocabulary = network_.vocabulary;
    network_ = text_network(model, cuda_, own);
    network_.vocabulary = vocabulary;
    (void)tokenizer_.tokenizer->encode(text_value(own, "sample_prompt"));  // refused now, not at the first evaluation
  }
  void adopt(const nlohmann::json& card) override {
    network_ = network_of(card);
    tokenizer_ = {data::tokenizer_from_json(card.at("tokenizer")), "", ""};
    cut();
  }
  void check_same(const nlohmann::json& card, const std::string& run) const override {
    if (card.at("tokenizer") != tokenizer_.tokenizer->to_json() || card.at("train_tokens") != train_.numel()) {
      fail<CheckpointError>(kWhere, "the text is not the one that {} was started with, or is cut otherwise; train anew",
                            run);
    }
  }

  [[nodiscard]] std::unique_ptr<NetworkTrainable> make_model(const ModelRequest& request) const override {
    return make_model_of(request, network_, whole_value(own_, "loss_chunk"), *tokenizer_.tokenizer);
  }
  [[nodiscard]] BatchChecks checks() const override { return {"ids", "target", network_.vocabulary, 0}; }
  [[nodiscard]] std::int64_t sample_flops(const NetworkTrainable&) const override {
    return models::gpt_flops(network_);
  }

  [[nodiscard]] std::unique_ptr<core::BatchSource> training_batches(const BatchRequest& request) const override {
    data::TokenWindowsOptions options = windows(train_, request);
    options.seed = request.seed;
    options.drop_tail = request.drop_tail;
    options.start = request.start;
    options.shuffle = shuffles(own_);
    return std::make_unique<data::TokenWindows>(std::move(options));
  }
  [[nodiscard]] std::unique_ptr<core::BatchSource> evaluation_batches(Split split,
                                                                      const BatchRequest& request) const override {
    data::TokenWindowsOptions options = windows(of(split), request);
    options.train = false;
    options.batch = std::clamp<std::int64_t>(kMostEvaluated / network_.context, 1, request.batch);
    return std::make_unique<data::TokenWindows>(std::move(options));
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return fmt::format("{}, about token {}", printable(path_.filename().native()), index * network_.context);
  }
  [[nodiscard]] std::vector<Exhibit> samples(NetworkTrainable& model, std::int64_t step) const override;
  [[nodiscard]] nlohmann::json card() const override {
    return {{"network", to_json(network_)},
            {"tokenizer", tokenizer_.tokenizer->to_json()},
            {"train_tokens", train_.numel()}};
  }

 private:
  // The text as tokens, and the tail that validates. A tail without a token to predict is none.
  void cut() {
    const std::string_view text = text_.bytes;
    train_ = encode(*tokenizer_.tokenizer, text.substr(0, train_bytes_));
    val_ = encode(*tokenizer_.tokenizer, text.substr(train_bytes_));
    network_.vocabulary = tokenizer_.tokenizer->size();
    if (val_.numel() < 2) {
      val_ = at::Tensor();
    }
    findings_.clear();
    if (val_.defined()) {
      findings_.push_back(fmt::format("val: the last {} bytes of {}", text.size() - train_bytes_, text.size()));
    }
  }
  void check_length() const {
    if (train_.numel() <= network_.context) {
      fail<DataError>(kWhere, "{}: its {} tokens to train on are too few for a context of {}; set context={} or less",
                      printable(path_.native()), train_.numel(), network_.context,
                      std::max<std::int64_t>(1, train_.numel() - 1));
    }
  }
  [[nodiscard]] const at::Tensor& of(Split split) const {
    static const at::Tensor none;
    return split == Split::kTrain ? train_ : split == Split::kVal ? val_ : none;
  }
  [[nodiscard]] data::TokenWindowsOptions windows(const at::Tensor& tokens, const BatchRequest& request) const {
    data::TokenWindowsOptions options;
    options.tokens = tokens;
    options.context = network_.context;
    options.batch = request.batch;
    return options;
  }

  fs::path path_;
  bool cuda_ = false;
  data::Text text_;
  std::size_t train_bytes_ = 0;
  models::GptOptions network_;
  ChosenTokenizer tokenizer_;
  at::Tensor train_, val_;  // int32 tokens; val undefined: there is none
  std::vector<std::string> findings_;
  core::TaskValues own_;
};

std::vector<Exhibit> TextTask::samples(NetworkTrainable& model, std::int64_t step) const {
  GenerateRequest request;
  request.prompt = text_value(own_, "sample_prompt");
  request.tokens = whole_value(own_, "sample_tokens");
  request.temperature = real_value(own_, "sample_temperature");
  request.top_k = whole_value(own_, "sample_top_k");
  if (request.tokens == 0) {
    return {};
  }
  std::string text = request.prompt;
  generate(text_model(model), *tokenizer_.tokenizer, network_.context, request, [&](std::string_view piece) {
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

void generate_from_card(NetworkTrainable& model, const nlohmann::json& card, const GenerateRequest& request,
                        const std::function<bool(std::string_view)>& take) {
  const auto tokenizer = data::tokenizer_from_json(card.at("tokenizer"));
  generate(text_model(model), *tokenizer, network_of(card).context, request, take);
}

}  // namespace

TaskKind language_model() {
  TaskKind kind;
  kind.name = "language_model";
  kind.text = "a .txt file or a folder of them: what comes next in a text";
  kind.settings = text_settings();
  kind.files = {{"tokenizer", {"bytes", "characters"}}};
  kind.models = {"gpt", "gpt2"};
  kind.recognises = data::looks_like_text;
  kind.open = [](const fs::path& path, const OpenOptions& options) {
    return std::make_unique<TextTask>(path, options);
  };
  kind.describe_card = [](const nlohmann::json& card) {
    const models::GptOptions network = network_of(card);
    return fmt::format("{} layers, {} heads, width {}, context {}; {}\n", network.layers, network.heads, network.width,
                       network.context, data::tokenizer_from_json(card.at("tokenizer"))->describe());
  };
  kind.restore = [](const ModelRequest& request, const nlohmann::json& card) {
    return make_model_of(request, network_of(card), kRestoredChunk, *data::tokenizer_from_json(card.at("tokenizer")));
  };
  kind.generate = generate_from_card;
  kind.companions = hugging_face_files;
  return kind;
}

}  // namespace stoker::tasks
