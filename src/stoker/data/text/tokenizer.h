// SPDX-License-Identifier: Apache-2.0
// Converts text to token ids and back: bytes, characters, or the byte-level BPE of a user's tokenizer.json. Made once
// per run and saved with it. Used by the language-model task and `stoker generate`. Usable from any thread once made.
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

  // The number of tokens; ids are 0 ... size() - 1.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  // The ids of a text, without tokens added before or after it. DataError with the byte offset for text that is not
  // UTF-8 (except for bytes) and for a character that is not in the vocabulary (characters).
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // The concatenated bytes of ids. If a character has several tokens, a part of them is not valid UTF-8.
  // decode(encode(text)) is text, except for what a tokenizer.json itself adds or drops. DataError for an id that is
  // not below size().
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  // For people: "bytes", "65 characters", "byte-level BPE, 1,000 tokens".
  [[nodiscard]] virtual std::string describe() const = 0;
  // The complete tokenizer: tokenizer_from_json(to_json()) encodes and decodes the same.
  [[nodiscard]] virtual nlohmann::json to_json() const = 0;
};

// 256 ids: each byte is its own id.
[[nodiscard]] std::unique_ptr<Tokenizer> byte_tokenizer();

// The different characters (Unicode code points) of text, with ids in the order of code points. DataError for empty
// text and, with the byte offset, for text that is not UTF-8.
[[nodiscard]] std::unique_ptr<Tokenizer> character_tokenizer(std::string_view text);

// A tokenizer.json of the Hugging Face library `tokenizers` with byte-level BPE; encodes as its
// encode(text, add_special_tokens=False). docs/formats.md lists what is supported. DataError for a file that is
// missing, damaged or of another kind, and for every member that is not supported, with its name.
[[nodiscard]] std::unique_ptr<Tokenizer> read_tokenizer(const std::filesystem::path& file);

// The tokenizer saved with to_json(). DataError for anything else.
[[nodiscard]] std::unique_ptr<Tokenizer> tokenizer_from_json(const nlohmann::json& json);

}  // namespace stoker::data
