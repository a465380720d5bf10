// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/text/data.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/text/token_windows.h"
#include "stoker/tasks/text/card.h"
#include "stoker/tasks/text/options.h"
#include "stoker/tasks/text/recipe.h"
#include "stoker/tasks/text/task.h"

namespace stoker::tasks {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "tasks.text";
constexpr std::int64_t kMostCharacters =
    256;  // different characters in a text that is split into characters by default

struct ChosenTokenizer {
  std::shared_ptr<const data::Tokenizer> tokenizer;
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
      return {std::move(characters), "characters", "the text has few different characters"};
    }
    return {data::byte_tokenizer(), "bytes", fmt::format("the text has {} different characters", characters->size())};
  } catch (const DataError&) {
    return {data::byte_tokenizer(), "bytes", "the text is not UTF-8"};
  }
}

at::Tensor encode(const data::Tokenizer& tokenizer, std::string_view text) {
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  at::Tensor tokens = at::empty({static_cast<std::int64_t>(ids.size())}, at::kInt);
  std::ranges::copy(ids, tokens.mutable_data_ptr<std::int32_t>());
  return tokens;
}

TextFiles read_files(const fs::path& path, const OpenOptions& options) {
  TextFiles files;
  files.path = path;
  files.cuda = options.cuda;
  files.text = data::read_text_files(path);
  files.network = text_network(with_defaults(options.model, options.cuda, options.own));
  const std::string& bytes = files.text.bytes;
  const double val = options.whole ? 0 : options.val;
  const std::size_t wanted = bytes.size() - static_cast<std::size_t>(val * static_cast<double>(bytes.size()));
  files.train_bytes = data::whole_characters(bytes, wanted);
  return files;
}

class OpenText final : public WithText<OpenData> {
 public:
  OpenText(const fs::path& path, const OpenOptions& options) : WithText(read_files(path, options)) {
    if (!options.adopts) {
      const auto asked = options.own.find("tokenizer");
      chosen_ = choose_tokenizer(asked == options.own.end() ? "" : asked->second, files_.text.bytes);
      files_.cut(chosen_.tokenizer);
      check_length();
    }
  }

  [[nodiscard]] std::vector<core::PlanRow> recipe(const RecipeRequest& request) const override {
    TextFacts facts;
    facts.model = request.model;
    facts.optimizer = request.optimizer;
    facts.tokenizer = chosen_.value;
    facts.tokenizer_reason = chosen_.reason;
    facts.network = files_.network;
    facts.train_windows = size(Split::kTrain);
    facts.val_windows = size(Split::kVal);
    facts.batch = request.batch;
    facts.weights = request.weights;
    facts.cuda = files_.cuda;
    return text_recipe(facts);
  }
  [[nodiscard]] bool couples_samples(const std::string&) const override { return false; }

  [[nodiscard]] std::unique_ptr<ReadyTask> settle(const std::string&, const core::TaskValues& own) && override {
    const TextTaskOptions options = text_options().parse(own);
    const std::int64_t vocabulary = files_.network.vocabulary;
    files_.network = text_network(options);
    files_.network.vocabulary = vocabulary;
    (void)files_.tokenizer->encode(options.sample_prompt);  // an error now, not at the first evaluation
    return ready_text(std::move(files_), options);
  }
  [[nodiscard]] std::unique_ptr<ReadyTask> adopt(const nlohmann::json& card) && override {
    files_.network = network_of(card);
    files_.cut(data::tokenizer_from_json(card.at("tokenizer")));
    return ready_text(std::move(files_), {});
  }

 private:
  void check_length() const {
    const std::int64_t tokens = files_.train.numel(), context = files_.network.context;
    if (tokens <= context) {
      fail<DataError>(kWhere, "{}: {} training tokens are too few for a context of {}; set context={} or less",
                      printable(files_.path.native()), tokens, context, std::max<std::int64_t>(1, tokens - 1));
    }
  }

  ChosenTokenizer chosen_;
};

}  // namespace

void TextFiles::cut(std::shared_ptr<const data::Tokenizer> with) {
  tokenizer = std::move(with);
  const std::string_view all = text.bytes;
  train = encode(*tokenizer, all.substr(0, train_bytes));
  val = encode(*tokenizer, all.substr(train_bytes));
  network.vocabulary = tokenizer->size();
  if (val.numel() < 2) {
    val = at::Tensor();
  }
  findings.clear();
  if (val.defined()) {
    findings.push_back(fmt::format("val: the last {} bytes of {}", all.size() - train_bytes, all.size()));
  }
}

const at::Tensor& TextFiles::of(Split split) const {
  static const at::Tensor none;
  return split == Split::kTrain ? train : split == Split::kVal ? val : none;
}

std::int64_t TextFiles::size(Split split) const {
  const at::Tensor& tokens = of(split);
  return tokens.defined() ? data::window_count(tokens.numel(), network.context, split == Split::kTrain) : 0;
}

std::string TextFiles::describe() const {
  return fmt::format("text, {:.3g} MB, {}", static_cast<double>(text.bytes.size()) / 1e6, tokenizer->describe());
}

std::string TextFiles::details() const {
  return fmt::format("{} files, {} bytes; {}: {} training tokens, {} validation tokens\nwindows of {} tokens\n",
                     text.files.size(), text.bytes.size(), tokenizer->describe(), train.numel(),
                     val.defined() ? val.numel() : 0, network.context);
}

std::unique_ptr<OpenData> open_text(const fs::path& path, const OpenOptions& options) {
  return std::make_unique<OpenText>(path, options);
}

}  // namespace stoker::tasks
