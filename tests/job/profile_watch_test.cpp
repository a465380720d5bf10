// SPDX-License-Identifier: Apache-2.0
// Profiles that fail, and what comes after them: the planned one and those that someone orders are independent.
#include "stoker/job/profile_watch.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "stoker/base/file.h"
#include "support/image_set.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using Prepared = Setup;  // gtest's fixtures have a member named Setup
using State = ProfileOrders::Progress::State;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Findings final : public core::EventEmitter {
 public:
  void emit(core::Event event) override {
    if (const auto* finding = std::get_if<core::Finding>(&event)) {
      texts.push_back(finding->text);
    }
  }
  std::vector<std::string> texts;
};

class ProfileWatchTest : public ::testing::Test {
 protected:
  Prepared set_up_with(const std::string& profile) {
    stoker::testing::write_striped_set(folder_, "data/train/", 40);
    stoker::testing::write_striped_set(folder_, "data/val/", 2, 100);
    Request request = make_request({}, {"epochs=3", "batch=4", "threads=0", "intra_op=1", "precision=fp32", "model=mlp",
                                        "layout=contiguous", "device=cpu", "profile=" + profile});
    request.data = folder_ / "data";
    return set_up(request, nullptr, [](const std::string&) {});
  }
  // Ends steps up to this one.
  void steps_until(ProfileWatch& watch, std::int64_t last) {
    while (done_ < last) {
      at::mm(ones_, ones_);
      (void)watch.step_done(++done_, /*samples=*/4);
    }
  }
  [[nodiscard]] fs::path record_of(int step) const { return folder_ / fmt::format("profile/step-{}.json", step); }

  stoker::testing::TempFolder folder_;
  Findings findings_;
  ProfileOrders orders_;
  at::Tensor ones_ = at::ones({8, 8});
  std::int64_t done_ = 0;
};

TEST_F(ProfileWatchTest, AnOrderThatFailsLeavesThePlannedProfile) {
  const Prepared setup = set_up_with("20+2");
  ProfileWatch watch(setup, folder_ / "profile", findings_, orders_);
  folder_.write("profile", "a file where the folder should be");
  steps_until(watch, 4);
  ASSERT_TRUE(orders_.place(3));
  steps_until(watch, 12);
  EXPECT_EQ(orders_.wait(-1, 0).state, State::kFailed);
  EXPECT_THAT(findings_.texts, ElementsAre(HasSubstr("there is no profile: ")));
  fs::remove(folder_ / "profile");
  steps_until(watch, 25);
  watch.finish();
  EXPECT_TRUE(fs::exists(record_of(20)));
  EXPECT_EQ(findings_.texts.size(), 1U);
}

TEST_F(ProfileWatchTest, AnOrderWaitsForThePlannedProfileAndGetsItsOwn) {
  const Prepared setup = set_up_with("8+3");
  ProfileWatch watch(setup, folder_ / "profile", findings_, orders_);
  steps_until(watch, 8);  // the planned one is being taken
  ASSERT_TRUE(orders_.place(2));
  steps_until(watch, 10);
  EXPECT_EQ(orders_.wait(-1, 0).state, State::kWaiting);
  steps_until(watch, 24);
  watch.finish();
  EXPECT_TRUE(fs::exists(record_of(8)));
  const ProfileOrders::Progress progress = orders_.wait(-1, 0);
  EXPECT_EQ(progress.state, State::kDone);
  EXPECT_NE(progress.text, "profile/step-8.json");
  EXPECT_TRUE(fs::exists(folder_ / progress.text));
}

// Calls while the recorder warmed up are no part of the record: each step here has one product.
TEST_F(ProfileWatchTest, RecordsTheStepsAskedForAndNotItsWarmUp) {
  const Prepared setup = set_up_with("8+3");
  ProfileWatch watch(setup, folder_ / "profile", findings_, orders_);
  steps_until(watch, 12);
  watch.finish();
  const auto record = nlohmann::json::parse(read_text(record_of(8)));
  std::int64_t products = 0;
  for (const nlohmann::json& row : record.at("operators")) {
    products += row.at("name") == "aten::mm" ? row.at("calls").get<std::int64_t>() : 0;
  }
  EXPECT_EQ(products, 3);
}

TEST_F(ProfileWatchTest, APlannedProfileThatFailsLeavesTheOrder) {
  const Prepared setup = set_up_with("8+3");
  ProfileWatch watch(setup, folder_ / "profile", findings_, orders_);
  folder_.write("profile", "a file where the folder should be");
  steps_until(watch, 9);
  ASSERT_TRUE(orders_.place(2));
  steps_until(watch, 10);
  EXPECT_EQ(findings_.texts.size(), 1U);
  fs::remove(folder_ / "profile");
  EXPECT_EQ(orders_.wait(-1, 0).state, State::kWaiting);
  steps_until(watch, 24);
  EXPECT_EQ(orders_.wait(-1, 0).state, State::kDone);
  watch.finish();
}

}  // namespace
}  // namespace stoker::job
