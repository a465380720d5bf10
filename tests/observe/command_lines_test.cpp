// SPDX-License-Identifier: Apache-2.0
// Other programs that print, fail, hang or are missing.
#include "stoker/observe/profile/command_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

namespace stoker::observe::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kLong = 3600;

std::vector<std::string> of_shell(const std::string& script, double seconds = kLong) {
  return command_lines({"sh", "-c", script}, seconds);
}

TEST(CommandLines, AreWhatAProgramPrints) {
  EXPECT_THAT(of_shell("echo one; echo; echo 'two words'; echo error >&2; printf unfinished"),
              ElementsAre("one", "", "two words"));
  EXPECT_THAT(command_lines({"printf", "%s\\n", "$HOME;'\"", "-e"}, kLong), ElementsAre("$HOME;'\"", "-e"));
  EXPECT_EQ(of_shell("i=0; while [ $i -lt 30000 ]; do echo $i; i=$((i+1)); done").back(), "29999");
  EXPECT_THAT(of_shell("cat; echo end"), ElementsAre("end"));  // its input is empty
  EXPECT_THAT(of_shell("echo before; exit 3"), ElementsAre("before"));
}

TEST(CommandLines, AProgramThatIsMissingPrintsNone) {
  EXPECT_THAT(command_lines({"no-such-program-at-all"}, kLong), IsEmpty());
  EXPECT_THAT(of_shell("echo one", 0), IsEmpty());
}

// A program that hangs is killed; what it said before counts.
TEST(CommandLines, EndWithTheTime) {
  EXPECT_THAT(command_lines({"sleep", "100000"}, 0.1), IsEmpty());
  EXPECT_THAT(of_shell("echo one; exec sleep 100000", 3), ElementsAre("one"));
  EXPECT_THAT(of_shell("echo one; exec >&-; exec sleep 100000"), ElementsAre("one"));  // closes its output, then hangs
}

TEST(CommandLines, FetchNoDebugFilesFromTheNetwork) {
  ::setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
  ::setenv("COMMAND_LINES_TEST", "kept", 1);
  EXPECT_THAT(of_shell("echo ${DEBUGINFOD_URLS-none} $COMMAND_LINES_TEST"), ElementsAre("none kept"));
  ::unsetenv("DEBUGINFOD_URLS");
  ::unsetenv("COMMAND_LINES_TEST");
}

}  // namespace
}  // namespace stoker::observe::profile
