// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/kind.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "stoker/tasks/table/data.h"
#include "stoker/tasks/table/options.h"
#include "stoker/tasks/table/prediction.h"
#include "stoker/tasks/table/task.h"

namespace stoker::tasks {
namespace {

namespace fs = std::filesystem;

class TableKind final : public TaskKind {
 public:
  TableKind()
      : TaskKind(
            {.name = "tabular",
             .help =
                 "a .csv or .tsv file, also .gz or .zst; predicts a class or a number from the other columns; needs "
                 "target=NAME",
             .options = table_options().options(),
             .models = {"tabular_mlp"}}) {}

  [[nodiscard]] bool recognises(const fs::path& path) const override {
    // Some formats are recognised so that the error can name them and how to convert them.
    constexpr std::array packed = {".gz", ".zst", ".bz2", ".xz", ".lz4"};
    constexpr std::array tables = {".csv",  ".tsv", ".parquet", ".feather", ".arrow",
                                   ".xlsx", ".xls", ".ods",     ".sqlite"};
    const auto ends_in = [](const fs::path& name, const auto& endings) {
      return std::ranges::find(endings, name.extension()) != endings.end();
    };
    return ends_in(ends_in(path, packed) ? path.stem() : path, tables);
  }
  [[nodiscard]] std::unique_ptr<OpenData> open(const fs::path& data, const OpenOptions& options) const override {
    return open_table(data, options);
  }
  [[nodiscard]] std::string describe_card(const nlohmann::json& card) const override {
    const TableEncoding encoding = encoding_from_json(card);
    return fmt::format("target {}, from {} number and {} category columns\n{}\n", printable(encoding.target),
                       encoding.numbers.size(), encoding.categories.size(),
                       encoding.regression() ? "a number" : class_list(encoding.classes));
  }
  [[nodiscard]] std::unique_ptr<Model> restore(const ModelRequest& request, const nlohmann::json& card) const override {
    return make_table_model(request, encoding_from_json(card), card.at("network"), {});
  }
  [[nodiscard]] std::unique_ptr<UnlabelledSource> open_unlabelled(const nlohmann::json& card,
                                                                  const std::vector<fs::path>& files) const override {
    return unlabelled_tables(card, files);
  }
};

}  // namespace

std::unique_ptr<TaskKind> tabular() { return std::make_unique<TableKind>(); }

}  // namespace stoker::tasks
