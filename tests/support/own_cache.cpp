// SPDX-License-Identifier: Apache-2.0
// Linked into every test program: it and the programs it starts keep what they keep in a fresh cache folder, never in
// the person's own, and nothing stays of it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>

#include "support/temp_folder.h"

namespace stoker::testing {
namespace {

class OwnCache final : public ::testing::Environment {
 public:
  void SetUp() override {
    folder_.emplace();
    std::filesystem::permissions(folder_->path(), std::filesystem::perms(0755));  // some tests are another user
    ::setenv("STOKER_CACHE", folder_->path().c_str(), 1);
  }
  void TearDown() override { folder_.reset(); }

 private:
  std::optional<TempFolder> folder_;
};

[[maybe_unused]] const ::testing::Environment* const kOwnCache = ::testing::AddGlobalTestEnvironment(new OwnCache);

}  // namespace
}  // namespace stoker::testing
