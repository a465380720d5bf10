// SPDX-License-Identifier: Apache-2.0
// A tokenizer.json is refused if a member would change ids in an unsupported way; the error names the member.
#include "stoker/data/text/tokenizer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "support/temp_folder.h"
#include "support/tokens.h"

namespace stoker::data {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing::tokenizer_file;

void expect_refused(const json& file, const std::string& member, const std::string& why) {
  EXPECT_THAT([&] { (void)read_bpe(file, "my.json"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("[data.tokenizer] my.json: " + member + " "), HasSubstr(why))));
}

// The file with another value at a JSON pointer; missing members are added.
json with(const std::string& pointer, const json& value) {
  json file = tokenizer_file();
  file[json::json_pointer(pointer)] = value;
  return file;
}

TEST(TokenizerFile, FilesThatAreNone) {
  const testing::TempFolder folder;
  EXPECT_THAT([&] { (void)read_tokenizer(folder / "none.json"); }, ThrowsMessage<DataError>(HasSubstr("none.json")));
  const std::string whole = tokenizer_file().dump();
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("\xFF\xFE"), whole + "}"}) {
    folder.write("cut.json", text);
    EXPECT_THAT([&] { (void)read_tokenizer(folder / "cut.json"); },
                ThrowsMessage<DataError>(AllOf(HasSubstr("cut.json: "), HasSubstr("complete tokenizer.json"))));
  }
  folder.write("deep.json", R"({"model": )" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}");
  EXPECT_THAT([&] { (void)read_tokenizer(folder / "deep.json"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("deep.json: "), HasSubstr("nested deeper"))));
  expect_refused(json::array(), "the file", "expected an object");
  expect_refused(json::object(), "model", "expected a model of type BPE");
}

TEST(TokenizerFile, OtherModels) {
  expect_refused(with("/model", {{"type", "WordPiece"}, {"vocab", {{"a", 0}}}}), "model.type", "\"WordPiece\"");
  expect_refused(with("/model", {{"vocab", {{"a", 0}}}}), "model.type", "null");  // an old WordPiece or WordLevel
  expect_refused(with("/model/type", "Unigram"), "model.type", "\"Unigram\"");
  expect_refused(with("/pre_tokenizer", nullptr), "pre_tokenizer", "null");
  expect_refused(with("/pre_tokenizer/type", "Metaspace"), "pre_tokenizer", "Metaspace");
  expect_refused(with("/decoder", nullptr), "decoder", "expected ByteLevel");
  expect_refused(with("/decoder/type", "WordPiece"), "decoder.type", "WordPiece");
}

TEST(TokenizerFile, VocabulariesThatDoNotHold) {
  json file = tokenizer_file();
  json& vocab = file["model"]["vocab"];
  const json good = vocab;
  vocab = json::object();
  expect_refused(file, "model.vocab", "tokens and ids");
  for (const json& id :
       {json(340), json(std::int64_t{1} << 31), json(18446744073709551615U), json(-1), json(1.0), json("1"), json()}) {
    vocab = good;
    vocab["the"] = id;
    expect_refused(file, "model.vocab", "'the' the id " + id.dump() + ", but its 340 tokens need the ids 0 to 339");
  }
  vocab = good;
  vocab["the"] = 0;  // its own id is now a hole
  expect_refused(file, "model.vocab", "'<|end|>' and 'the' the id 0");
  vocab = good;
  vocab.erase("!");
  vocab["\u4e00"] = good["!"];
  expect_refused(file, "model.vocab", "no token '!' for the byte 0x21");
  vocab = good;
  const json& merge = file["model"]["merges"][0];
  const std::string merged = merge[0].get<std::string>() + merge[1].get<std::string>();
  vocab["\u4e00"] = vocab[merged];
  vocab.erase(merged);
  expect_refused(file, "model.merges[0]", "has no token '" + merged + "'");
}

TEST(TokenizerFile, MergesThatAreNone) {
  expect_refused(with("/model/merges/3", "t nothing"), "model.merges[3]", "no token 'nothing'");
  for (const json& merge : {json("t"), json("t h e"), json({"t"}), json({"t", "h", "e"}), json(3)}) {
    expect_refused(with("/model/merges/3", merge), "model.merges[3]", "expected two tokens");
  }
  expect_refused(with("/model/merges/3", {1, 2}), "model.merges[3][0]", "expected a string");
  expect_refused(with("/model/merges", nullptr), "model.merges", "expected a list");
}

TEST(TokenizerFile, MembersThatWouldChangeIds) {
  expect_refused(with("/model/dropout", 0.1), "model.dropout", "0.1");
  expect_refused(with("/model/continuing_subword_prefix", "##"), "model.continuing_subword_prefix", "##");
  expect_refused(with("/model/end_of_word_suffix", "</w>"), "model.end_of_word_suffix", "</w>");
  expect_refused(with("/model/ignore_merges", 1), "model.ignore_merges", "true or false");
  expect_refused(with("/model/novel", 1), "model.novel", "not supported");
  expect_refused(with("/novel", 1), "novel", "not supported");
  expect_refused(with("/version", "2.0"), "version", "2.0");
  expect_refused(with("/truncation", {{"max_length", 8}}), "truncation", "never truncated");
  expect_refused(with("/padding", {{"pad_id", 0}}), "padding", "never padded");
  expect_refused(with("/normalizer", {{"type", "NFC"}}), "normalizer", "NFC");
  const json adds = {{"type", "TemplateProcessing"}, {"single", json::array()}};
  expect_refused(with("/post_processor", adds), "post_processor", "post_processor to null");
  expect_refused(with("/post_processor", {{"type", "Sequence"}, {"processors", {adds}}}),
                 "post_processor.processors[0]", "TemplateProcessing");
}

TEST(TokenizerFile, WaysOfCuttingThatAreNotKnown) {
  const auto sequence = [](const json& first) {
    return with("/pre_tokenizer", {{"type", "Sequence"},
                                   {"pretokenizers", {first, {{"type", "ByteLevel"}, {"add_prefix_space", false}}}}});
  };
  const std::string first = "pre_tokenizer.pretokenizers[0]";
  json split = {{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Isolated"}, {"invert", false}};
  EXPECT_NO_THROW((void)read_bpe(sequence(split), "my.json"));
  const auto changed = [&](const std::string& key, const json& value) {
    json other = split;
    other[key] = value;
    return sequence(other);
  };
  expect_refused(changed("behavior", "MergedWithNext"), first + ".behavior", "MergedWithNext");
  expect_refused(changed("invert", nullptr), first + ".invert", "true or false");
  expect_refused(changed("pattern", {{"Regex", "(a"}}), first + ".pattern", "not a regular expression");
  expect_refused(changed("pattern", {{"Regex", "a"}, {"String", "a"}}), first + ".pattern", "either");
  expect_refused(changed("pattern", "a"), first + ".pattern", "expected an object");
  expect_refused(changed("limit", 3), first + ".limit", "not supported");
  expect_refused(sequence({{"type", "Whitespace"}}), first, "Whitespace");
  expect_refused(sequence({{"type", "ByteLevel"}, {"add_prefix_space", false}}), "pre_tokenizer.pretokenizers[1]",
                 "must be the last");
  expect_refused(with("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split}}}), "pre_tokenizer",
                 "no ByteLevel");
  expect_refused(with("/pre_tokenizer/add_prefix_space", nullptr), "pre_tokenizer.add_prefix_space", "true or false");
}

TEST(TokenizerFile, AddedTokensThatDoNotFit) {
  const json good = {{"id", 340},       {"content", "<s>"},    {"single_word", false}, {"lstrip", false},
                     {"rstrip", false}, {"normalized", false}, {"special", true}};
  const auto added = [&](const std::string& key, const json& value) {
    json token = good;
    token[key] = value;
    return with("/added_tokens/1", token);
  };
  EXPECT_EQ(read_bpe(added("id", 340), "my.json").tokens.size(), 341U);
  expect_refused(added("id", 341), "added_tokens[1].id", "must have the id 340");  // a hole
  expect_refused(added("id", std::int64_t{1} << 31), "added_tokens[1].id", "2147483648");
  expect_refused(added("content", "the"), "added_tokens[1].id", "that is its id in model.vocab");
  expect_refused(added("content", "<|end|>"), "added_tokens[1].content", "repeated");
  expect_refused(added("content", ""), "added_tokens[1].content", "empty");
  for (const char* key : {"single_word", "lstrip", "rstrip"}) {
    expect_refused(added(key, true), std::string("added_tokens[1].") + key, "not supported");
  }
  expect_refused(added("normalized", nullptr), "added_tokens[1].normalized", "true or false");
}

// Members that do not affect ids, in every spelling found in real files.
TEST(TokenizerFile, WhatChangesNothingIsTaken) {
  json file = tokenizer_file();
  file["model"].merge_patch({{"type", nullptr},
                             {"dropout", 0.0},
                             {"continuing_subword_prefix", ""},
                             {"end_of_word_suffix", ""},
                             {"unk_token", "<|end|>"},
                             {"fuse_unk", true},
                             {"byte_fallback", true}});
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array()}};
  file["post_processor"] = {{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}, {"trim_offsets", true}}}}};
  file.erase("version");
  const auto plain = bpe_tokenizer(read_bpe(tokenizer_file(), "a.json"));
  EXPECT_EQ(bpe_tokenizer(read_bpe(file, "b.json"))->encode("then \u4f60"), plain->encode("then \u4f60"));
}

}  // namespace
}  // namespace stoker::data
