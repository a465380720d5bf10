// SPDX-License-Identifier: Apache-2.0
// The byte and the character tokenizer, with ids and texts written by hand.
#include "stoker/data/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "stoker/base/error.h"

namespace stoker::data {
namespace {

using Ids = std::vector<std::int32_t>;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Tokenizer, BytesAreTheirOwnIds) {
  const auto bytes = byte_tokenizer();
  const std::string text("a\0\xFF\xC3\xA9", 5);
  EXPECT_EQ(bytes->size(), 256);
  EXPECT_EQ(bytes->encode(text), (Ids{97, 0, 255, 0xC3, 0xA9}));
  EXPECT_EQ(bytes->decode(bytes->encode(text)), text);
  EXPECT_EQ(bytes->describe(), "bytes");
  EXPECT_EQ(tokenizer_from_json(bytes->to_json())->encode(text), bytes->encode(text));
  EXPECT_THAT([&] { (void)bytes->decode(Ids{256}); }, ThrowsMessage<DataError>(HasSubstr("id 256")));
  EXPECT_THAT([&] { (void)bytes->decode(Ids{-1}); }, ThrowsMessage<DataError>(HasSubstr("0 to 255")));
}

TEST(Tokenizer, CharactersRiseWithTheirCodePoint) {
  const auto characters = character_tokenizer("bañ𝄞\nab€");
  EXPECT_EQ(characters->size(), 6);
  EXPECT_EQ(characters->encode("\nabñ€𝄞"), (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(characters->decode(Ids{5, 0, 3}), "𝄞\nñ");
  EXPECT_EQ(characters->describe(), "6 characters");
  EXPECT_EQ(character_tokenizer("aa")->describe(), "1 character");
  const auto again = tokenizer_from_json(nlohmann::json::parse(characters->to_json().dump()));
  EXPECT_EQ(again->encode("𝄞€ñba\n"), (Ids{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(again->size(), 6);
}

TEST(Tokenizer, CharactersNameWhatTheyCannotRead) {
  const auto characters = character_tokenizer("ab");
  EXPECT_THAT([&] { (void)characters->encode("abé"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("U+00E9 'é' at byte offset 2"), HasSubstr("2 characters"))));
  EXPECT_THAT([&] { (void)characters->encode("𝄞"); }, ThrowsMessage<DataError>(HasSubstr("U+1D11E")));
  EXPECT_THAT([&] { (void)characters->decode(Ids{2}); }, ThrowsMessage<DataError>(HasSubstr("0 to 1")));
  EXPECT_THAT([] { (void)character_tokenizer(""); }, ThrowsMessage<DataError>(HasSubstr("empty")));
  // A lone continuation byte, a truncated character, overlong forms, surrogates, and code points above U+10FFFF: none
  // of these is UTF-8 (RFC 3629).
  for (const char* tail : {"\x80", "\xC3", "\xE2\x82", "\xC0\xAF", "\xE0\x80\xAF", "\xF0\x80\x80\xAF", "\xED\xA0\x80",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3("}) {
    EXPECT_THAT([&] { (void)character_tokenizer(std::string("aé") + tail); },
                ThrowsMessage<DataError>(AllOf(HasSubstr("offset 3"), HasSubstr("tokenizer=bytes"))))
        << tail;
  }
  // The limits themselves are UTF-8.
  EXPECT_EQ(character_tokenizer("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF")->size(), 3);
}

TEST(Tokenizer, RefusesWhatNoTokenizerSaved) {
  for (const char* text : {"{}", "[]", R"({"kind":"words"})", R"({"kind":"characters"})", R"({"kind":3})",
                           R"({"kind":"characters","characters":""})"}) {
    EXPECT_THROW((void)tokenizer_from_json(nlohmann::json::parse(text)), DataError) << text;
  }
}

}  // namespace
}  // namespace stoker::data
