// SPDX-License-Identifier: Apache-2.0
// docs/tips.md: each tip has a rule of the doctor, or the reason why there is none, and a bench that exists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "stoker/observe/doctor/rule.h"
#include "stoker/study/doctor/tips.h"
#include "stoker/study/tips/tip.h"

namespace stoker::study {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::filesystem::path source() {
  const char* folder = std::getenv("STOKER_SOURCE");
  return folder == nullptr ? "." : folder;
}

// The names in "input_wait, epoch_restart"; empty if there is none.
std::vector<std::string> rules_of(const KnownTip& tip) {
  std::vector<std::string> names;
  std::istringstream words(tip.rule.starts_with("none") ? "" : tip.rule);
  for (std::string name; std::getline(words >> std::ws, name, ',');) {
    names.push_back(name);
  }
  return names;
}

TEST(DoctorTips, AreAll54InOrder) {
  ASSERT_EQ(doctor_tips().size(), 54U);
  for (std::size_t i = 0; i < 54; ++i) {
    EXPECT_EQ(doctor_tips()[i].number, std::to_string(i + 1));
    EXPECT_FALSE(doctor_tips()[i].tip.empty());
  }
}

TEST(DoctorTips, HaveARuleOrTheReasonWhyThereIsNone) {
  for (const KnownTip& tip : doctor_tips()) {
    const auto names = rules_of(tip);
    if (names.empty()) {
      EXPECT_THAT(tip.rule, AnyOf(StartsWith("none: "), StartsWith("none yet: "))) << tip.number;
      EXPECT_GT(tip.rule.size(), 20U) << tip.number;
    }
    for (const std::string& name : names) {
      EXPECT_NE(std::ranges::find(observe::doctor::rules(), name, &observe::doctor::Rule::id),
                observe::doctor::rules().end())
          << tip.number << ": " << name;
    }
  }
}

// A row of `stoker bench tips`, or a file in bench/results.
TEST(DoctorTips, NameABenchThatExists) {
  const std::vector<Tip> rows = known_tips();
  for (const KnownTip& tip : doctor_tips()) {
    if (tip.bench.starts_with("none")) {
      continue;
    }
    std::istringstream names(tip.bench);
    for (std::string name; std::getline(names, name, ',');) {
      name = name.substr(name.find_first_not_of(' '));
      name = name.substr(0, name.find(':'));
      const bool file = name.ends_with(".txt");
      EXPECT_TRUE(file ? std::filesystem::exists(source() / "bench/results" / name)
                       : std::ranges::find(rows, name, &Tip::id) != rows.end())
          << tip.number << ": " << name;
    }
  }
}

TEST(DoctorTips, AreExplained) {
  EXPECT_THAT(tips_text(), HasSubstr("41 `total += loss` keeps every graph\n"));
  EXPECT_THAT(tips_text(), HasSubstr("   rule:      kept_history\n"));
}

}  // namespace
}  // namespace stoker::study
