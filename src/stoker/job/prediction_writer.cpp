// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/prediction_writer.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "stoker/base/csv_cell.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/plain_nan.h"

namespace stoker::job {
namespace {

std::string json_line(const Prediction& prediction) {
  const tasks::UnlabelledSample& sample = prediction.sample;
  nlohmann::ordered_json line = {{"file", printable(sample.file.native())}};
  if (sample.row > 0) {
    line["row"] = sample.row;
  }
  if (!sample.error.empty()) {
    line["error"] = sample.error;
  }
  if (prediction.value) {
    line["value"] = *prediction.value;  // not finite: null
    return line.dump() + "\n";
  }
  line["guesses"] = nlohmann::ordered_json::array();
  for (const Guess& guess : prediction.guesses) {
    line["guesses"].push_back({{"label", printable(guess.label)}, {"probability", guess.probability}});
  }
  return line.dump() + "\n";
}

// One line per guess.
std::string csv_lines(const Prediction& prediction) {
  const tasks::UnlabelledSample& sample = prediction.sample;
  std::string begin = csv_cell(printable(sample.file.native()));
  if (sample.row > 0) {
    begin += fmt::format(",{}", sample.row);
  }
  if (prediction.value) {
    return fmt::format("{},{}\n", begin, plain_nan(*prediction.value));
  }
  std::string lines;
  for (std::size_t i = 0; i < prediction.guesses.size(); ++i) {
    const Guess& guess = prediction.guesses[i];
    lines +=
        fmt::format("{},{},{},{:.6f}\n", begin, i + 1, csv_cell(printable(guess.label)), plain_nan(guess.probability));
  }
  return lines;
}

// All samples of a source are of one kind.
std::string csv_header(const Prediction& first) {
  return fmt::format("file{}{}\n", first.sample.row > 0 ? ",row" : "",
                     first.value ? ",value" : ",rank,label,probability");
}

}  // namespace

void PredictionWriter::write(const Prediction& prediction) {
  if (!json_ && !std::exchange(begun_, true)) {
    text_ = csv_header(prediction);
  }
  text_ += json_ ? json_line(prediction) : csv_lines(prediction);
  if (path_.empty() && text_.size() > (std::size_t{1} << 16)) {
    finish();
  }
}

void PredictionWriter::finish() {
  if (!path_.empty()) {
    write_file_atomically(path_, text_);
    return;
  }
  const std::string text = std::exchange(text_, "");  // never written twice
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    fail<IoError>("job.predict", "standard output cannot be written");
  }
}

}  // namespace stoker::job
