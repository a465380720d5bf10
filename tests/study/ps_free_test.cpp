// SPDX-License-Identifier: Apache-2.0
// The end of a chosen holder of a GPU, with real child processes whose "device" is a file in a temp folder.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/study/ps/free.h"
#include "support/temp_folder.h"

namespace stoker::study {
namespace {

namespace fs = std::filesystem;
using stoker::testing::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;

// A child with a file open, that ends at SIGTERM or does not.
class Child {
 public:
  Child(const fs::path& device, bool stubborn) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int file = ::open(device.c_str(), O_RDWR);
      ::signal(SIGTERM, stubborn ? SIG_IGN : SIG_DFL);
      static int kept = 0;
      kept = file;
      ::signal(SIGUSR1, [](int) { ::close(kept); });
      if (::write(ready[1], "x", 1) == 1) {
        while (true) {
          ::pause();
        }
      }
      ::_exit(1);
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] bool lives() const { return ::kill(pid_, 0) == 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  // The signal that ended it; 0: it lives, or ended otherwise.
  int ended_by() {
    int status = 0;
    const bool ended = ::waitpid(pid_, &status, 0) == pid_;
    pid_ = ended ? -1 : pid_;
    return ended && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_ = -1;
};

class Free : public ::testing::Test {
 protected:
  Free() {
    folder.write("nvidia0", "");
    folder.write("other", "");
    options.devices = {(folder / "nvidia").native()};
    options.patience_seconds = 5;
  }
  std::string error(
      int pid, const std::function<bool(const std::string&)>& agree = [](const auto&) { return true; }) {
    try {
      free_gpu(pid, agree, options);
    } catch (const ConfigError& failure) {
      return failure.what();
    }
    return "";
  }
  TempFolder folder;
  FreeOptions options;
};

TEST_F(Free, EndsTheChosenOneAfterAYes) {
  Child child(folder / "nvidia0", false);
  std::string question;
  EXPECT_TRUE(free_gpu(
      child.pid(),
      [&](const std::string& text) {
        question = text;
        return true;
      },
      options));
  EXPECT_EQ(child.ended_by(), SIGTERM);
  EXPECT_THAT(question, HasSubstr("pid "));
  EXPECT_THAT(question, HasSubstr("nvidia0"));
}

TEST_F(Free, NamesOfFilesReachATerminalWithoutTheirControlCharacters) {
  folder.write("nvidia\x1b[31m", "");
  const Child child(folder / "nvidia\x1b[31m", false);
  std::string question;
  EXPECT_FALSE(free_gpu(
      child.pid(),
      [&](const std::string& text) {
        question = text;
        return false;
      },
      options));
  EXPECT_THAT(question, HasSubstr("nvidia\\x1b[31m"));
  EXPECT_THAT(question, Not(HasSubstr("\x1b")));
}

TEST_F(Free, AStubbornOneIsKilled) {
  options.patience_seconds = 0.2;
  Child child(folder / "nvidia0", true);
  EXPECT_TRUE(free_gpu(
      child.pid(), [](const std::string&) { return true; }, options));
  EXPECT_EQ(child.ended_by(), SIGKILL);
}

TEST_F(Free, WithoutAYesNothingHappens) {
  const Child child(folder / "nvidia0", false);
  EXPECT_FALSE(free_gpu(
      child.pid(), [](const std::string&) { return false; }, options));
  EXPECT_TRUE(child.lives());
}

TEST_F(Free, AProcessWithoutADeviceIsLeftAlone) {
  const Child child(folder / "other", false);
  EXPECT_THAT(error(child.pid()), HasSubstr("has no GPU device open"));
  EXPECT_TRUE(child.lives());
  EXPECT_THAT(error(::getpid()), HasSubstr("this command"));
  EXPECT_THAT(error(1 << 22), HasSubstr("there is no process"));
}

TEST_F(Free, AProcessThatChangedSinceTheQuestionIsLeftAlone) {
  const Child child(folder / "nvidia0", false);
  const auto lets_go = [&](const std::string&) {  // of its device
    ::kill(child.pid(), SIGUSR1);
    for (int i = 0; i < 500 && !observe::read_process(child.pid(), options.devices)->open_files.empty(); ++i) {
      ::usleep(10'000);
    }
    return true;
  };
  EXPECT_THAT(error(child.pid(), lets_go), HasSubstr("has no GPU device open"));
  EXPECT_TRUE(child.lives());
}

TEST_F(Free, AnotherProcessWithTheSameNumberIsToldApart) {
  const Child child(folder / "nvidia0", false);
  const observe::ListedProcess before = observe::read_process(child.pid(), options.devices).value();
  EXPECT_TRUE(is_same_holder(before, before));
  observe::ListedProcess now = before;
  *now.times.start_seconds += 0.01;
  EXPECT_FALSE(is_same_holder(before, now));
  now = before;
  ++now.uid;
  EXPECT_FALSE(is_same_holder(before, now));
  now = before;
  now.open_files = {(folder / "nvidia1").native()};
  EXPECT_FALSE(is_same_holder(before, now));
}

TEST_F(Free, AProcessOfSomebodyElseIsLeftAlone) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root: a process of another user";
  }
  const Child child(folder / "nvidia0", false);
  ASSERT_EQ(::seteuid(65534), 0);
  const std::string said = error(child.pid());
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(said, HasSubstr("only they or root can end it"));
  EXPECT_TRUE(child.lives());
}

}  // namespace
}  // namespace stoker::study
