// SPDX-License-Identifier: Apache-2.0
// The decoder of baseline JPEGs gives the same pixels with every set of instructions. What is chosen once is chosen for
// the whole process, so each set is tested in a process of its own: this test program, started again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "support/instruction_sets.h"
#include "support/jpeg_kinds.h"
#include "support/jpeg_paths.h"

namespace stoker::data {
namespace {

using testing::JpegContent;
using testing::JpegKind;

constexpr const char* kTargets = "STOKER_TEST_TARGETS";  // a set of instruction_sets()

// Run by the test below, in a process that has not decoded yet.
TEST(JpegPathTargets, DISABLED_OfOneSet) {
  const char* text = std::getenv(kTargets);
  ASSERT_NE(text, nullptr);
  const std::int64_t targets = std::strtoll(text, nullptr, 10);
  testing::use_instructions(targets);
  testing::JpegPaths paths;
  std::uint64_t seed = 0;
  int learned = 0;
  std::vector<JpegKind> kinds = testing::common_samplings();
  for (const JpegKind& kind : {kinds[1], kinds[2]}) {
    for (const JpegKind& coding : testing::codings_of(kind)) {
      kinds.push_back(coding);
    }
  }
  for (const JpegKind& kind : kinds) {
    for (int i = 0; i < 120; ++i) {
      const int width = 1 + i % 60, height = 1 + (i * 7) % 53;
      const auto content = static_cast<JpegContent>(i % testing::kJpegContents);
      const std::vector<std::byte> file = testing::written_jpeg(kind, width, height, 1 + i * 37 % 100, content, ++seed);
      JpegRows rows;
      const int channels = i % 4 == 3 ? 1 : 3;
      ASSERT_EQ(paths.difference(file, {.channels = channels, .region = i % 2 == 0 ? 0 : seed}, &rows), "")
          << kind.name;
      ASSERT_EQ(paths.difference(file, {.channels = channels, .region = seed + 1}, &rows), "") << kind.name;
      learned += rows.empty() ? 0 : 1;
    }
  }
  // So it was BaselineJpeg, or could not be.
  EXPECT_EQ(learned > 400, (targets & HWY_AVX2) != 0) << learned;
}

TEST(JpegPathTargets, EverySetOfInstructionsGivesTheSamePixels) {
  const std::vector<std::int64_t> sets = testing::instruction_sets();
  for (const std::int64_t targets : sets) {
    const std::string command = std::string(kTargets) + "=" + std::to_string(targets) + " '" +
                                std::filesystem::read_symlink("/proc/self/exe").native() +
                                "' --gtest_also_run_disabled_tests --gtest_filter=JpegPathTargets.DISABLED_OfOneSet "
                                "--gtest_brief=1 --gtest_output= 1>&2";
    EXPECT_EQ(std::system(command.c_str()), 0) << "targets " << targets;
  }
  EXPECT_GE(sets.size(), 1U);
}

}  // namespace
}  // namespace stoker::data
