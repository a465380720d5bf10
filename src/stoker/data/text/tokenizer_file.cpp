// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/text/tokenizer_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/thousands.h"
#include "stoker/data/text/byte_alphabet.h"
#include "stoker/data/text/json_member.h"

namespace stoker::data {
namespace {

using Json = nlohmann::json;

struct Vocabulary {
  std::vector<std::string> spellings;  // by id
  ByText<std::int32_t> ids;
};

Vocabulary read_vocabulary(const JsonMember& vocab) {
  if (!vocab.value().is_object() || vocab.size() == 0) {
    vocab.refuse(fmt::format("is {}; expected an object of tokens and ids", vocab.shown()));
  }
  Vocabulary read;
  read.spellings.resize(vocab.size());
  std::vector<bool> taken(vocab.size());
  for (const auto& item : vocab.value().items()) {
    const JsonMember id = vocab[item.key()];
    const std::optional<std::size_t> place = id.index(vocab.size());
    if (!place) {
      vocab.refuse(fmt::format("gives '{}' the id {}, but its {} tokens need the ids 0 to {} without gaps",
                               printable(item.key()), id.shown(), thousands(std::ssize(taken)), vocab.size() - 1));
    }
    if (taken[*place]) {
      vocab.refuse(fmt::format("gives both '{}' and '{}' the id {}", printable(read.spellings[*place]),
                               printable(item.key()), *place));
    }
    taken[*place] = true;
    read.spellings[*place] = item.key();
    read.ids.emplace(item.key(), static_cast<std::int32_t>(*place));
  }
  return read;
}

std::pair<std::string, std::string> merge_texts(const JsonMember& merge) {
  if (merge.value().is_array() && merge.size() == 2) {
    return {merge[0].text(), merge[1].text()};
  }
  if (merge.value().is_string()) {
    const std::string& text = merge.text();
    const std::size_t space = text.find(' ');
    if (space != text.npos && text.find(' ', space + 1) == text.npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  }
  merge.refuse(fmt::format("is {}; expected two tokens, as \"a b\" or [\"a\", \"b\"]", merge.shown()));
}

std::vector<BytePairs::Merge> read_merges(const JsonMember& merges, const Vocabulary& vocabulary) {
  std::vector<BytePairs::Merge> read;
  for (std::size_t i = 0; i < merges.list().size(); ++i) {
    const JsonMember merge = merges[i];
    if (merge.value().is_string() && merge.text().starts_with("#version")) {
      continue;  // first line of a merges.txt; `tokenizers` also ignores it
    }
    const auto [left, right] = merge_texts(merge);
    const auto id_of = [&](const std::string& token) {
      const auto found = vocabulary.ids.find(token);
      if (found == vocabulary.ids.end()) {
        merge.refuse(fmt::format("is {}, but model.vocab has no token '{}'", merge.shown(), printable(token)));
      }
      return found->second;
    };
    read.push_back({id_of(left), id_of(right), id_of(left + right)});
  }
  return read;
}

void read_model(const JsonMember& model, BpeParts& parts, Vocabulary& vocabulary) {
  if (!model.value().is_object()) {
    model.refuse(fmt::format("is {}; expected a model of type BPE", model.shown()));
  }
  // Files from before 2020 have no type; merges show that it is BPE.
  if (const JsonMember type = model["type"]; type.is_null() ? model["merges"].is_null() : type.value() != "BPE") {
    type.refuse(fmt::format("is {}; only byte-level BPE is supported; set tokenizer=bytes to start", type.shown()));
  }
  model.object({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                "byte_fallback", "ignore_merges", "vocab", "merges"});
  model["dropout"].must_do_nothing("randomly dropped merges would give different ids each time", {0.0});
  model["continuing_subword_prefix"].must_do_nothing("byte-level BPE has no prefixes", {""});
  model["end_of_word_suffix"].must_do_nothing("byte-level BPE has no suffixes", {""});
  // unk_token, fuse_unk and byte_fallback are for characters without a token; every byte has a token, see below.
  vocabulary = read_vocabulary(model["vocab"]);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string spelling = spelling_of(static_cast<unsigned char>(byte));
    const auto found = vocabulary.ids.find(spelling);
    if (found == vocabulary.ids.end()) {
      model["vocab"].refuse(
          fmt::format("has no token '{}' for the byte {:#04x}; train it with "
                      "initial_alphabet=ByteLevel.alphabet()",
                      spelling, byte));
    }
    parts.byte_ids[byte] = found->second;
  }
  parts.merges = read_merges(model["merges"], vocabulary);
  const bool words = model["ignore_merges"].flag(false);
  for (std::size_t id = 0; words && id < vocabulary.spellings.size(); ++id) {
    if (auto bytes = bytes_of_spelling(vocabulary.spellings[id])) {
      parts.words.emplace(std::move(*bytes), static_cast<std::int32_t>(id));
    }
  }
}

void read_added(const JsonMember& tokens, BpeParts& parts, Vocabulary& vocabulary) {
  if (tokens.is_null()) {
    return;
  }
  const std::size_t model_size = vocabulary.spellings.size();
  ByText<bool> seen;
  for (std::size_t i = 0; i < tokens.list().size(); ++i) {
    const JsonMember token =
        tokens[i].object({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    const std::string& text = token["content"].text();
    if (text.empty() || !seen.emplace(text, true).second) {
      token["content"].refuse(fmt::format("is {}: empty or repeated", token["content"].shown()));
    }
    for (const char* key : {"single_word", "lstrip", "rstrip"}) {
      token[key].must_do_nothing("tokens that depend on their neighbours are not supported", {false});
    }
    // Tokens that are not in the model follow its own, in the order of the file.
    const auto [entry, fresh] = vocabulary.ids.emplace(text, static_cast<std::int32_t>(vocabulary.spellings.size()));
    if (token["id"].value() != entry->second) {
      token["id"].refuse(fmt::format("is {}, but '{}' must have the id {}: {}", token["id"].shown(), printable(text),
                                     entry->second,
                                     fresh ? fmt::format("ids continue without gaps after the {} tokens of the model",
                                                         thousands(static_cast<std::int64_t>(model_size)))
                                           : "that is its id in model.vocab"));
    }
    if (fresh) {
      vocabulary.spellings.push_back(text);
    }
    const bool normalized = token["normalized"].flag();
    (void)token["special"].flag();  // only for display; the ids are the same
    parts.added[normalized ? 1 : 0].push_back({text, entry->second});
  }
}

void add_split(const JsonMember& split, BpeParts& parts) {
  split.object({"type", "pattern", "behavior", "invert"});
  const JsonMember pattern = split["pattern"].object({"Regex", "String"});
  if (pattern.size() != 1) {
    pattern.refuse(fmt::format("is {}; expected either Regex or String", pattern.shown()));
  }
  const bool regex = !pattern["Regex"].is_null();
  const bool invert = split["invert"].flag();
  const JsonMember behavior = split["behavior"];
  if (behavior.value() != "Isolated" && behavior.value() != "Removed") {
    behavior.refuse(fmt::format("is {}; supported are Isolated and Removed", behavior.shown()));
  }
  const Keep keep = behavior.value() == "Isolated" ? Keep::kAll : invert ? Keep::kMatches : Keep::kGaps;
  const std::string text = regex ? pattern["Regex"].text() : literal_pattern(pattern["String"].text());
  try {
    parts.stages.emplace_back(SplitRule(text, keep));
  } catch (const DataError& error) {
    pattern.refuse(fmt::format("is not supported: {}", error.what()));
  }
}

void read_pre_tokenizer(const JsonMember& pre, BpeParts& parts) {
  const bool many = pre.value().is_object() && pre["type"].value() == "Sequence";
  const JsonMember list = many ? pre.object({"type", "pretokenizers"})["pretokenizers"].list() : pre;
  bool bytes = false;
  for (std::size_t i = 0; i < (many ? list.size() : 1); ++i) {
    const JsonMember each = many ? list[i] : pre;
    const std::string type = each.value().is_object() ? each["type"].text() : "null";
    if (bytes) {
      each.refuse(fmt::format("is {} after ByteLevel, which must be the last", type));
    }
    if (type == "ByteLevel") {
      each.object({"type", "add_prefix_space", "trim_offsets", "use_regex"});
      if (each["add_prefix_space"].flag()) {
        parts.stages.emplace_back(PrefixSpace());
      }
      if (each["use_regex"].flag(true)) {
        parts.stages.emplace_back(SplitRule(kGpt2Pattern, Keep::kAll));
      }
      bytes = true;
    } else if (type == "Split") {
      add_split(each, parts);
    } else if (type == "Digits") {
      const bool one = each.object({"type", "individual_digits"})["individual_digits"].flag();
      parts.stages.emplace_back(SplitRule(one ? "\\p{N}" : "\\p{N}+", Keep::kAll));
    } else {
      each.refuse(fmt::format("has the type {}; supported are ByteLevel, Split and Digits", type));
    }
  }
  if (!bytes) {
    pre.refuse("has no ByteLevel at its end, so it is not byte-level BPE");
  }
}

void read_post_processor(const JsonMember& post) {
  if (!post.value().is_object()) {
    post.must_do_nothing("expected a post-processor or null");
    return;
  }
  if (post["type"].value() == "Sequence") {
    const JsonMember list = post.object({"type", "processors"})["processors"].list();
    for (std::size_t i = 0; i < list.size(); ++i) {
      read_post_processor(list[i]);
    }
  } else if (post["type"].value() != "ByteLevel") {  // ByteLevel only changes offsets, not ids
    post.refuse(
        fmt::format("has the type {}, which adds tokens to text, but training uses text without them; set "
                    "post_processor to null in a copy of the file",
                    post["type"].shown()));
  }
}

}  // namespace

BpeParts read_bpe(const Json& json, const std::string& name) {
  const JsonMember whole(json, "data.tokenizer", name);
  whole.object({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                "decoder", "model"});
  whole["version"].must_do_nothing("only version 1.0 is supported", {"1.0"});
  whole["truncation"].must_do_nothing("text is never truncated");
  whole["padding"].must_do_nothing("text is never padded");
  whole["normalizer"].must_do_nothing("normalizers are not supported",
                                      {Json{{"type", "Sequence"}, {"normalizers", Json::array()}}});
  BpeParts parts;
  Vocabulary vocabulary;
  read_model(whole["model"], parts, vocabulary);
  read_added(whole["added_tokens"], parts, vocabulary);
  read_pre_tokenizer(whole["pre_tokenizer"], parts);
  read_post_processor(whole["post_processor"]);
  if (const JsonMember decoder = whole["decoder"]; !decoder.value().is_object()) {
    decoder.refuse(fmt::format("is {}; expected ByteLevel", decoder.shown()));
  } else if (decoder["type"].value() != "ByteLevel") {
    decoder["type"].refuse(fmt::format("is {}; expected ByteLevel", decoder["type"].shown()));
  }
  for (const std::string& spelling : vocabulary.spellings) {
    parts.tokens.push_back(bytes_of_spelling(spelling).value_or(spelling));
  }
  parts.source = json.dump();
  return parts;
}

}  // namespace stoker::data
