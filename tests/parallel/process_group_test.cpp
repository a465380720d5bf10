// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process, each with a process group of its own, over Gloo on the loopback interface.
#include "stoker/parallel/process_group.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "stoker/base/error.h"
#include "support/gloo_ranks.h"
#include "support/temp_folder.h"

namespace stoker::parallel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_over_gloo;
using testing::TempFolder;

const std::vector<std::string> kFine3{"", "", ""};

TEST(ProcessGroup, ItsCollectivesDoWhatTheirNamesSay) {
  const auto errors = run_over_gloo(3, [](core::Communicator& ranks) {
    const int rank = ranks.rank();
    at::Tensor sum = at::full({2, 3}, rank + 1.0, at::kDouble);
    ranks.all_reduce_sum(sum);
    EXPECT_TRUE(at::equal(sum, at::full({2, 3}, 6.0, at::kDouble)));
    at::Tensor most = at::full({1}, rank * 10, at::kLong);
    ranks.all_reduce_max(most);
    EXPECT_EQ(most.item<std::int64_t>(), 20);
    at::Tensor text = at::full({4}, rank, at::kByte);
    ranks.broadcast(text, 2);
    EXPECT_TRUE(at::equal(text, at::full({4}, 2, at::kByte)));
    const std::vector<at::Tensor> all = ranks.all_gather(at::full({2}, rank, at::kInt));
    ASSERT_EQ(all.size(), 3);
    for (int other = 0; other < 3; ++other) {
      EXPECT_TRUE(at::equal(all[static_cast<std::size_t>(other)], at::full({2}, other, at::kInt)));
    }
    at::Tensor nothing = at::zeros({0});
    ranks.all_reduce_sum(nothing);
    ranks.barrier();
  });
  EXPECT_EQ(errors, kFine3);
}

// Values of any layout, at their places.
TEST(ProcessGroup, SumsTensorsThatAreNotContiguous) {
  const auto errors = run_over_gloo(3, [](core::Communicator& ranks) {
    at::Tensor turned = at::arange(6, at::kFloat).reshape({2, 3}).t();
    if (ranks.rank() == 1) {
      turned = turned.contiguous();  // another layout of the same values
    }
    ranks.all_reduce_sum(turned);
    EXPECT_TRUE(at::equal(turned, 3 * at::arange(6, at::kFloat).reshape({2, 3}).t()));
  });
  EXPECT_EQ(errors, kFine3);
}

// Sums that go on at the same time; equal bits when they are repeated.
TEST(ProcessGroup, StartsSumsBesideOtherWork) {
  const auto errors = run_over_gloo(3, [](core::Communicator& ranks) {
    std::vector<at::Tensor> before;
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<at::Tensor> parts;
      std::vector<std::unique_ptr<core::Communicator::Pending>> pending;
      for (const int size : {1, 1000, 300'000}) {
        parts.push_back(at::arange(size, at::kFloat) * 0.37 + ranks.rank() * 0.11);
      }
      for (at::Tensor& part : parts) {
        pending.push_back(ranks.start_sum(part));
      }
      for (const auto& each : pending) {
        each->wait();
      }
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const at::Tensor expected = at::arange(parts[i].numel(), at::kFloat) * (3 * 0.37) + 3 * 0.11;
        EXPECT_LT((parts[i] - expected).abs().max().item<double>(), 0.1);
        if (repeat > 0) {
          EXPECT_TRUE(at::equal(parts[i], before[i]));
        }
      }
      before = parts;
    }
  });
  EXPECT_EQ(errors, kFine3);
}

// Two ranks send to each other at the same time; messages of one rank come in their order.
TEST(ProcessGroup, SendsMessagesBothWays) {
  const auto errors = run_over_gloo(3, [](core::Communicator& ranks) {
    const int next = (ranks.rank() + 1) % 3, before = (ranks.rank() + 2) % 3;
    std::vector<std::unique_ptr<core::Communicator::Pending>> sent;
    for (int i = 0; i < 20; ++i) {
      sent.push_back(ranks.start_send(at::full({1 + i * 1000}, ranks.rank() * 100 + i, at::kFloat), next));
      sent.push_back(ranks.start_send(at::full({2}, ranks.rank() * 100 + 50 + i, at::kLong), before));
    }
    at::Tensor sum = at::full({1}, 1.0);
    ranks.all_reduce_sum(sum);  // between them
    for (int i = 0; i < 20; ++i) {
      at::Tensor forward = at::zeros({1 + i * 1000}), back = at::zeros({2}, at::kLong);
      ranks.receive(back, next);
      ranks.receive(forward, before);
      EXPECT_TRUE(at::equal(forward, at::full({1 + i * 1000}, before * 100 + i, at::kFloat)));
      EXPECT_TRUE(at::equal(back, at::full({2}, next * 100 + 50 + i, at::kLong)));
    }
    for (const auto& each : sent) {
      each->wait();
    }
    EXPECT_EQ(sum.item<double>(), 3);
  });
  EXPECT_EQ(errors, kFine3);
}

TEST(ProcessGroup, PartsOfItExchangeOnTheirOwn) {
  const auto errors = run_over_gloo(4, [](core::Communicator& ranks) {
    const int rank = ranks.rank();
    const auto pair = ranks.split(rank % 2), half = ranks.split(rank / 2), alone = ranks.split(rank);
    EXPECT_EQ(pair->rank(), rank / 2);
    EXPECT_EQ(half->rank(), rank % 2);
    EXPECT_EQ(pair->size(), 2);
    EXPECT_EQ(alone->size(), 1);
    for (int i = 0; i < 3 + rank % 2; ++i) {  // one part has more to say than the other
      at::Tensor sum = at::full({5}, rank, at::kDouble);
      const auto pending = pair->start_sum(sum);
      pending->wait();
      EXPECT_EQ(sum[4].item<double>(), rank % 2 == 0 ? 2 : 4);
    }
    at::Tensor got = at::zeros({1}, at::kLong);
    const auto sent = half->start_send(at::full({1}, rank, at::kLong), 1 - half->rank());
    half->receive(got, 1 - half->rank());
    sent->wait();
    EXPECT_EQ(got.item<std::int64_t>(), rank ^ 1);
    at::Tensor all = at::full({1}, 1.0);
    ranks.all_reduce_sum(all);
    EXPECT_EQ(all.item<double>(), 4);
  });
  EXPECT_EQ(errors, (std::vector<std::string>(4)));
}

TEST(ProcessGroup, RanksOfAPartThatExchangeDifferentThingsGetAnError) {
  const auto errors = run_over_gloo(4, [](core::Communicator& ranks) {
    const auto pair = ranks.split(ranks.rank() % 2);
    at::Tensor values = at::zeros({ranks.rank() == 3 ? 3 : 4});
    pair->all_reduce_sum(values);
    ranks.barrier();
  });
  EXPECT_THAT(errors[1],
              HasSubstr("rank 1 exchanges a sum of 4 values of type Float, but rank 3 exchanges a sum of 3"));
}

// Nobody waits for a message, or a part, that will not come. Sends that nobody takes hold nobody up.
TEST(ProcessGroup, AnErrorEndsThoseThatWaitForMessages) {
  for (const bool in_a_part : {false, true}) {
    const auto errors = run_over_gloo(3, [&](core::Communicator& ranks) {
      const auto part = in_a_part ? ranks.split(0) : nullptr;
      core::Communicator& group = part ? *part : ranks;
      at::Tensor values = at::zeros({1'000'000});
      const auto sent = group.start_send(values, (ranks.rank() + 1) % 3);  // nobody receives it
      if (ranks.rank() == 2) {
        fail<DataError>("here", "a bad sample");
      }
      if (ranks.rank() == 1) {
        group.receive(values, 2);
      } else if (in_a_part) {
        group.all_reduce_sum(values);
      } else {
        group.receive(values, 1);  // which waits for rank 2
      }
    });
    EXPECT_EQ(errors[2], "[here] a bad sample");
    EXPECT_THAT(errors[0], HasSubstr("rank 2 failed: [here] a bad sample"));
    EXPECT_THAT(errors[1], HasSubstr("rank 2 failed: [here] a bad sample"));
  }
}

// torch itself ends the process here.
TEST(ProcessGroup, RanksThatExchangeDifferentThingsGetAnError) {
  const auto errors = run_over_gloo(2, [](core::Communicator& ranks) {
    at::Tensor values = at::zeros({ranks.rank() == 0 ? 3 : 4});
    ranks.all_reduce_sum(values);
  });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("a sum of 3 values of type Float"), HasSubstr("a sum of 4 values")));
  EXPECT_THAT(errors[1], HasSubstr("rank 0 exchanges a sum of 3 values"));
}

TEST(ProcessGroup, AnErrorOfOneRankIsOneOfAll) {
  for (const bool overlapped : {false, true}) {
    const auto errors = run_over_gloo(3, [&](core::Communicator& ranks) {
      at::Tensor values = at::zeros({3});
      ranks.all_reduce_sum(values);
      if (ranks.rank() == 1) {
        fail<DataError>("here", "a bad sample");
      }
      if (overlapped) {
        const auto first = ranks.start_sum(values);
        first->wait();
      } else {
        ranks.all_reduce_sum(values);
      }
    });
    EXPECT_EQ(errors[1], "[here] a bad sample");
    EXPECT_THAT(errors[0], HasSubstr("rank 1 failed: [here] a bad sample"));
    EXPECT_THAT(errors[2], HasSubstr("rank 1 failed: [here] a bad sample"));
  }
}

// Its own error is thrown with its type, so that all ranks exit with the same code.
TEST(ProcessGroup, TheErrorKeepsItsType) {
  std::mutex mutex;
  int typed = 0;
  (void)run_over_gloo(2, [&](core::Communicator& ranks) {
    try {
      if (ranks.rank() == 1) {
        fail<IoError>("here", "disk full");
      }
      ranks.barrier();
    } catch (const IoError&) {
      const std::lock_guard lock(mutex);
      ++typed;
      throw;
    }
  });
  EXPECT_EQ(typed, 2);
}

// What all ranks took part in is done before the error.
TEST(ProcessGroup, CollectivesBeforeTheErrorComplete) {
  std::vector<double> sums(2);
  (void)run_over_gloo(2, [&](core::Communicator& ranks) {
    for (int i = 0; i < 50; ++i) {
      at::Tensor one = at::full({1}, 1.0, at::kDouble);
      if (ranks.rank() == 1 && i == 40) {
        fail<Error>("here", "the end");
      }
      ranks.all_reduce_sum(one);
      sums[static_cast<std::size_t>(ranks.rank())] += one.item<double>();
    }
  });
  EXPECT_EQ(sums, (std::vector<double>{80, 80}));
}

std::string refusal(const Place& place) {
  GroupOptions options;
  options.start = std::chrono::milliseconds(300);
  try {
    (void)join(place, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ProcessGroup, ARankThatDoesNotComeIsAnError) {
  const TempFolder folder;
  Place place;
  place.ranks = place.local_ranks = 2;
  place.meeting.file = (folder / "meeting").native();
  EXPECT_THAT(refusal(place), HasSubstr("rank 0 of 2 waited 0 s for rank 1"));
}

// Ranks 0 and 2 of 4 are there: the first of them says whom they wait for, again and again.
TEST(ProcessGroup, SaysWhoIsMissing) {
  const TempFolder folder;
  std::mutex mutex;
  std::vector<std::string> said[3];
  {
    std::vector<std::jthread> threads;
    for (const int rank : {0, 2}) {
      threads.emplace_back([&, rank] {
        Place place;
        place.rank = place.local_rank = rank;
        place.ranks = place.local_ranks = 4;
        place.meeting.file = (folder / "meeting").native();
        GroupOptions options;
        options.start = std::chrono::seconds(2);
        options.say_first = std::chrono::milliseconds(500);
        options.say_again = std::chrono::milliseconds(400);
        options.say = [&, rank](const std::string& text) {
          const std::lock_guard lock(mutex);
          said[rank].push_back(text);
        };
        EXPECT_THROW((void)join(place, options), ConfigError);
      });
    }
  }
  EXPECT_GE(said[0].size(), 2);
  EXPECT_THAT(said[0], ::testing::Each("waiting for ranks 1, 3 of 4"));
  EXPECT_THAT(said[2], ::testing::IsEmpty());
}

// On each node one rank says so.
TEST(ProcessGroup, SaysThatItsStoreDoesNotAnswer) {
  for (const int local_rank : {0, 1}) {
    Place place;
    place.rank = 2 + local_rank;
    place.local_rank = local_rank;
    place.ranks = 4;
    place.local_ranks = 2;
    place.meeting.host = "127.0.0.1";
    place.meeting.port = 1;  // where nobody listens
    GroupOptions options;
    options.start = std::chrono::milliseconds(700);
    options.say_first = std::chrono::milliseconds(100);
    std::vector<std::string> said;
    options.say = [&](const std::string& text) { said.push_back(text); };
    EXPECT_THROW((void)join(place, options), ConfigError);
    if (local_rank == 0) {
      EXPECT_THAT(said, ::testing::ElementsAre(HasSubstr("waiting for the store of the ranks at 127.0.0.1:1")));
    } else {
      EXPECT_THAT(said, ::testing::IsEmpty());
    }
  }
}

TEST(ProcessGroup, NamesAMeetingPointThatCannotBe) {
  Place place;
  place.ranks = 2;
  place.meeting.host = "no-such-host.invalid";
  place.meeting.port = 1;
  EXPECT_THAT(refusal(place),
              AllOf(HasSubstr("no-such-host.invalid: the host of rank 0 is unknown"), HasSubstr("MASTER_ADDR")));
}

// Ranks that wait for its messages are not to blame.
TEST(ProcessGroup, ARankThatSendsNothingIsNamedAfterTheTimeout) {
  GroupOptions options;
  options.timeout = std::chrono::seconds(1);
  std::latch gave_up(2);
  const auto errors = run_over_gloo(
      3,
      [&](core::Communicator& ranks) {
        at::Tensor tensor = at::zeros({4});
        if (ranks.rank() == 1) {
          gave_up.wait();
          return;
        }
        try {
          ranks.receive(tensor, 1);
        } catch (const std::exception&) {
          gave_up.count_down();
          throw;
        }
      },
      options);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(errors[static_cast<std::size_t>(rank)], HasSubstr("lost the others: rank 1 (")) << rank;
    EXPECT_THAT(errors[static_cast<std::size_t>(rank)], Not(HasSubstr(fmt::format("rank {} (", 2 - rank))));
  }
}

}  // namespace
}  // namespace stoker::parallel
