// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/text/tokenizer.h"

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/json_depth.h"
#include "stoker/base/thousands.h"
#include "stoker/base/utf8.h"
#include "stoker/data/text/bpe_tokenizer.h"
#include "stoker/data/text/token_checks.h"
#include "stoker/data/text/tokenizer_file.h"

namespace stoker::data {
namespace {

constexpr std::string_view kWhere = "data.tokenizer";

class ByteTokenizer : public Tokenizer {
 public:
  [[nodiscard]] std::int64_t size() const override { return 256; }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const override {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    return {bytes, bytes + text.size()};
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const std::int32_t id : ids) {
      check_id(id, 256);
      text += static_cast<char>(id);
    }
    return text;
  }
  [[nodiscard]] std::string describe() const override { return "bytes"; }
  [[nodiscard]] nlohmann::json to_json() const override { return {{"kind", "bytes"}}; }
};

class CharacterTokenizer : public Tokenizer {
 public:
  explicit CharacterTokenizer(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint next = next_of(text, at);
      if (next.value >= ids_.size()) {
        ids_.resize(next.value + 1, kNone);
      }
      ids_[next.value] = 0;
      at += next.bytes;
    }
    for (char32_t value = 0; value < ids_.size(); ++value) {
      if (ids_[value] != kNone) {
        ids_[value] = static_cast<std::int32_t>(characters_.size());
        characters_.push_back(utf8_of(value));
      }
    }
    if (characters_.empty()) {
      fail<DataError>(kWhere,
                      "the text is empty, so there is no vocabulary of characters; give text, or set tokenizer=bytes");
    }
  }
  [[nodiscard]] std::int64_t size() const override { return std::ssize(characters_); }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    ids.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint next = next_of(text, at);
      const std::int32_t id = next.value < ids_.size() ? ids_[next.value] : kNone;
      if (id == kNone) {
        fail<DataError>(kWhere,
                        "U+{:04X} '{}' at byte offset {} is not in the vocabulary of {}; leave it out, or train with "
                        "tokenizer=bytes",
                        static_cast<std::uint32_t>(next.value), printable(text.substr(at, next.bytes)), at, describe());
      }
      ids.push_back(id);
      at += next.bytes;
    }
    return ids;
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      check_id(id, characters_.size());
      text += characters_[static_cast<std::size_t>(id)];
    }
    return text;
  }
  [[nodiscard]] std::string describe() const override {
    return characters_.size() == 1 ? "1 character" : thousands(size()) + " characters";
  }
  [[nodiscard]] nlohmann::json to_json() const override {
    return {{"kind", "characters"}, {"characters", fmt::format("{}", fmt::join(characters_, ""))}};
  }

 private:
  static constexpr std::int32_t kNone = -1;

  static CodePoint next_of(std::string_view text, std::size_t at) {
    const CodePoint next = code_point_at(text, at);
    if (next.bytes == 0) {
      fail_no_utf8(text, at);
    }
    return next;
  }

  std::vector<std::string> characters_;  // by id, in UTF-8
  std::vector<std::int32_t> ids_;        // by code point
};

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> character_tokenizer(std::string_view text) {
  return std::make_unique<CharacterTokenizer>(text);
}

std::unique_ptr<Tokenizer> read_tokenizer(const std::filesystem::path& file) {
  const std::string name = printable(file.native());
  const std::string text = read_text(file);
  if (json_nests_deeper(text)) {
    fail<DataError>(kWhere, "{}: nested deeper than {} levels; give a tokenizer.json", name, kMostJsonLevels);
  }
  try {
    return bpe_tokenizer(read_bpe(nlohmann::json::parse(text), name));
  } catch (const nlohmann::json::parse_error& error) {
    fail<DataError>(kWhere, "{}: is not complete JSON, error at byte {}; give a complete tokenizer.json", name,
                    error.byte);
  }
}

std::unique_ptr<Tokenizer> tokenizer_from_json(const nlohmann::json& json) {
  try {
    const auto kind = json.at("kind").get<std::string>();
    if (kind == "bytes") {
      return byte_tokenizer();
    }
    if (kind == "characters") {
      return character_tokenizer(json.at("characters").get<std::string>());
    }
    if (kind == "tokenizer.json") {
      return bpe_tokenizer(read_bpe(json.at("tokenizer"), "the saved tokenizer"));
    }
    fail<DataError>(
        kWhere, "the saved tokenizer has the kind '{}', but this version supports bytes, characters and tokenizer.json",
        printable(kind));
  } catch (const nlohmann::json::exception& error) {
    fail<DataError>(kWhere, "the saved tokenizer is damaged: {}; save it again from its source", error.what());
  }
}

}  // namespace stoker::data
