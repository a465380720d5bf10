// SPDX-License-Identifier: Apache-2.0
// Lines as py-spy 0.4.3 printed them of a training with two workers.
#include "stoker/observe/doctor/stack_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace stoker::observe::doctor {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr const char* kRoot = R"(process 7:"/usr/bin/python3 train.py; 2";)";
constexpr const char* kTorch = "/usr/lib/python3/dist-packages/torch/";

std::string main_stack(const std::string& frames, int count) {
  return kRoot + std::string("thread (7): MainThread;<module> (/home/a/train.py:30);") + frames + " " +
         std::to_string(count) + "\n";
}

std::string worker_stack(int pid, const std::string& frames, int count) {
  return kRoot + std::string("process ") + std::to_string(pid) + R"(:"/usr/bin/python3 train.py; 2";thread ()" +
         std::to_string(pid) + "): MainThread;<module> (/home/a/train.py:17);DataLoader.__iter__ (" + kTorch +
         "utils/data/dataloader.py:500);_worker_loop (" + kTorch + "utils/data/_utils/worker.py:358);" + frames + " " +
         std::to_string(count) + "\n";
}

StackSamples read(const std::string& text) {
  std::istringstream stream(text);
  return read_stacks(stream, 7);
}

TEST(StackSamples, TellWhatTheMainThreadDoes) {
  const std::string torch = kTorch;
  const StackSamples samples = read(
      main_stack("_BaseDataLoaderIter.__next__ (" + torch +
                     "utils/data/dataloader.py:741);wait (/usr/lib/python3.11/selectors.py:5)",
                 40) +
      main_stack("Tensor.backward (" + torch + "_tensor.py:631);backward (" + torch + "autograd/__init__.py:381)", 20) +
      main_stack("wrapper (" + torch + "optim/optimizer.py:533);step (" + torch + "optim/adam.py:9)", 10) +
      main_stack("Optimizer.zero_grad (" + torch + "optim/optimizer.py:900)", 2) +
      main_stack("save (" + torch + "serialization.py:900)", 3) +
      main_stack("SummaryWriter.add_scalar (/x/site-packages/torch/utils/tensorboard/writer.py:3)", 4) +
      main_stack("forward (/home/a/model.py:12);linear (" + torch + "nn/functional.py:7)", 25) + kRoot +
      "thread (9): QueueFeederThread;run (/usr/lib/python3.11/threading.py:1) 99\n");
  EXPECT_THAT(samples.parts,
              UnorderedElementsAre(Pair("fetch", 40), Pair("backward", 20), Pair("optimizer", 10), Pair("zero_grad", 2),
                                   Pair("checkpoint", 3), Pair("logging", 4), Pair("other", 25)));
  EXPECT_EQ(samples.all, 104);
  EXPECT_EQ(samples.sites.front().where, "/home/a/train.py:30");
  EXPECT_EQ(samples.sites.front().looks, 40);
  EXPECT_EQ(samples.sites[1].where, "/home/a/model.py:12");  // the innermost of the script's own lines
  EXPECT_EQ(samples.sites[1].text, "forward");
}

TEST(StackSamples, TellWhatWorkersDo) {
  const std::string fetch = "_MapDatasetFetcher.fetch (" + std::string(kTorch) + "utils/data/_utils/fetch.py:54);";
  const StackSamples samples =
      read(worker_stack(8, fetch + "__getitem__ (/home/a/data.py:31);open (/x/site-packages/PIL/Image.py:9)", 30) +
           worker_stack(9, fetch + "default_collate (" + kTorch + "utils/data/_utils/collate.py:5)", 5) +
           worker_stack(9, "get (/usr/lib/python3.11/multiprocessing/queues.py:113)", 15));
  EXPECT_EQ(samples.workers, 2);
  EXPECT_EQ(samples.of_workers, 50);
  EXPECT_EQ(samples.samples, 30);
  EXPECT_EQ(samples.collate, 5);
  EXPECT_EQ(samples.all, 0);
  EXPECT_EQ(samples.sites.front().where, "/home/a/data.py:31");
}

TEST(StackSamples, AddUp) {
  StackSamples sum = read(main_stack("f (/home/a/m.py:1)", 3));
  sum.add(read(main_stack("f (/home/a/m.py:1)", 4) + main_stack("g (/home/a/m.py:9)", 20)));
  EXPECT_EQ(sum.all, 27);
  ASSERT_EQ(sum.sites.size(), 2U);
  EXPECT_EQ(sum.sites[0].looks, 20);
  EXPECT_EQ(sum.sites[1].looks, 7);
}

TEST(StackSamples, OtherLinesAreLeftOut) {
  EXPECT_EQ(read("py-spy> Sampling process 50 times a second\n\n 7\nprocess 7;thread (7): MainThread;f (a:1)\n"
                 "process x:y;thread (7): MainThread;f (a:1) 5\nprocess 7:y;thread (7): MainThread;f (a:1) -5\n"
                 "thread (7): MainThread;f (a:1) 5\n")
                .all,
            0);
  EXPECT_EQ(read("process 7:y;thread (7): MainThread;f;g (;h (:);i (a:b) 5\n").all, 5);
}

}  // namespace
}  // namespace stoker::observe::doctor
