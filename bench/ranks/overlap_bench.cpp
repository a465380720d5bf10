// SPDX-License-Identifier: Apache-2.0
// One rank of overlap.py: steps of a model whose gradients are summed over ranks beside backward (as in a run), after
// it, or not at all, in turns.
//
//     overlap_bench RANK RANKS FILE [steps=N] [width=N] [layers=N] [batch=N] [sleep=1]
//
// FILE: where the ranks meet. The network is that of GLOO_SOCKET_IFNAME. The model: layers of width x width, on one
// thread; with sleep=1 one of as many bytes whose backward sleeps, so that nothing competes for cores. Rank 0 prints a
// line of JSON per turn, in seconds: "beside", "after", "none", and "window", the part of backward (without sums) after
// the first bucket is full.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench_main.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/parallel/gradient_buckets.h"
#include "stoker/parallel/process_group.h"
#include "stoker/study/ranks_bench/sleeping_model.h"

namespace stoker::bench {
namespace {

struct Words {
  std::map<std::string, std::int64_t> values{
      {"steps", 7}, {"width", 1024}, {"layers", 6}, {"batch", 256}, {"sleep", 0}};

  void take(const std::string& word) {
    const std::size_t at = word.find('=');
    const auto found = values.find(word.substr(0, at));
    if (at == word.npos || found == values.end()) {
      fail<ConfigError>("bench.overlap", "unknown word {}", word);
    }
    found->second = std::stoll(word.substr(at + 1));
  }
};

// Forward and backward of a model: gradients end in its parameters.
class Work {
 public:
  virtual ~Work() = default;
  [[nodiscard]] virtual const std::vector<core::Parameter>& parameters() const = 0;
  [[nodiscard]] virtual at::Tensor forward() = 0;  // the loss
};

class Layers final : public Work {
 public:
  explicit Layers(const Words& words) {
    const std::int64_t width = words.values.at("width");
    input_ = at::randn({words.values.at("batch"), width});
    for (std::int64_t layer = 0; layer < words.values.at("layers"); ++layer) {
      core::Parameter& each = parameters_.emplace_back();
      each.name = fmt::format("layer{}", layer);
      each.tensor = at::randn({width, width}).mul_(0.03).requires_grad_();
    }
  }
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return parameters_; }
  [[nodiscard]] at::Tensor forward() override {
    at::Tensor x = input_;
    for (const core::Parameter& each : parameters_) {
      x = at::linear(x, each.tensor).relu_();
    }
    return x.sum();
  }

 private:
  at::Tensor input_;
  std::vector<core::Parameter> parameters_;
};

class Sleeper final : public Work {
 public:
  explicit Sleeper(const Words& words) : model_(options(words)) {}
  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override { return model_.parameters(); }
  [[nodiscard]] at::Tensor forward() override {
    const core::Batch batch = study::SleepingModel::batch();
    return model_.loss(model_.forward(model_.inputs(batch)), batch).front().sum;
  }

 private:
  // Backward takes as long as the bytes take at 1 Gbit/s.
  static study::SleepingOptions options(const Words& words) {
    const std::int64_t values = words.values.at("width") * words.values.at("width");
    return {.segments = static_cast<int>(words.values.at("layers")),
            .values = values,
            .forward = std::chrono::microseconds(1000),
            .backward = std::chrono::microseconds(values * 4 * 8 / 1000)};
  }
  study::SleepingModel model_;
};

// Tells when the first sum was started.
class Watched final : public core::Communicator {
 public:
  explicit Watched(core::Communicator& inner) : inner_(inner) {}
  std::optional<double> first_start_s;
  bool sends = true;

  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  void all_reduce_sum(at::Tensor& tensor) override { inner_.all_reduce_sum(tensor); }
  void all_reduce_max(at::Tensor& tensor) override { inner_.all_reduce_max(tensor); }
  void broadcast(at::Tensor& tensor, int from) override { inner_.broadcast(tensor, from); }
  [[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    return inner_.all_gather(tensor);
  }
  void barrier() override { inner_.barrier(); }
  [[nodiscard]] std::unique_ptr<Pending> start_sum(at::Tensor& tensor) override {
    first_start_s = first_start_s.value_or(now_s());
    return sends ? inner_.start_sum(tensor) : nullptr;
  }
  [[nodiscard]] std::unique_ptr<Pending> start_exchange(const at::Tensor& tensor, at::Tensor& all) override {
    return inner_.start_exchange(tensor, all);
  }

 private:
  core::Communicator& inner_;
};

enum class Way { kBeside, kAfter, kNone };

struct Taken {
  double seconds = 0;  // of the step, until gradients are sums
  double window = 0;   // from the first bucket to the end of backward
};

Taken take(Work& work, Watched& ranks, parallel::GradientBuckets& buckets, Way way) {
  for (const core::Parameter& each : work.parameters()) {
    each.tensor.mutable_grad().reset();
  }
  ranks.barrier();
  ranks.first_start_s.reset();
  ranks.sends = way != Way::kNone;
  const double began = now_s();
  const at::Tensor loss = work.forward();
  if (way != Way::kAfter) {
    buckets.begin();
  }
  loss.backward();
  const double end = now_s();
  buckets.start_rest();
  at::Tensor messages;
  if (const auto message = ranks.start_exchange(buckets.message(), messages)) {
    message->wait();
  }
  buckets.wait(messages);
  return {now_s() - began, ranks.first_start_s ? std::max(0.0, end - *ranks.first_start_s) : 0};
}

int run(int count, char** words) {
  if (count < 4) {
    fail<ConfigError>("bench.overlap", "give the rank, their number, and the file in which they meet");
  }
  parallel::Place place;
  place.rank = std::stoi(words[1]);
  place.ranks = std::stoi(words[2]);
  place.meeting.file = words[3];
  Words asked;
  for (int i = 4; i < count; ++i) {
    asked.take(words[i]);
  }
  at::set_num_threads(1);
  const auto group = parallel::join(place);
  Watched ranks(*group);
  const auto work = asked.values["sleep"] != 0 ? std::unique_ptr<Work>(std::make_unique<Sleeper>(asked))
                                               : std::make_unique<Layers>(asked);
  parallel::GradientBuckets buckets(ranks, work->parameters());
  for (std::int64_t turn = -1; turn < asked.values["steps"]; ++turn) {  // the first turn does not count
    std::array<Taken, 3> taken;
    for (int i = 0; i < 3; ++i) {
      const int way = turn % 2 == 0 ? i : 2 - i;
      taken[static_cast<std::size_t>(way)] = take(*work, ranks, buckets, static_cast<Way>(way));
    }
    const auto& [beside, after, none] = taken;
    if (turn >= 0 && place.rank == 0) {
      fmt::print("{{\"beside\":{},\"after\":{},\"none\":{},\"window\":{}}}\n", beside.seconds, after.seconds,
                 none.seconds, none.window);
      std::fflush(stdout);
    }
  }
  ranks.barrier();
  return 0;
}

}  // namespace
}  // namespace stoker::bench

int main(int count, char** words) {
  return stoker::bench::bench_main("overlap_bench", stoker::bench::run, count, words);
}
