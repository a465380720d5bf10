// SPDX-License-Identifier: Apache-2.0
// tests/golden/tokens.json: texts and their ids by the Python library `tokenizers`. One thread.
#pragma once

#include <nlohmann/json.hpp>

#include "stoker/base/file.h"
#include "support/images.h"

namespace stoker::testing {

inline const nlohmann::json& token_golden() {
  static const auto golden = nlohmann::json::parse(read_text(source_folder() / "tests/golden/tokens.json"));
  return golden;
}

// The golden's tokenizer.json with the changes of one of its cases, or of a test.
inline nlohmann::json tokenizer_file(const nlohmann::json& changes = nlohmann::json::object()) {
  nlohmann::json file = token_golden()["tokenizer"];
  for (const auto& change : changes.items()) {
    (change.key() == "ignore_merges" ? file["model"] : file)[change.key()] = change.value();
  }
  return file;
}

}  // namespace stoker::testing
