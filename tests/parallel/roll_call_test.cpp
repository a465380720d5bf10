// SPDX-License-Identifier: Apache-2.0
// Who is missing among ranks that lost each other, what became of processes, and the record of collectives.
#include "stoker/parallel/roll_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

#include "stoker/base/fmt.h"
#include "stoker/parallel/thread_stack.h"

namespace stoker::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<Member> kMembers{{"node1", 11, "a"}, {"node1", 12, "a"}, {"node2", 13, "b"}};

std::string nothing(const Member&) { return ""; }

Standing at(std::int64_t newest, bool waits) {
  return {.newest = newest, .waits = waits, .seconds = 7, .operation = fmt::format("sum of {} bytes", 10 * newest)};
}

TEST(RollCall, NamesTheRanksThatDoNotAnswer) {
  const auto look = [](const Member& member) { return member.process == 12 ? "has ended" : ""; };
  const std::string said = who_is_missing(kMembers, {at(5, true), std::nullopt, std::nullopt}, look);
  EXPECT_THAT(said, StartsWith("rank 1 (node1, process 12) has ended; rank 2 (node2, process 13) does not answer"));
}

TEST(RollCall, NamesTheRankThatAllWaitFor) {
  const std::string said = who_is_missing(kMembers, {at(5, true), at(4, false), at(5, true)}, nothing);
  EXPECT_THAT(said, StartsWith("rank 1 (node1, process 12) has not joined collective 5 (sum of 50 bytes) for 7 s"));
  EXPECT_THAT(said, Not(HasSubstr("rank 0")));
}

TEST(RollCall, TellsRanksThatWaitInDifferentCollectives) {
  Standing other = at(5, true);
  other.operation = "maximum of 4 bytes";
  EXPECT_THAT(who_is_missing(kMembers, {at(5, true), at(5, true), other}, nothing),
              AllOf(HasSubstr("rank 0 (node1, process 11) waits in a sum of 50 bytes"),
                    HasSubstr("rank 2 (node2, process 13) in a maximum of 4 bytes")));
  EXPECT_THAT(who_is_missing(kMembers, {at(5, true), at(5, true), at(5, true)}, nothing),
              HasSubstr("a connection between them is gone"));
}

TEST(RollCall, NamesFewOfMany) {
  const std::vector<Member> many(20, Member{"node", 1, "a"});
  const std::string said = who_is_missing(many, std::vector<std::optional<Standing>>(20), nothing);
  EXPECT_THAT(said, AllOf(HasSubstr("rank 3 "), Not(HasSubstr("rank 4 ")), HasSubstr("and 16 more")));
}

TEST(RollCall, AnswersAreRead) {
  const Standing given = at(123, true);
  const Standing read = standing_from(to_text(given));
  EXPECT_EQ(read.newest, given.newest);
  EXPECT_EQ(read.waits, given.waits);
  EXPECT_EQ(read.seconds, given.seconds);
  EXPECT_EQ(read.operation, given.operation);
  EXPECT_EQ(standing_from(to_text(Standing{})).newest, -1);
}

TEST(Member, IsReadFromItsText) {
  const Member self = this_process();
  const Member read = member_from(to_text(self, 256));
  EXPECT_EQ(read.process, ::getpid());
  EXPECT_EQ(read.host, self.host);
  EXPECT_EQ(read.home, self.home);
  EXPECT_FALSE(self.home.empty());
}

std::string fate_of(pid_t child) {
  const Member self = this_process();
  Member other = self;
  other.process = child;
  return fate(other, self);
}

// What `done` says of the child, as soon as the kernel shows it.
std::string fate_when(pid_t child, const std::string& done) {
  for (int i = 0; i < 1000 && fate_of(child).find(done) == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fate_of(child);
}

TEST(Member, FateIsWhatTheSystemKnows) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) {
      ::pause();
    }
  }
  EXPECT_EQ(fate_of(child), "");
  ::kill(child, SIGSTOP);
  EXPECT_EQ(fate_when(child, "stopped"), "is stopped by a signal");
  ::kill(child, SIGKILL);
  EXPECT_THAT(fate_when(child, "ended"), StartsWith("has ended by signal 9"));
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(fate_of(child), "has ended");
  Member elsewhere = this_process();
  elsewhere.home += "x";
  elsewhere.process = child;
  EXPECT_EQ(fate(elsewhere, this_process()), "");
}

TEST(FlightRecord, KeepsTheLastHundred) {
  double now = 10;
  FlightRecord record([&] { return now; });
  EXPECT_EQ(record.standing().newest, -1);
  for (int i = 0; i < 150; ++i) {
    EXPECT_EQ(record.begin("sum", i), i);
    now += 0.5;
    EXPECT_TRUE(record.standing().waits);
    record.end(i, i == 149);
  }
  now += 3;
  EXPECT_EQ(record.next(), 150);
  EXPECT_FALSE(record.standing().waits);
  EXPECT_EQ(record.standing().seconds, 3);
  EXPECT_EQ(record.standing().operation, "sum of 149 bytes");
  const std::string text = record.text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 101);
  EXPECT_THAT(text, AllOf(HasSubstr("sum of 50 bytes"), Not(HasSubstr("sum of 49 bytes"))));
  EXPECT_THAT(text, HasSubstr("149       3.500000      0.500000  failed  sum of 149 bytes"));
}

[[gnu::noinline]] void wait_here(std::atomic<bool>& there, const std::atomic<bool>& go) {
  there = true;
  while (!go) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(ThreadStack, NamesWhereAThreadIs) {
  std::atomic<bool> there{false}, go{false};
  std::thread thread([&] { wait_here(there, go); });
  while (!there) {
    std::this_thread::yield();
  }
  const std::string stack = stack_of(thread.native_handle());
  go = true;
  thread.join();
  EXPECT_THAT(stack, HasSubstr("libc"));
  EXPECT_GT(std::ranges::count(stack, '\n'), 2) << stack;
}

}  // namespace
}  // namespace stoker::parallel
