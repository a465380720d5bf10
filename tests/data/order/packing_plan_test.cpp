// SPDX-License-Identifier: Apache-2.0
// Packing against a twin that searches all sequences for each piece of a document. Also packs documents of realistic
// lengths, and the lines and paragraphs of a real text.
#include "stoker/data/order/packing_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string_view>

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/data/order/plan_hash.h"
#include "stoker/data/order/sampler.h"
#include "stoker/data/text/text_files.h"
#include "support/shared_data.h"

namespace stoker::data {
namespace {

using Lengths = std::vector<std::int64_t>;
using Piece = PackingPlan::Piece;

Lengths log_normal(std::size_t count, double median, double sigma) {
  std::mt19937 random(9);
  Lengths lengths(count);
  for (std::int64_t& length : lengths) {
    double normal = -6;  // a sum of twelve uniform numbers: the same on every machine
    for (int i = 0; i < 12; ++i) {
      normal += static_cast<double>(random()) * 0x1p-32;
    }
    length = std::max<std::int64_t>(1, std::llround(median * std::exp(sigma * normal)));
  }
  return lengths;
}

// Checks that an epoch has every token once and that no document is cut unnecessarily. Returns the lengths of each
// sequence's pieces, longest first.
std::vector<Lengths> epoch_of(const PackingPlan& plan, const Lengths& lengths, std::int64_t most, std::int64_t epoch) {
  std::map<std::int64_t, std::vector<Piece>> documents;
  std::vector<Lengths> sequences;
  std::vector<Piece> pieces;
  for (std::int64_t number = 0; number < plan.sequences(); ++number) {
    plan.sequence(epoch, number, pieces);
    EXPECT_FALSE(pieces.empty());
    Lengths& held = sequences.emplace_back();
    for (const Piece& piece : pieces) {
      held.push_back(piece.length);
      documents[piece.document].push_back(piece);
    }
    EXPECT_LE(std::reduce(held.begin(), held.end()), most);
    EXPECT_EQ(piece_offsets(pieces).back(), std::reduce(held.begin(), held.end()));
    EXPECT_EQ(piece_offsets(pieces).size(), pieces.size() + 1);
    std::ranges::sort(held, std::ranges::greater{});
  }
  for (auto& [document, parts] : documents) {
    std::ranges::sort(parts, {}, &Piece::start);
    std::int64_t next = 0;
    for (const Piece& piece : parts) {
      EXPECT_EQ(piece.start, next);
      EXPECT_TRUE(piece.length == most || piece.start + piece.length == lengths[static_cast<std::size_t>(document)]);
      next += piece.length;
    }
    EXPECT_EQ(next, lengths[static_cast<std::size_t>(document)]);
  }
  EXPECT_EQ(static_cast<std::ptrdiff_t>(documents.size()),
            std::ranges::count_if(lengths, [](std::int64_t length) { return length > 0; }));
  return sequences;
}

// Best fit decreasing, as textbooks describe it: each piece goes into the fullest sequence with enough room; on a tie,
// into the sequence that was filled last.
std::vector<Lengths> slow_twin(const Lengths& lengths, std::int64_t most) {
  Lengths pieces;
  for (std::int64_t length : lengths) {
    for (; length > 0; length -= most) {
      pieces.push_back(std::min(length, most));
    }
  }
  std::ranges::sort(pieces, std::ranges::greater{});
  struct Sequence {
    Lengths held;
    std::int64_t room;
    std::size_t touched;
  };
  std::vector<Sequence> sequences;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Sequence* best = nullptr;
    for (Sequence& each : sequences) {
      if (each.room >= pieces[i] &&
          (best == nullptr || each.room < best->room || (each.room == best->room && each.touched > best->touched))) {
        best = &each;
      }
    }
    if (best == nullptr) {
      best = &sequences.emplace_back(Sequence{{}, most, 0});
    }
    best->held.push_back(pieces[i]);
    best->room -= pieces[i];
    best->touched = i;
  }
  std::vector<Lengths> all;
  for (const Sequence& each : sequences) {
    all.push_back(each.held);
  }
  return all;
}

TEST(PackingPlan, PacksAsTheSlowTwin) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const auto most = static_cast<std::int64_t>(random() % 60 + 1);
    Lengths lengths(random() % 120);
    for (std::int64_t& length : lengths) {
      length = static_cast<std::int64_t>(random() % (trial % 3 == 0 ? 150 : 30));
    }
    const PackingPlan plan(lengths, {.length = most, .seed = 3});
    const std::vector<Lengths> expected = slow_twin(lengths, most);
    ASSERT_EQ(epoch_of(plan, lengths, most, 0), expected);
    ASSERT_EQ(epoch_of(plan, lengths, most, 5), expected);
    const auto longer = [&](std::int64_t length) { return length > most; };
    ASSERT_EQ(plan.cut_documents(), std::ranges::count_if(lengths, longer));
    ASSERT_EQ(plan.tokens(), std::reduce(lengths.begin(), lengths.end(), std::int64_t{0}));
  }
}

TEST(PackingPlan, FillsSequencesOfDocumentsAsTheyAre) {
  for (const std::int64_t most : {512, 1024, 2048, 8192}) {
    for (const double sigma : {0.6, 1.0, 1.5}) {
      const Lengths lengths = log_normal(20'000, 300, sigma);  // hundreds to thousands of them are cut
      const PackingPlan plan(lengths, {.length = most});
      (void)epoch_of(plan, lengths, most, 1);
      RecordProperty(fmt::format("fill_{}_{}", most, sigma), fmt::format("{:.5f}", plan.fill()));
      EXPECT_GE(plan.fill(), 0.99) << most << ", " << sigma;
    }
  }
}

// The lengths in bytes of the parts between separators; each part includes its separator.
Lengths lengths_between(std::string_view text, std::string_view separator) {
  Lengths lengths;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t found = text.find(separator, begin);
    const std::size_t end = found == std::string_view::npos ? text.size() : found + separator.size();
    lengths.push_back(static_cast<std::int64_t>(end - begin));
    begin = end;
  }
  return lengths;
}

TEST(PackingPlan, FillsSequencesOfARealText) {
  const std::filesystem::path file = testing::shared_data("tinyshakespeare/input.txt");
  if (file.empty()) {
    GTEST_SKIP() << "needs tinyshakespeare/ in STOKER_DATA";
  }
  const Text text = read_text_files(file);
  for (const std::string_view separator : {"\n", "\n\n"}) {
    const Lengths lengths = lengths_between(text.bytes, separator);
    for (const std::int64_t most : {256, 1024, 4096}) {
      const PackingPlan plan(lengths, {.length = most});
      (void)epoch_of(plan, lengths, most, 0);
      RecordProperty(fmt::format("fill_{}_{}", separator.size() == 1 ? "lines" : "paragraphs", most),
                     fmt::format("{:.5f}", plan.fill()));
      EXPECT_GE(plan.fill(), 0.99) << separator.size() << ", " << most;
      EXPECT_EQ(plan.tokens(), static_cast<std::int64_t>(text.bytes.size()));
    }
  }
}

TEST(PackingPlan, EveryEpochPutsOthersTogether) {
  const Lengths lengths = log_normal(5000, 100, 0.8);
  const PackingPlan plan(lengths, {.length = 512, .seed = 1}), again(lengths, {.length = 512, .seed = 1}),
      straight(lengths, {.length = 512, .seed = 1, .shuffle = false});
  std::vector<Piece> first, same, second;
  int apart = 0;
  for (std::int64_t number = 0; number < plan.sequences(); ++number) {
    plan.sequence(0, number, first);
    again.sequence(0, number, same);
    ASSERT_EQ(first, same);
    plan.sequence(1, number, second);
    apart += first != second ? 1 : 0;
    straight.sequence(0, number, first);
    straight.sequence(1, number, second);
    ASSERT_EQ(first, second);
    ASSERT_TRUE(std::ranges::is_sorted(first, std::ranges::greater{}, &Piece::length));
  }
  EXPECT_GT(apart, plan.sequences() * 9 / 10);
}

// FNV-1a over the pieces of two epochs in the order of batches, with the slices of all ranks joined. The plan is made
// again at the steps in `restarts`.
std::uint64_t hash_of(const Lengths& lengths, int ranks, const std::set<std::int64_t>& restarts) {
  const PackingOptions options{.length = 256, .seed = 7};
  auto plan = std::make_unique<PackingPlan>(lengths, options);
  std::uint64_t value = 0xCBF29CE484222325;
  const SamplerOptions sampler{.samples = plan->sequences(), .batch = 12, .seed = 7};
  const std::int64_t steps = Sampler(sampler).steps_per_epoch();
  std::vector<std::int64_t> numbers;
  std::vector<Piece> pieces;
  for (std::int64_t at = 0; at < 2 * steps; ++at) {
    if (restarts.contains(at)) {
      const std::uint64_t saved = plan->hash();
      plan = std::make_unique<PackingPlan>(lengths, options);
      EXPECT_NO_THROW(check_plan("here", saved, plan->hash()));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      SamplerOptions own = sampler;
      own.rank = rank;
      own.ranks = ranks;
      Sampler(own).positions(at / steps, at % steps, numbers);
      for (const std::int64_t number : numbers) {
        plan->sequence(at / steps, number, pieces);
        for (const Piece& piece : pieces) {
          for (const std::int64_t part : {piece.document, piece.start, piece.length}) {
            value = (value ^ static_cast<std::uint64_t>(part)) * 0x100000001B3;
          }
        }
      }
    }
  }
  return value;
}

TEST(PackingPlan, OneHashForRanksAndResumes) {
  const Lengths lengths = log_normal(3000, 60, 1);
  const std::uint64_t expected = hash_of(lengths, 1, {});
  std::mt19937 random(5);
  std::set<std::int64_t> restarts;
  while (restarts.size() < 20) {
    restarts.insert(random() % 190);
  }
  for (const int ranks : {1, 2, 4}) {
    EXPECT_EQ(hash_of(lengths, ranks, {}), expected);
    EXPECT_EQ(hash_of(lengths, ranks, restarts), expected);
  }
}

TEST(PackingPlan, OffsetsAreWherePiecesBegin) {
  const std::vector<Piece> pieces{{0, 0, 3}, {1, 0, 5}, {9, 8, 1}};
  EXPECT_EQ(piece_offsets(pieces), (Lengths{0, 3, 8, 9}));
  EXPECT_EQ(piece_offsets({}), (Lengths{0}));
}

TEST(PackingPlan, RefusesWhatCannotBe) {
  EXPECT_THROW(PackingPlan(Lengths{1}, {.length = 0}), ConfigError);
  EXPECT_THROW(PackingPlan(Lengths{1, -1}, {.length = 5}), DataError);
  const PackingPlan empty(Lengths{0, 0}, {.length = 5});
  EXPECT_EQ(empty.sequences(), 0);
  EXPECT_EQ(empty.fill(), 1);
  std::vector<Piece> pieces;
  EXPECT_THROW(empty.sequence(0, 0, pieces), ConfigError);
  EXPECT_NE(PackingPlan(Lengths{1, 2}, {.length = 5}).hash(), PackingPlan(Lengths{2, 1}, {.length = 5}).hash());
  EXPECT_NE(PackingPlan(Lengths{1, 2}, {.length = 5}).hash(), PackingPlan(Lengths{1, 2}, {.length = 6}).hash());
}

}  // namespace
}  // namespace stoker::data
