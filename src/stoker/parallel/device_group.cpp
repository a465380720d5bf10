// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/device_group.h"

#include <future>
#include <string_view>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/start_thread.h"
#include "stoker/device/backend.h"

namespace stoker::parallel {
namespace {

using namespace std::chrono_literals;
constexpr std::string_view kWhere = "parallel.device_group";
constexpr auto kPause = 1ms;
constexpr auto kEnds = 10s;  // longest end of a group that is whole

DeviceGroupMaker* maker() { return reinterpret_cast<DeviceGroupMaker*>(device::find_function(kNccl)); }

// NCCL's own end flushes what is on its way to other ranks, but may wait for one that was killed meanwhile.
void end_in_time(c10::intrusive_ptr<c10d::Backend> group) {
  auto done = std::make_shared<std::promise<void>>();
  const std::future<void> ended = done->get_future();
  start_thread(kWhere, "ends the connections of GPUs", [group = std::move(group), done] {
    try {
      group->shutdown();
    } catch (const std::exception&) {  // the work is done already
    }
    done->set_value();
  }).detach();
  ended.wait_for(kEnds);
}

}  // namespace

std::string why_no_device_group() {
  if (maker() != nullptr) {
    return "";
  }
  const std::string missing = device::missing_reason(c10::DeviceType::CUDA);
  return missing.empty() ? "this build of Stoker found no nccl.h beside torch" : missing;
}

DeviceGroup::DeviceGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks, std::chrono::milliseconds timeout,
                         DeviceGroupMaker* make)
    : store_(std::move(store)), rank_(rank), ranks_(ranks), timeout_(timeout), make_(make) {}

DeviceGroup::~DeviceGroup() { end(); }

void DeviceGroup::end() noexcept {
  if (!group() || cut_off_) {
    return;
  }
  if (busy()) {
    cut_off();
    return;
  }
  std::unique_lock lock(mutex_);
  newest_.reset();
  auto group = std::exchange(group_, nullptr);
  lock.unlock();
  try {
    end_in_time(std::move(group));
  } catch (const std::exception&) {  // no thread for it
  }
}

c10::intrusive_ptr<c10d::Backend> DeviceGroup::group() const {
  const std::lock_guard lock(mutex_);
  return group_;
}

c10::intrusive_ptr<c10d::Work> DeviceGroup::start(const Start& begin) {
  c10::intrusive_ptr<c10d::Backend> group = this->group();
  if (!group) {
    DeviceGroupMaker* const make = make_ != nullptr ? make_ : maker();
    if (make == nullptr) {
      fail<ConfigError>(kWhere, "ranks have no collectives on GPUs: {}; set device=cpu", why_no_device_group());
    }
    group = make(c10::make_intrusive<c10d::PrefixStore>("device", store_), rank_, ranks_, timeout_);
    const std::lock_guard lock(mutex_);
    group_ = group;
  }
  auto work = begin(*group);
  const std::lock_guard lock(mutex_);
  newest_ = work;
  return work;
}

bool DeviceGroup::busy() const {
  c10::intrusive_ptr<c10d::Work> newest;
  {
    const std::lock_guard lock(mutex_);
    newest = newest_;
  }
  try {
    return newest && !newest->isCompleted();
  } catch (const std::exception&) {  // the device failed: it waits for nobody
    return false;
  }
}

void DeviceGroup::cut_off() noexcept {
  const c10::intrusive_ptr<c10d::Backend> group = this->group();
  if (!group || cut_off_.exchange(true)) {
    return;
  }
  try {
    group->abort();
  } catch (const std::exception&) {  // torch waits for the abort as long as for a collective
  }
}

void DeviceGroup::settle(std::optional<std::chrono::milliseconds> longest) const {
  const c10::intrusive_ptr<c10d::Backend> group = this->group();
  const auto began = std::chrono::steady_clock::now();
  bool done = !group;
  while (!done && !cut_off_ && !(longest && std::chrono::steady_clock::now() - began > *longest)) {
    done = !busy();
    if (!done) {
      std::this_thread::sleep_for(kPause);
    }
  }
  // torch's own watch may have cut it off.
  if (!done || cut_off_ || (group && group->getError() != c10d::ErrorType::SUCCESS)) {
    fail<RankError>(kWhere,
                    "sums over the GPUs of the ranks did not end, since a rank is gone: the weights of rank {} "
                    "belong to no step",
                    rank_);
  }
}

}  // namespace stoker::parallel
