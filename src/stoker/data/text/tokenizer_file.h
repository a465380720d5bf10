// SPDX-License-Identifier: Apache-2.0
// Reads a Hugging Face tokenizer.json with byte-level BPE. Every member is either supported as in docs/formats.md or an
// error with its name, since an ignored setting would silently give wrong ids. Used by read_tokenizer and
// tokenizer_from_json. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "stoker/data/text/bpe_tokenizer.h"

namespace stoker::data {

// name: of the file, for errors. DataError with the name of the wrong member.
[[nodiscard]] BpeParts read_bpe(const nlohmann::json& whole, const std::string& name);

}  // namespace stoker::data
