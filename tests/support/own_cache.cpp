// SPDX-License-Identifier: Apache-2.0
// Linked into every test program. The test program and the programs that it starts use a fresh cache folder instead of
// the user's. The folder is removed at the end.
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
    std::filesystem::permissions(folder_->path(), std::filesystem::perms(0755));  // some tests run as another user
    ::setenv("STOKER_CACHE", folder_->path().c_str(), 1);
  }
  void TearDown() override { folder_.reset(); }

 private:
  std::optional<TempFolder> folder_;
};

[[maybe_unused]] const ::testing::Environment* const kOwnCache = ::testing::AddGlobalTestEnvironment(new OwnCache);

}  // namespace
}  // namespace stoker::testing
