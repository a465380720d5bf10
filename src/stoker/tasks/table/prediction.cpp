// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/prediction.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/table/table.h"
#include "stoker/tasks/table/encoder.h"
#include "stoker/tasks/table/options.h"

namespace stoker::tasks {
namespace {

namespace fs = std::filesystem;

class UnlabelledTables final : public UnlabelledSource {
 public:
  UnlabelledTables(const nlohmann::json& card, const std::vector<fs::path>& files)
      : encoding_(encoding_from_json(card)) {
    TableTaskOptions options;
    for (const char* key : {"sep", "header"}) {
      table_options().set(options, key, card.at(key).get<std::string>());
    }
    for (const fs::path& file : files) {
      add(file, reading_options(options));
    }
  }

  [[nodiscard]] const std::vector<std::string>& findings() const override { return findings_; }

  [[nodiscard]] std::optional<UnlabelledBatch> next(std::int64_t samples) override {
    if (table_ == tables_.size()) {
      return std::nullopt;
    }
    const Rows& rows = tables_[table_];
    const std::int64_t first = row_, count = std::min(samples, rows.encoded.numbers.size(0) - first);
    std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
    std::iota(indices.begin(), indices.end(), first);
    UnlabelledBatch result{core::Batch({}, std::move(indices)), {}};
    result.batch.set("numbers", rows.encoded.numbers.narrow(0, first, count));
    result.batch.set("categories", rows.encoded.categories.narrow(0, first, count));
    for (const std::int64_t index : result.batch.indices()) {
      result.samples.push_back({rows.file, index + 1, ""});
    }
    row_ += count;
    if (row_ == rows.encoded.numbers.size(0)) {
      ++table_;
      row_ = 0;
    }
    return result;
  }

 private:
  struct Rows {
    fs::path file;
    EncodedTable encoded;
  };

  void add(const fs::path& file, const data::TableOptions& reading) {
    const data::TableData table = data::read_table(file, reading);
    const std::string name = printable(file.native());
    try {
      tables_.push_back({file, encode_inputs(table, encoding_)});
      for (const std::string& finding : unseen_categories(table, encoding_)) {
        findings_.push_back(fmt::format("{}: {}", name, finding));
      }
    } catch (const DataError& error) {  // of a column; it does not name the file
      fail<DataError>("tasks.table", "{}: {}", name, error.what());
    }
  }

  TableEncoding encoding_;
  std::vector<Rows> tables_;
  std::vector<std::string> findings_;
  std::size_t table_ = 0;
  std::int64_t row_ = 0;  // of that table
};

}  // namespace

std::unique_ptr<UnlabelledSource> unlabelled_tables(const nlohmann::json& card, const std::vector<fs::path>& files) {
  return std::make_unique<UnlabelledTables>(card, files);
}

}  // namespace stoker::tasks
