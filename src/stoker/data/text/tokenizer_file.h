// SPDX-License-Identifier: Apache-2.0
// The members of a Hugging Face tokenizer.json with byte-level BPE. Everything in it either means what docs/formats.md
// says or is refused by its name: a setting that is passed over would give wrong ids in silence. Used by read_tokenizer
// and tokenizer_from_json. Thread-safe: no state.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "stoker/data/text/bpe_tokenizer.h"

namespace stoker::data {

// name is what errors call the file. DataError that names the member at fault.
[[nodiscard]] BpeParts read_bpe(const nlohmann::json& whole, const std::string& name);

}  // namespace stoker::data
