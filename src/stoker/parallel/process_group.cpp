// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/process_group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/core/first_line.h"
#include "stoker/parallel/lifeline.h"
#include "stoker/parallel/local_address.h"
#include "stoker/parallel/store.h"

namespace stoker::parallel {
namespace {

constexpr std::string_view kWhere = "parallel.ranks";
constexpr auto kStoreIsGone = std::chrono::seconds(2);  // without an answer

class Gloo final : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;
  // Operations of peers that wait for this rank throw; its own ones would wait on. ProcessGroupGloo's abort() does
  // nothing.
  void close() {
    for (const auto& context : contexts_) {
      context->closeConnections();
    }
  }
};

std::shared_ptr<gloo::transport::Device> device_of(const Place& place) {
  if (place.one_node()) {
    return Gloo::createDeviceForInterface("lo");
  }
  if (const char* const name = std::getenv("GLOO_SOCKET_IFNAME"); name != nullptr && *name != '\0') {
    return Gloo::createDeviceForInterface(name);
  }
  return Gloo::createDeviceForHostname(local_address(place.meeting.host));
}

// Gloo itself does not say who is missing.
void wait_for_all(const Place& place, Store& store, const GroupOptions& options) {
  constexpr auto kPause = std::chrono::milliseconds(10);
  const auto key = [](int rank) { return fmt::format("here/{}", rank); };
  store.set(key(place.rank), "1");
  const auto until = std::chrono::steady_clock::now() + options.start;
  for (int other = 0; other < place.ranks; ++other) {
    while (!store.get(key(other))) {
      if (options.while_waiting) {
        options.while_waiting();
      }
      if (std::chrono::steady_clock::now() > until) {
        fail<ConfigError>(kWhere, "rank {} of {} waited {} s for rank {}, which did not come; start all ranks",
                          place.rank, place.ranks,
                          std::chrono::duration_cast<std::chrono::seconds>(options.start).count(), other);
      }
      std::this_thread::sleep_for(kPause);
    }
  }
}

c10::intrusive_ptr<Gloo> meet(const Place& place, Store& store, const GroupOptions& options) {
  wait_for_all(place, store, options);
  const auto settings = c10d::ProcessGroupGloo::Options::create(options.start);
  settings->devices.push_back(device_of(place));
  auto group = c10::make_intrusive<Gloo>(c10::intrusive_ptr<c10d::Store>::reclaim_copy(store.get_torch()), place.rank,
                                         place.ranks, settings);
  group->setTimeout(options.timeout);
  return group;
}

class ProcessGroup final : public core::Communicator {
 public:
  ProcessGroup(const Place& place, const GroupOptions& options)
      : place_(place),
        store_(place, options.start),
        gloo_(meet(place, store_, options)),
        lifeline_(store_.clone(kStoreIsGone), {place.rank, all_members(), options.timeout}) {}

  [[nodiscard]] int rank() const override { return place_.rank; }
  [[nodiscard]] int size() const override { return place_.ranks; }
  [[nodiscard]] int size_here() const override { return place_.local_ranks; }

  void all_reduce_sum(at::Tensor& tensor) override { reduce(tensor, c10d::ReduceOp::SUM, Operation::kSum); }
  void all_reduce_max(at::Tensor& tensor) override { reduce(tensor, c10d::ReduceOp::MAX, Operation::kMax); }

  void broadcast(at::Tensor& tensor, int from) override {
    check_same(Operation::kBroadcast, tensor);
    std::vector<at::Tensor> tensors{tensor.contiguous()};
    c10d::BroadcastOptions options;
    options.rootRank = from;
    run("broadcast", bytes_of(tensor), [&] { return gloo_->broadcast(tensors, options); });
    put_back(tensor, tensors[0]);
  }

  [[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    check_same(Operation::kGather, tensor);
    return gather("gathering", tensor);
  }

  [[nodiscard]] std::vector<at::Tensor> exchange(const at::Tensor& tensor) override {
    return gather("gathering", tensor);
  }

  void barrier() override {
    run("barrier", -1, [&] { return gloo_->barrier(); });
  }

  [[nodiscard]] std::unique_ptr<Pending> start_sum(at::Tensor& tensor) override {
    return std::make_unique<Sum>(*this, tensor);
  }

  void leave(const std::exception& error) override {
    lifeline_.leave(error);
    gloo_->close();
  }
  void keep_record_in(const std::filesystem::path& folder) override { lifeline_.keep_record_in(folder); }
  [[nodiscard]] std::string trouble() const override { return lifeline_.trouble(); }

 private:
  enum class Operation : std::int64_t { kSum, kMax, kBroadcast, kGather };
  struct Work {
    std::int64_t number = 0;
    c10::intrusive_ptr<c10d::Work> torch;  // null: has been waited for
  };

  // A sum that Gloo's threads make.
  class Sum final : public Pending {
   public:
    Sum(ProcessGroup& group, at::Tensor& tensor) : group_(group), tensors_{tensor} {
      if (!tensor.is_contiguous()) {
        fail<Error>(kWhere, "start_sum() takes contiguous tensors; give a flat buffer");
      }
      work_ = group_.begin("sum", bytes_of(tensor), [&] { return group_.gloo_->allreduce(tensors_); });
    }
    ~Sum() override {
      if (work_.torch) {
        try {
          wait();
        } catch (const std::exception&) {  // whoever drops it knows of an error already
        }
      }
    }
    void wait() override { group_.finish(std::exchange(work_, {})); }

   private:
    ProcessGroup& group_;
    std::vector<at::Tensor> tensors_;
    Work work_;
  };

  void reduce(at::Tensor& tensor, c10d::ReduceOp::RedOpType operation, Operation name) {
    check_same(name, tensor);
    std::vector<at::Tensor> tensors{tensor.contiguous()};
    c10d::AllreduceOptions options;
    options.reduceOp = operation;
    run(operation == c10d::ReduceOp::SUM ? "sum" : "maximum", bytes_of(tensor),
        [&] { return gloo_->allreduce(tensors, options); });
    put_back(tensor, tensors[0]);
  }

  static void put_back(at::Tensor& tensor, const at::Tensor& result) {
    if (!result.is_same(tensor)) {
      tensor.copy_(result);
    }
  }

  static std::int64_t bytes_of(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor.nbytes()); }

  // Of all ranks, before there is a lifeline.
  std::vector<Member> all_members() {
    constexpr std::size_t kBytes = 256;
    const std::string text = to_text(this_process(), kBytes);
    std::vector<at::Tensor> mine{at::zeros({kBytes}, at::kByte)};
    std::ranges::copy(text, mine[0].mutable_data_ptr<std::uint8_t>());
    std::vector<std::vector<at::Tensor>> all(1);
    for (int other = 0; other < size(); ++other) {
      all[0].push_back(at::empty_like(mine[0]));
    }
    gloo_->allgather(all, mine)->wait();
    std::vector<Member> members;
    for (const at::Tensor& each : all[0]) {
      members.push_back(member_from(reinterpret_cast<const char*>(each.const_data_ptr<std::uint8_t>())));
    }
    return members;
  }

  std::vector<at::Tensor> gather(std::string_view name, const at::Tensor& tensor) {
    std::vector<at::Tensor> inputs{tensor.contiguous()};
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (int other = 0; other < size(); ++other) {
      outputs[0].push_back(at::empty_like(inputs[0]));
    }
    run(name, bytes_of(tensor), [&] { return gloo_->allgather(outputs, inputs); });
    return outputs[0];
  }

  // Before each collective that no plan of a step has: torch ends the process if sizes differ.
  void check_same(Operation operation, const at::Tensor& tensor) {
    constexpr std::int64_t kFields = 3;
    at::Tensor mine = at::empty({kFields}, at::kLong);
    auto* const fields = mine.mutable_data_ptr<std::int64_t>();
    fields[0] = static_cast<std::int64_t>(operation);
    fields[1] = static_cast<std::int64_t>(tensor.scalar_type());
    fields[2] = tensor.numel();
    const std::vector<at::Tensor> all = gather("comparison", mine);
    for (std::size_t other = 0; other < all.size(); ++other) {
      const auto* const theirs = all[other].const_data_ptr<std::int64_t>();
      if (!std::equal(fields, fields + kFields, theirs)) {
        fail<Error>(kWhere, "ranks do not take the same steps: rank {} exchanges {}, but rank {} exchanges {}", rank(),
                    words(fields), other, words(theirs));
      }
    }
  }

  static std::string words(const std::int64_t* fields) {
    static constexpr std::array kNames{"a sum", "a maximum", "a broadcast", "a gathering"};
    return fmt::format("{} of {} values of type {}", kNames[static_cast<std::size_t>(fields[0])], fields[2],
                       c10::toString(static_cast<at::ScalarType>(fields[1])));
  }

  template <typename Start>
  Work begin(std::string_view name, std::int64_t bytes, const Start& start) {
    const std::int64_t number = lifeline_.begin(name, bytes);
    try {
      return {number, start()};
    } catch (const std::exception& error) {
      lifeline_.end(number, /*failed=*/true);
      lifeline_.explain(core::first_line(error));
    }
  }

  void finish(const Work& work) {
    try {
      work.torch->wait();
    } catch (const std::exception& error) {
      lifeline_.end(work.number, /*failed=*/true);
      lifeline_.explain(core::first_line(error));
    }
    lifeline_.end(work.number);
  }

  template <typename Start>
  void run(std::string_view name, std::int64_t bytes, const Start& start) {
    finish(begin(name, bytes, start));
  }

  const Place place_;
  Store store_;
  c10::intrusive_ptr<Gloo> gloo_;
  Lifeline lifeline_;  // the last: it hears of the others
};

}  // namespace

std::shared_ptr<core::Communicator> join(const Place& place, const GroupOptions& options) {
  try {
    return std::make_shared<ProcessGroup>(place, options);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail<ConfigError>(kWhere, "rank {} of {} cannot meet the others: {}", place.rank, place.ranks,
                      core::first_line(error));
  }
}

}  // namespace stoker::parallel
