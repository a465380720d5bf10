// SPDX-License-Identifier: Apache-2.0
// The socket of a run against clients of every kind: those that ask well, ask nonsense, say nothing or go away; and
// sockets that another process left or listens at.
#include "stoker/job/run_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "stoker/job/socket_lines.h"
#include "support/job_runs.h"
#include "support/temp_folder.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
using stoker::testing::complaint;
using stoker::testing::TempFolder;
using ::testing::HasSubstr;

const Say kSilent = [](const std::string&) {};

// Serves orders as a training would, until it ends.
class Training {
 public:
  explicit Training(ProfileOrders& orders)
      : thread_([this, &orders](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            if (const auto steps = orders.take()) {
              taken = *steps;
              orders.recorded(1, *steps);
              orders.done("profile/step-7.json");
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  std::atomic<std::int64_t> taken = 0;

 private:
  std::jthread thread_;
};

std::string answer(const fs::path& run, const std::string& line) {
  SocketLines client(connect_in(run, kRunSocket));
  client.put(line);
  return client.get(/*seconds=*/30).value_or("(closed)");
}

TEST(RunSocket, AnOrderIsTakenAndAnswered) {
  const TempFolder folder;
  ProfileOrders orders;
  const RunSocket socket(folder.path(), orders);
  ASSERT_TRUE(socket.listens());
  const Training training(orders);
  std::vector<std::string> said;
  const auto record = ask_run(folder.path(), 20, [&](const std::string& text) { said.push_back(text); });
  EXPECT_EQ(record, folder / "profile/step-7.json");
  EXPECT_EQ(training.taken, 20);
  EXPECT_EQ(ask_run(folder.path(), 3, kSilent), folder / "profile/step-7.json");  // and again
  EXPECT_EQ(training.taken, 3);
}

TEST(RunSocket, NonsenseIsRefusedAndTheNextClientServed) {
  const TempFolder folder;
  ProfileOrders orders;
  const RunSocket socket(folder.path(), orders);
  const Training training(orders);
  for (const std::string& line : std::vector<std::string>{
           "", "hello", "{}", "{\"profile\": 0}", "{\"profile\": -5}", "{\"profile\": 1001}", "{\"profile\": \"x\"}",
           "[[[[", "{\"profile\": 1e99}", "{\"profile\": }", "{\"profile\": 99999999999999999999}",
           "{\"profile\": 5} x", "{\"profile\": 5", std::string(2000, '\xff')}) {
    EXPECT_THAT(answer(folder.path(), line), HasSubstr("from 1 to 1000")) << line;
  }
  EXPECT_THAT(answer(folder.path(), std::string(10000, 'x')), HasSubstr("from 1 to 1000"));
  ::close(connect_in(folder.path(), kRunSocket));  // goes away at once
  EXPECT_TRUE(ask_run(folder.path(), 5, kSilent).has_value());
}

// Its order stays: the next client is told so, and the run takes the profile.
TEST(RunSocket, AClientThatGoesAwayDoesNotDisturb) {
  const TempFolder folder;
  ProfileOrders orders;
  const RunSocket socket(folder.path(), orders);
  {
    SocketLines client(connect_in(folder.path(), kRunSocket));
    client.put("{\"profile\": 20}");
    EXPECT_THAT(client.get(30).value_or(""), HasSubstr("waiting"));
  }
  EXPECT_THAT(complaint([&] { (void)ask_run(folder.path(), 5, kSilent); }), HasSubstr("being taken already"));
  EXPECT_EQ(orders.take(), 20);
  orders.done("profile/step-7.json");
  const Training training(orders);
  EXPECT_TRUE(ask_run(folder.path(), 5, kSilent).has_value());
}

TEST(RunSocket, TheEndOfTheRunIsTold) {
  const TempFolder folder;
  ProfileOrders orders;
  std::optional<RunSocket> socket(std::in_place, folder.path(), orders);
  std::jthread ends([&] {
    while (!orders.take()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    socket.reset();
  });
  EXPECT_THAT(complaint([&] { (void)ask_run(folder.path(), 5, kSilent); }), HasSubstr("has ended"));
  ends.join();
  EXPECT_FALSE(fs::exists(folder / kRunSocket));
  EXPECT_EQ(ask_run(folder.path(), 5, kSilent), std::nullopt);
}

TEST(RunSocket, OnlyThisUserMayOpenIt) {
  const TempFolder folder;
  ProfileOrders orders;
  const RunSocket socket(folder.path(), orders);
  EXPECT_EQ(fs::status(folder / kRunSocket).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(RunSocket, AStaleSocketIsReplacedAndALiveOneIsNot) {
  const TempFolder folder;
  ::close(listen_in(folder.path(), kRunSocket));  // as a killed process leaves it
  ASSERT_TRUE(fs::is_socket(folder / kRunSocket));
  EXPECT_EQ(ask_run(folder.path(), 5, kSilent), std::nullopt);
  ProfileOrders orders, others;
  std::optional<RunSocket> socket(std::in_place, folder.path(), orders);
  EXPECT_TRUE(socket->listens());
  EXPECT_FALSE(RunSocket(folder.path(), others).listens());  // another process of the same run
  const Training training(orders);
  EXPECT_TRUE(ask_run(folder.path(), 5, kSilent).has_value());
}

TEST(RunSocket, WhatIsNoSocketStays) {
  const TempFolder folder;
  folder.write(kRunSocket, "a file of the user");
  ProfileOrders orders;
  { EXPECT_FALSE(RunSocket(folder.path(), orders).listens()); }
  EXPECT_TRUE(fs::is_regular_file(folder / kRunSocket));
  EXPECT_EQ(ask_run(folder.path(), 5, kSilent), std::nullopt);
  EXPECT_FALSE(RunSocket(folder / "missing", orders).listens());
}

// A socket's path may have 107 bytes; the folder's may be longer.
TEST(RunSocket, InAFolderWithALongName) {
  const TempFolder folder;
  const fs::path deep = folder / (std::string(200, 'a') + "/" + std::string(200, 'b'));
  fs::create_directories(deep);
  ProfileOrders orders;
  const RunSocket socket(deep, orders);
  ASSERT_TRUE(socket.listens());
  const Training training(orders);
  EXPECT_TRUE(ask_run(deep, 5, kSilent).has_value());
}

// The end of a training waits neither for a client that says nothing nor for one that does not read.
TEST(RunSocket, ClientsDoNotHoldTheTraining) {
  const TempFolder folder;
  ProfileOrders orders;
  std::optional<RunSocket> socket(std::in_place, folder.path(), orders, /*patience=*/3600);
  SocketLines silent(connect_in(folder.path(), kRunSocket));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until the thread waits for its request
  socket.reset();
  socket.emplace(folder.path(), orders);
  SocketLines deaf(connect_in(folder.path(), kRunSocket));
  deaf.put("{\"profile\": 1000}");
  while (!orders.take()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int i = 0; i < 3000; ++i) {  // more lines than a socket holds
    orders.recorded(i, 3000);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  socket.reset();
  EXPECT_FALSE(fs::exists(folder / kRunSocket));
}

// The other end of ask_run() may be of another version, or damaged.
TEST(AskRun, AnswersOfTheWrongTypeAreErrors) {
  for (const std::string& line :
       std::vector<std::string>{"[]", "hello", "7", "{\"state\": 5}", "{\"state\": \"done\"}",
                                "{\"state\": \"done\", \"record\": 7}", "{\"state\": \"failed\", \"text\": {}}"}) {
    const TempFolder folder;
    const int listener = listen_in(folder.path(), kRunSocket);
    const std::jthread server([&] {
      SocketLines lines(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      EXPECT_EQ(lines.get(30), "{\"profile\": 5}");
      lines.put("{\"state\": \"recording\", \"done\": \"x\", \"steps\": []}");
      lines.put(line);
    });
    EXPECT_THAT(complaint([&] { (void)ask_run(folder.path(), 5, kSilent); }), HasSubstr("takes no profile")) << line;
    ::close(listener);
  }
}

}  // namespace
}  // namespace stoker::job
