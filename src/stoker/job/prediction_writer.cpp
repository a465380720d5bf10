// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/prediction_writer.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::job {
namespace {

// A cell of CSV after RFC 4180.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

}  // namespace

PredictionWriter::PredictionWriter(const std::string& path, bool json) : path_(path), json_(json) {
  if (!json_) {
    text_ = "file,rank,label,probability\n";
  }
}

void PredictionWriter::write(const Prediction& prediction) {
  const std::string file = printable(prediction.file.native());
  if (json_) {
    nlohmann::ordered_json line = {{"file", file}};
    if (!prediction.error.empty()) {
      line["error"] = prediction.error;
    }
    line["guesses"] = nlohmann::ordered_json::array();
    for (const Guess& guess : prediction.guesses) {
      line["guesses"].push_back({{"label", printable(guess.label)}, {"probability", guess.probability}});
    }
    text_ += line.dump() + "\n";
  } else {
    int rank = 1;
    for (const Guess& guess : prediction.guesses) {
      text_ +=
          fmt::format("{},{},{},{:.6f}\n", csv_cell(file), rank++, csv_cell(printable(guess.label)), guess.probability);
    }
  }
  if (path_.empty() && text_.size() > (std::size_t{1} << 16)) {
    finish();
  }
}

void PredictionWriter::finish() {
  if (!path_.empty()) {
    write_file_atomically(path_, text_);
    return;
  }
  if (std::fwrite(text_.data(), 1, text_.size(), stdout) != text_.size() || std::fflush(stdout) != 0) {
    fail<IoError>("job.predict", "standard output cannot be written");
  }
  text_.clear();
}

}  // namespace stoker::job
