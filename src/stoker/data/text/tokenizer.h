// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back: bytes, characters, or the byte-level BPE of a user's tokenizer.json. Made once a run and
// kept with it. Used by the language-model task and `stoker generate`. A made tokenizer may be used from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::data {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // How many tokens there are: ids are 0 ... size() - 1.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  // The ids of a text, without tokens added before or after it. DataError, with the byte offset, for what has no id:
  // text that is no UTF-8 (all but bytes), a character that the vocabulary lacks (characters).
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // The bytes of any ids, one after the other; where a character is several tokens, a part of them is no valid UTF-8.
  // decode(encode(text)) is text, but for what a tokenizer.json itself adds or drops. DataError for an id beyond
  // size().
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  // For people: "bytes", "65 characters", "byte-level BPE, 1,000 tokens".
  [[nodiscard]] virtual std::string describe() const = 0;
  // All of it: tokenizer_from_json(to_json()) encodes and decodes alike.
  [[nodiscard]] virtual nlohmann::json to_json() const = 0;
};

// 256 ids: each byte is its own.
[[nodiscard]] std::unique_ptr<Tokenizer> byte_tokenizer();

// The different characters (Unicode code points) of text, their ids rising with the code point. DataError for an empty
// text and, with the byte offset, for one that is no UTF-8.
[[nodiscard]] std::unique_ptr<Tokenizer> character_tokenizer(std::string_view text);

// A tokenizer.json of the Hugging Face library `tokenizers` with byte-level BPE; encodes as its
// encode(text, add_special_tokens=False) does. docs/formats.md says what is understood. DataError for a file that is
// missing, damaged or of another kind, and for every member that is not understood, by its name.
[[nodiscard]] std::unique_ptr<Tokenizer> read_tokenizer(const std::filesystem::path& file);

// The tokenizer whose to_json() this was. DataError for anything else.
[[nodiscard]] std::unique_ptr<Tokenizer> tokenizer_from_json(const nlohmann::json& json);

}  // namespace stoker::data
