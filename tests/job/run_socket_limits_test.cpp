// SPDX-License-Identifier: Apache-2.0
// The socket of a run without threads, descriptors or memory: the run goes on, and later clients are served.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "stoker/job/run_socket.h"
#include "stoker/job/socket_lines.h"
#include "support/failing_new.h"
#include "support/no_threads.h"
#include "support/temp_folder.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using stoker::testing::TempFolder;
using ::testing::HasSubstr;

std::string answer(const fs::path& run, const std::string& line) {
  SocketLines client(connect_in(run, kRunSocket));
  client.put(line);
  return client.get(/*seconds=*/30).value_or("(closed)");
}

// While it exists, this process can open this many more descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(int free) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 512;
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int opened = 0; (opened = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
      taken_.push_back(opened);
    }
    for (int i = 0; i < free; ++i) {
      give_one();
    }
  }
  ~FewDescriptors() {
    while (!taken_.empty()) {
      give_one();
    }
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

  void give_one() {
    ::close(taken_.back());
    taken_.pop_back();
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// A run is not worse without a socket.
TEST(RunSocketLimits, WithoutAThreadThereIsNone) {
  const TempFolder folder;
  ProfileOrders orders;
  {
    const testing::NoThreads none;
    const RunSocket socket(folder.path(), orders);
    EXPECT_FALSE(socket.listens());
    EXPECT_FALSE(fs::exists(folder / kRunSocket));
  }
  EXPECT_TRUE(RunSocket(folder.path(), orders).listens());
}

TEST(RunSocketLimits, WithoutDescriptorsThereIsNone) {
  const TempFolder folder;
  ProfileOrders orders;
  bool listens = false;
  for (int free = 0; free < 6; ++free) {
    const FewDescriptors few(free);
    const RunSocket socket(folder.path(), orders);
    EXPECT_EQ(socket.listens(), fs::exists(folder / kRunSocket)) << free;
    EXPECT_TRUE(free > 0 || !socket.listens());
    listens = socket.listens();
  }
  EXPECT_TRUE(listens);  // in the end
}

// The client waits, and the thread does not spin meanwhile.
TEST(RunSocketLimits, AClientThatCannotBeAcceptedWaits) {
  const TempFolder folder;
  ProfileOrders orders;
  const RunSocket socket(folder.path(), orders);
  const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  SocketLines lines(client);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder / kRunSocket).native().copy(address.sun_path, sizeof(address.sun_path) - 1);
  {
    FewDescriptors none(0);
    ASSERT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    const double before = cpu_seconds();
    EXPECT_EQ(lines.get(/*seconds=*/1), std::nullopt);
    EXPECT_LT(cpu_seconds() - before, 0.05);
  }
  lines.put("hello");
  EXPECT_THAT(lines.get(30).value_or(""), HasSubstr("from 1 to 1000"));
}

TEST(RunSocketLimits, WithoutMemoryAClientIsSentAwayAndTheNextOneServed) {
  const TempFolder folder;
  ProfileOrders orders;
  const RunSocket socket(folder.path(), orders);
  for (const std::string line : {"{\"profile\": 7}", "nonsense"}) {
    const int failed = testing::at_every_new(testing::Whose::kOthers, [&] {
      (void)answer(folder.path(), line);
      orders.failed("enough of it");
    });
    EXPECT_GT(failed, 0) << line;
  }
  EXPECT_THAT(answer(folder.path(), "{\"profile\": 5}"), HasSubstr("waiting"));
}

}  // namespace
}  // namespace stoker::job
