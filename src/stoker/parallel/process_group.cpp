// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/process_group.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/core/first_line.h"
#include "stoker/parallel/group_members.h"
#include "stoker/parallel/lifeline.h"
#include "stoker/parallel/local_address.h"
#include "stoker/parallel/messages.h"
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

// Some of the ranks, which know each other by the store of all.
c10::intrusive_ptr<Gloo> meet_part(const Place& place, Store& store, const GroupOptions& options,
                                   const std::string& prefix, const GroupMembers& members) {
  const auto settings = c10d::ProcessGroupGloo::Options::create(options.start);
  settings->devices.push_back(device_of(place));
  auto own =
      c10::make_intrusive<c10d::PrefixStore>(prefix, c10::intrusive_ptr<c10d::Store>::reclaim_copy(store.get_torch()));
  auto group = c10::make_intrusive<Gloo>(own, members.own, static_cast<int>(members.ranks.size()), settings);
  group->setTimeout(options.timeout);
  return group;
}

// All ranks, or some of them. What some exchange has no number: it comes before the next collective of all.
class ProcessGroup final : public core::Communicator {
 public:
  ProcessGroup(const Place& place, const GroupOptions& options)
      : place_(place),
        options_(options),
        store_(std::make_unique<Store>(place, options.start)),
        gloo_(meet(place, *store_, options)),
        messages_(*gloo_, place.ranks),
        lifeline_(std::make_unique<Lifeline>(store_->clone(kStoreIsGone), place.rank, place.ranks)) {}
  ProcessGroup(ProcessGroup& whole, const GroupMembers& members, const std::string& prefix)
      : place_(place_in(whole.place_, members)),
        options_(whole.options_),
        members_(members.ranks),
        whole_(&whole),
        gloo_(meet_part(whole.place_, *whole.store_, options_, prefix, members)),
        messages_(*gloo_, place_.ranks) {}

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
    run([&] { return gloo_->broadcast(tensors, options); });
    put_back(tensor, tensors[0]);
  }

  [[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    check_same(Operation::kGather, tensor);
    return gather(tensor);
  }

  [[nodiscard]] std::vector<at::Tensor> exchange(const at::Tensor& tensor) override { return gather(tensor); }

  void barrier() override {
    run([&] { return gloo_->barrier(); });
  }

  [[nodiscard]] std::unique_ptr<Pending> start_sum(at::Tensor& tensor) override {
    return std::make_unique<Sum>(*this, tensor);
  }

  [[nodiscard]] std::unique_ptr<Pending> start_send(const at::Tensor& tensor, int to) override {
    return message([&] { return messages_.start_send(tensor, to); });
  }
  [[nodiscard]] std::unique_ptr<Pending> start_receive(at::Tensor& tensor, int from) override {
    return message([&] { return messages_.start_receive(tensor, from); });
  }

  [[nodiscard]] std::unique_ptr<Communicator> split(int group) override {
    if (whole_ != this) {
      fail<Error>(kWhere, "a part of the ranks cannot be split again; split all ranks");
    }
    GroupMembers members = members_of(all_gather(at::full({1}, group, at::kLong)), rank());
    const std::string prefix = fmt::format("part/{}/{}", parts_.size(), group);
    auto part = members.ranks.size() == 1 ? nullptr : std::make_unique<ProcessGroup>(*this, members, prefix);
    parts_.push_back(part ? part->gloo_ : nullptr);
    return part ? std::unique_ptr<Communicator>(std::move(part)) : std::make_unique<core::SingleRank>();
  }

  void leave(const std::exception& error) override {
    whole_->lifeline_->leave(departure_of(whole_->rank(), whole_->next_, error));
    whole_->gloo_->close();
    for (const auto& part : whole_->parts_) {
      if (part) {
        part->close();
      }
    }
  }

 private:
  enum class Operation : std::int64_t { kSum, kMax, kBroadcast, kGather };
  using Work = c10::intrusive_ptr<c10d::Work>;

  // A sum that Gloo's threads make.
  class Sum final : public Pending {
   public:
    Sum(ProcessGroup& group, at::Tensor& tensor) : group_(group), tensors_{tensor} {
      if (!tensor.is_contiguous()) {
        fail<Error>(kWhere, "start_sum() takes contiguous tensors; give a flat buffer");
      }
      work_ = group_.begin([&] { return group_.gloo_->allreduce(tensors_); });
    }
    ~Sum() override {
      if (work_) {
        try {
          wait();
        } catch (const std::exception&) {  // whoever drops it knows of an error already
        }
      }
    }
    void wait() override { group_.finish(std::exchange(work_, nullptr)); }

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
    run([&] { return gloo_->allreduce(tensors, options); });
    put_back(tensor, tensors[0]);
  }

  static void put_back(at::Tensor& tensor, const at::Tensor& result) {
    if (!result.is_same(tensor)) {
      tensor.copy_(result);
    }
  }

  std::vector<at::Tensor> gather(const at::Tensor& tensor) {
    std::vector<at::Tensor> inputs{tensor.contiguous()};
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (int other = 0; other < size(); ++other) {
      outputs[0].push_back(at::empty_like(inputs[0]));
    }
    run([&] { return gloo_->allgather(outputs, inputs); });
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
    const std::vector<at::Tensor> all = gather(mine);
    for (std::size_t other = 0; other < all.size(); ++other) {
      const auto* const theirs = all[other].const_data_ptr<std::int64_t>();
      if (!std::equal(fields, fields + kFields, theirs)) {
        fail<Error>(kWhere, "ranks do not take the same steps: rank {} exchanges {}, but rank {} exchanges {}",
                    whole_->rank(), words(fields), members_.empty() ? static_cast<int>(other) : members_[other],
                    words(theirs));
      }
    }
  }

  static std::string words(const std::int64_t* fields) {
    static constexpr std::array kNames{"a sum", "a maximum", "a broadcast", "a gathering"};
    return fmt::format("{} of {} values of type {}", kNames[static_cast<std::size_t>(fields[0])], fields[2],
                       c10::toString(static_cast<at::ScalarType>(fields[1])));
  }

  template <typename Start>
  Work begin(const Start& start) {
    whole_->lifeline_->begin(whole_->next_);
    whole_->next_ += whole_ == this ? 1 : 0;
    try {
      return start();
    } catch (const std::exception& error) {
      whole_->lifeline_->end();
      explain(error);
    }
  }

  void finish(const Work& work) {
    try {
      work->wait();
    } catch (const std::exception& error) {
      whole_->lifeline_->end();
      explain(error);
    }
    whole_->lifeline_->end();
  }

  // A message is not a collective that all take part in: who leaves need not wait for it.
  template <typename Start>
  std::unique_ptr<Pending> message(const Start& start) {
    whole_->lifeline_->check(whole_->next_);
    try {
      return std::make_unique<Message>(start(), [this](const std::exception& error) { explain(error); });
    } catch (const std::exception& error) {
      explain(error);
    }
  }

  template <typename Start>
  void run(const Start& start) {
    finish(begin(start));
  }

  // A collective failed: since another rank left and closed its connections, or since a rank is gone or hangs.
  [[noreturn]] void explain(const std::exception& error) {
    if (const auto gone = whole_->lifeline_->reason()) {
      throw_departure(*gone);
    }
    fail<RankError>(kWhere, "rank {} lost the others: {}", whole_->rank(), core::first_line(error));
  }

  const Place place_;
  const GroupOptions options_;
  const std::vector<int> members_;    // ranks of a part; empty: all
  ProcessGroup* const whole_ = this;  // all ranks
  std::unique_ptr<Store> store_;      // of all ranks, as the next ones
  c10::intrusive_ptr<Gloo> gloo_;
  Messages messages_;
  std::vector<c10::intrusive_ptr<Gloo>> parts_;  // that this rank is in; null: alone
  std::atomic<std::int64_t> next_{0};            // number of the next collective
  std::unique_ptr<Lifeline> lifeline_;           // the last: its thread uses the others
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
