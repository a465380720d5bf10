// SPDX-License-Identifier: Apache-2.0
// Which process NVML's pids mean here, in made-up roots of /proc: on a host, in a container, with and without the right
// to list open files.
#include "stoker/device/gpu_process.h"

#include <gtest/gtest.h>

#include "stoker/device/gpu_holders.h"
#include "support/temp_folder.h"

namespace stoker::device {
namespace {

namespace fs = std::filesystem;
using stoker::testing::TempFolder;

class GpuProcess : public ::testing::Test {
 protected:
  void make(int pid, char state, const std::string& file) const {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    root.write(folder + "stat", std::to_string(pid) + " (a) Z (b) " + state + " 1 2 3\n");
    root.write(folder + "comm", "train me\n");
    if (!file.empty()) {
      fs::create_directories(root / (folder + "fd"));
      fs::create_symlink(file, root / (folder + "fd/3"));
    }
  }
  [[nodiscard]] std::optional<int> found(unsigned pid) const { return local_pid(pid, gpu_files(), root.path()); }
  TempFolder root;
};

TEST_F(GpuProcess, InAContainerANumberAloneSaysNothing) {
  make(7, 'S', "/dev/nvidia0");
  make(8, 'S', "/dev/null");
  make(9, 'S', "");  // its files cannot be listed
  make(10, 'Z', "");
  EXPECT_EQ(found(7), 7);
  EXPECT_EQ(found(8), std::nullopt);
  EXPECT_EQ(found(9), std::nullopt);
  EXPECT_EQ(found(10), 10);
  EXPECT_EQ(found(11), std::nullopt);
  EXPECT_EQ(found(4'000'000'000U), std::nullopt);
  EXPECT_EQ(describe({7, 1 << 30}, root.path()), "pid 7 (train me) holds 1.0 GiB");
  EXPECT_EQ(describe({8, 1 << 30}, root.path()), "pid 8 of the host (not visible from here) holds 1.0 GiB");
}

TEST_F(GpuProcess, ARunInAContainerDoesNotTakeItselfForAnother) {
  using Words = std::vector<std::string>;
  const auto others = [&](const std::vector<GpuHolder>& holders, bool we_hold) {
    return describe_others(holders, 7, we_hold, root.path());
  };
  make(7, 'S', "/dev/nvidia0");
  make(8, 'S', "/dev/nvidia0");
  const GpuHolder own{7, 1 << 30}, known{8, 1 << 30}, hidden{9001, 1 << 30}, other{9002, std::int64_t{2} << 30};
  EXPECT_EQ(others({own, known}, true), (Words{"pid 8 (train me) holds 1.0 GiB"}));
  EXPECT_EQ(others({own, hidden}, true), (Words{"pid 9001 of the host (not visible from here) holds 1.0 GiB"}));
  EXPECT_EQ(others({hidden, known}, true), (Words{"pid 8 (train me) holds 1.0 GiB"})) << "9001 is this process";
  EXPECT_EQ(others({hidden, other}, true), (Words{"2 processes of the host, this one among them, hold 3.0 GiB"}));
  EXPECT_EQ(others({hidden}, false), (Words{"pid 9001 of the host (not visible from here) holds 1.0 GiB"}));
  EXPECT_EQ(others({}, true), Words{});
}

TEST_F(GpuProcess, OnTheHostANumberIsAProcess) {
  fs::create_directories(root / "proc/self/ns");
  fs::create_symlink("pid:[4026531836]", root / "proc/self/ns/pid");
  make(9, 'S', "");
  EXPECT_EQ(found(9), 9);
  EXPECT_EQ(found(11), std::nullopt);
  EXPECT_EQ(describe({9, -1}, root.path()), "pid 9 (train me) holds an unknown amount of memory");
}

}  // namespace
}  // namespace stoker::device
