// SPDX-License-Identifier: Apache-2.0
// Labels and parts of a split equal those of plain lists, for every internal representation.
#include "stoker/data/order/label_list.h"

#include <gtest/gtest.h>

#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"
#include "stoker/data/folder/image_folder.h"

namespace stoker::data {
namespace {

using Numbers = std::vector<std::int64_t>;

// Sorted, as in class folders, or at random, as in a table.
Numbers some_labels(std::int64_t count, std::int64_t classes, bool drawn) {
  Numbers labels;
  for (std::int64_t i = 0; i < count; ++i) {
    CounterRng random(1, 0, static_cast<std::uint64_t>(i), RandomOp::kSplit);
    labels.push_back(drawn ? std::int64_t{random.next()} % classes : i * classes / count);
  }
  return labels;
}

void expect_list(const LabelList& list, const Numbers& expected) {
  ASSERT_EQ(list.size(), std::ssize(expected));
  EXPECT_EQ(Numbers(list.begin(), list.end()), expected);
  Numbers again;
  list.each_run([&](std::int64_t first, std::int64_t count, std::int64_t label) {
    EXPECT_EQ(first, std::ssize(again));
    EXPECT_TRUE(again.empty() || again.back() != label);
    again.insert(again.end(), static_cast<std::size_t>(count), label);
  });
  EXPECT_EQ(again, expected);
}

TEST(LabelList, HoldsRunsAndDrawnLabelsOfEveryWidth) {
  for (const std::int64_t classes : {2, 256, 257, 65536, 65537}) {
    for (const bool drawn : {false, true}) {
      SCOPED_TRACE(testing::Message() << classes << (drawn ? " drawn" : " in order"));
      const Numbers labels = some_labels(3000, classes, drawn);
      const LabelList list = LabelList::of(labels);
      expect_list(list, labels);
      Numbers counts(static_cast<std::size_t>(classes)), ids;
      for (const std::int64_t label : labels) {
        ++counts[static_cast<std::size_t>(label)];
      }
      EXPECT_EQ(list.counts(counts.size()), counts);
      for (std::int64_t i = 0; i < classes; ++i) {
        ids.push_back(i / 2);  // two runs become one
      }
      Numbers renamed = labels;
      for (std::int64_t& label : renamed) {
        label /= 2;
      }
      expect_list(list.renamed(ids), renamed);
    }
  }
  expect_list(LabelList(), {});
  expect_list(LabelList::of({}), {});
  expect_list(LabelList(std::vector<LabelRun>{{2, 7}, {0, 1}, {3, 7}, {1, 0}}), {7, 7, 7, 7, 7, 0});
  EXPECT_THROW((void)LabelList::of(Numbers{-1}), ConfigError);
  EXPECT_THROW((void)LabelList::of(Numbers{std::int64_t{1} << 32}), ConfigError);
}

class Nothing final : public ByteSource {
 public:
  [[nodiscard]] std::int64_t size() const override { return 1000; }
  void read(std::int64_t, std::vector<std::byte>& bytes) const override { bytes.clear(); }
  [[nodiscard]] std::string_view key(std::int64_t) const override { return ""; }
  [[nodiscard]] std::string name(std::int64_t) const override { return ""; }
};

// Takes every third position, then all but every third of these, then every third of these.
TEST(LabelList, PartsOfASplitAreThoseOfPlainLists) {
  const Numbers labels = some_labels(1000, 10, true);
  ImageSplit split{"train", std::make_shared<Nothing>(), SampleList::first(1000), LabelList::of(labels)};
  Numbers samples;
  for (std::int64_t i = 0; i < 1000; ++i) {
    samples.push_back(i);
  }
  for (const bool inside : {true, false, true}) {
    const auto positions = std::make_shared<BitSet>(split.size());
    Numbers expected, classes;
    for (std::int64_t i = 0; i < split.size(); ++i) {
      if (i % 3 == 0) {
        positions->insert(i);
      }
      if ((i % 3 == 0) == inside) {
        expected.push_back(samples[static_cast<std::size_t>(i)]);
        classes.push_back(labels[static_cast<std::size_t>(expected.back())]);
      }
    }
    positions->seal();
    split = part_of(split, positions, inside);
    samples = expected;
    EXPECT_EQ(split.name, "train");
    EXPECT_EQ(Numbers(split.samples.begin(), split.samples.end()), expected);
    expect_list(split.labels, classes);
  }
}

}  // namespace
}  // namespace stoker::data
