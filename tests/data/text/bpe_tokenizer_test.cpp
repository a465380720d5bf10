// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE: ids equal those of the Python library `tokenizers` (tests/golden/make_tokens.py), and merges equal
// those of a twin.
#include "stoker/data/text/bpe_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "stoker/base/error.h"
#include "stoker/base/philox.h"
#include "support/temp_folder.h"
#include "support/tokens.h"

namespace stoker::data {
namespace {

using Ids = std::vector<std::int32_t>;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing::token_golden;
using testing::tokenizer_file;

std::unique_ptr<Tokenizer> made(const nlohmann::json& file) {
  const testing::TempFolder folder;
  folder.write("tokenizer.json", file.dump());
  return read_tokenizer(folder / "tokenizer.json");
}

TEST(BpeTokenizer, GivesTheIdsOfTokenizers) {
  for (const auto& golden : token_golden()["cases"]) {
    const auto tokenizer = made(tokenizer_file(golden["changes"]));
    const auto again = tokenizer_from_json(nlohmann::json::parse(tokenizer->to_json().dump()));
    for (std::size_t i = 0; i < token_golden()["texts"].size(); ++i) {
      SCOPED_TRACE(golden["name"].get<std::string>() + ", text " + std::to_string(i));
      const auto text = token_golden()["texts"][i].get<std::string>();
      const Ids ids = tokenizer->encode(text);
      EXPECT_EQ(ids, golden["ids"][i].get<Ids>());
      EXPECT_EQ(again->encode(text), ids);
      if (const auto decoded = golden["decoded"][i].get<std::string>(); decoded.find("\uFFFD") == decoded.npos) {
        EXPECT_EQ(tokenizer->decode(ids), decoded);
      }
    }
  }
}

TEST(BpeTokenizer, SaysWhatItIs) {
  const auto tokenizer = made(tokenizer_file());
  EXPECT_EQ(tokenizer->size(), 340);
  EXPECT_EQ(tokenizer->describe(), "byte-level BPE, 340 tokens");
}

TEST(BpeTokenizer, DecodesAnyIds) {
  const auto tokenizer = made(tokenizer_file());
  const Ids halves = tokenizer->encode("\u0416");  // two bytes that the vocabulary has no merge for
  ASSERT_EQ(halves.size(), 2U);
  EXPECT_EQ(tokenizer->decode(Ids{halves[1]}), "\x96");
  EXPECT_EQ(tokenizer->decode(Ids{0}), "<|end|>");
  EXPECT_EQ(tokenizer->decode(Ids{}), "");
  EXPECT_THAT([&] { (void)tokenizer->decode(Ids{340}); }, ThrowsMessage<DataError>(HasSubstr("0 to 339")));
  EXPECT_THAT([&] { (void)tokenizer->decode(Ids{-1}); }, ThrowsMessage<DataError>(HasSubstr("id -1")));
}

TEST(BpeTokenizer, NamesTextThatItCannotRead) {
  const auto tokenizer = made(tokenizer_file());
  EXPECT_THAT([&] { (void)tokenizer->encode("ab\xFFz"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("0xff at byte offset 2"), HasSubstr("tokenizer=bytes"))));
  // U+0378 is not assigned in Unicode. A later version may make it a letter, which would change how words are split.
  EXPECT_THAT([&] { (void)tokenizer->encode("ab \u0378"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("U+0378 at byte offset 3"), HasSubstr("Oniguruma"))));
}

// The cost of a regular expression in a user's file is bounded.
TEST(BpeTokenizer, AnExpressionThatGivesUpIsAnError) {
  const nlohmann::json evil = {
      {"type", "Split"}, {"pattern", {{"Regex", "(x+x+)+y"}}}, {"behavior", "Isolated"}, {"invert", false}};
  const nlohmann::json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto tokenizer =
      made(tokenizer_file({{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {evil, bytes}}}}}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("axxyb")), "axxyb");
  EXPECT_THAT([&] { (void)tokenizer->encode(std::string(40, 'x')); },
              ThrowsMessage<DataError>(HasSubstr("failed at byte offset 0")));
}

TEST(BpeTokenizer, ManyThreadsEncodeAlike) {
  const auto tokenizer = made(tokenizer_file());
  const auto text = token_golden()["texts"][13].get<std::string>();
  const Ids expected = tokenizer->encode(text);
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { right += tokenizer->encode(text) == expected ? 1 : 0; });
    }
  }
  EXPECT_EQ(right, 4);
}

// The twin, directly from the definition: while any neighbours can merge, merges the pair of the lowest rank; the
// leftmost one on a tie.
Ids plain_merge(Ids ids, const std::vector<BytePairs::Merge>& merges) {
  for (;;) {
    std::size_t best_rank = merges.size();
    std::size_t best_at = 0;
    for (std::size_t at = 0; at + 1 < ids.size(); ++at) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank].left == ids[at] && merges[rank].right == ids[at + 1]) {
          best_rank = rank;
          best_at = at;
        }
      }
    }
    if (best_rank == merges.size()) {
      return ids;
    }
    ids[best_at] = merges[best_rank].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

TEST(BytePairs, MergesLikeThePlainTwin) {
  std::array<std::int32_t, 256> byte_ids{};
  for (std::int32_t byte = 0; byte < 256; ++byte) {
    byte_ids[static_cast<std::size_t>(byte)] = byte;
  }
  for (std::uint32_t trial = 0; trial < 300; ++trial) {
    std::uint32_t draw = 0;
    const auto below = [&](std::uint32_t end) {
      return static_cast<std::int32_t>(philox4x32({draw++, trial, 0, 0}, {7, 0})[0] % end);
    };
    // Merges of any earlier tokens, in any order: harder than the merges that training produces. Bytes are 0, 1 and 2.
    std::vector<BytePairs::Merge> merges;
    for (std::int32_t result = 256; result < 276; ++result) {
      const auto token = [&] {
        const auto drawn = below(static_cast<std::uint32_t>(result - 256 + 3));
        return drawn < 3 ? drawn : 253 + drawn;
      };
      const BytePairs::Merge merge{token(), token(), result};
      const bool known = std::ranges::any_of(
          merges, [&](const auto& other) { return other.left == merge.left && other.right == merge.right; });
      if (!known) {
        merges.insert(merges.begin() + below(static_cast<std::uint32_t>(merges.size() + 1)), merge);
      }
    }
    std::string word;
    Ids start;
    for (int i = 0; i < 40; ++i) {
      start.push_back(below(3));
      word += static_cast<char>(start.back());
    }
    Ids ids;
    BytePairs(byte_ids, merges).encode(word, ids);
    ASSERT_EQ(ids, plain_merge(start, merges)) << "trial " << trial;
  }
}

}  // namespace
}  // namespace stoker::data
