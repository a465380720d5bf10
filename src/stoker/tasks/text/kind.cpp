// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/text/kind.h"

#include <nlohmann/json.hpp>

#include "stoker/base/fmt.h"
#include "stoker/data/text/text_files.h"
#include "stoker/data/text/tokenizer.h"
#include "stoker/tasks/text/card.h"
#include "stoker/tasks/text/data.h"
#include "stoker/tasks/text/options.h"
#include "stoker/tasks/text/task.h"

namespace stoker::tasks {
namespace {

namespace fs = std::filesystem;

class TextKind final : public TaskKind {
 public:
  TextKind()
      : TaskKind({.name = "language_model",
                  .help = "a .txt file or a folder of them: predict the next token",
                  .options = text_options().options(),
                  .models = {"gpt", "gpt2"}}) {}

  [[nodiscard]] bool recognises(const fs::path& data) const override { return data::looks_like_text(data); }
  [[nodiscard]] std::unique_ptr<OpenData> open(const fs::path& data, const OpenOptions& options) const override {
    return open_text(data, options);
  }
  [[nodiscard]] std::string describe_card(const nlohmann::json& card) const override {
    const models::GptOptions network = network_of(card);
    return fmt::format("{} layers, {} heads, width {}, context {}; {}\n", network.layers, network.heads, network.width,
                       network.context, data::tokenizer_from_json(card.at("tokenizer"))->describe());
  }
  [[nodiscard]] std::unique_ptr<Model> restore(const ModelRequest& request,
                                                          const nlohmann::json& card) const override {
    return restore_text_model(request, card);
  }
  [[nodiscard]] bool writes_text() const override { return true; }
  void generate(Model& model, const nlohmann::json& card, const GenerateRequest& request,
                const std::function<bool(std::string_view)>& take) const override {
    generate_from_card(model, card, request, take);
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> companions(const nlohmann::json& card) const override {
    return hugging_face_files(card);
  }
};

}  // namespace

std::unique_ptr<TaskKind> language_model() { return std::make_unique<TextKind>(); }

}  // namespace stoker::tasks
