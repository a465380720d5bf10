// SPDX-License-Identifier: Apache-2.0
#include "stoker/parallel/store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/core/first_line.h"
#include "stoker/parallel/local_address.h"

namespace stoker::parallel {
namespace {

constexpr std::string_view kWhere = "parallel.store";
using Torch = c10::intrusive_ptr<c10d::Store>;

// Whoever made the folder removes the file: torch's store would do so when the first ranks end, and calls of the others
// would wait for it.
Torch open_file(const MeetingPoint& meeting) {
  constexpr int kNobodyRemovesIt = -1;
  const std::filesystem::path file(meeting.file);
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);  // the store reports a folder that is not there
  std::filesystem::permissions(file.parent_path(), std::filesystem::perms::owner_all, error);
  return c10::make_intrusive<c10d::FileStore>(meeting.file, kNobodyRemovesIt);
}

// torch would ask for an unknown name until the timeout. A name may come late: Kubernetes gives it with the pod.
void wait_for_name(const std::string& host, std::chrono::milliseconds timeout) {
  constexpr auto kPatience = std::chrono::milliseconds(30'000), kPause = std::chrono::milliseconds(500);
  const auto until = std::chrono::steady_clock::now() + std::min(kPatience, timeout);
  for (;;) {
    try {
      static_cast<void>(local_address(host));
      return;
    } catch (const ConfigError&) {
      if (std::chrono::steady_clock::now() > until) {
        throw;
      }
    }
    std::this_thread::sleep_for(kPause);
  }
}

// The destructor of torch's file store opens the file once more, and ends the process if another rank removes it at
// this moment (seen in tests). So stores stay until the process ends; each is a name and a small table.
Torch kept(Torch store) {
  static std::mutex mutex;
  static auto* const all = new std::vector<Torch>();
  const std::lock_guard lock(mutex);
  return all->emplace_back(std::move(store));
}

Torch open_server(const MeetingPoint& meeting, std::chrono::milliseconds timeout) {
  wait_for_name(meeting.host, timeout);
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(meeting.port);
  options.isServer = meeting.serves;
  options.waitWorkers = false;
  options.timeout = timeout;
  return c10::make_intrusive<c10d::TCPStore>(meeting.host, options);
}

Torch open(const Place& place, std::chrono::milliseconds timeout) {
  const MeetingPoint& meeting = place.meeting;
  try {
    const Torch store = meeting.file.empty() ? open_server(meeting, timeout) : open_file(meeting);
    store->setTimeout(timeout);
    Torch prefixed = c10::make_intrusive<c10d::PrefixStore>("stoker/" + meeting.prefix, store);
    return meeting.file.empty() ? prefixed : kept(std::move(prefixed));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (!meeting.file.empty()) {
      fail<ConfigError>(kWhere, "{}: the ranks cannot meet in this file: {}", printable(meeting.file),
                        core::first_line(error));
    }
    fail<ConfigError>(kWhere, "{}:{}: the store of the ranks {}: {}; check MASTER_ADDR and MASTER_PORT", meeting.host,
                      meeting.port, meeting.serves ? "cannot be opened" : "does not answer", core::first_line(error));
  }
}

}  // namespace

struct Store::Handle {
  Torch torch;
  bool file = false;

  // Runs work; what torch throws becomes a RankError.
  template <typename Work>
  auto typed(const Work& work) {
    try {
      return work();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      fail<RankError>(kWhere, "the store of the ranks cannot be reached: {}", core::first_line(error));
    }
  }
};

Store::Store(const Place& place, std::chrono::milliseconds timeout)
    : handle_(std::make_unique<Handle>(Handle{open(place, timeout), !place.meeting.file.empty()})) {}
Store::Store(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Store::~Store() = default;

void Store::set(const std::string& key, const std::string& value) {
  handle_->typed([&] { handle_->torch->set(key, value); });
}

std::int64_t Store::add(const std::string& key, std::int64_t amount) {
  return handle_->typed([&] { return handle_->torch->add(key, amount); });
}

std::optional<std::string> Store::get(const std::string& key) {
  return handle_->typed([&]() -> std::optional<std::string> {
    if (!handle_->torch->check({key})) {
      return std::nullopt;
    }
    return handle_->torch->get_to_str(key);
  });
}

std::string Store::wait_for(const std::string& key, std::chrono::milliseconds timeout) {
  return handle_->typed([&] {
    handle_->torch->wait({key}, timeout);
    return handle_->torch->get_to_str(key);
  });
}

c10d::Store* Store::get_torch() const { return handle_->torch.get(); }

std::unique_ptr<Store> Store::clone(std::chrono::milliseconds timeout) const {
  Torch other = handle_->torch->clone();
  auto handle =
      std::make_unique<Handle>(Handle{handle_->file ? kept(std::move(other)) : std::move(other), handle_->file});
  handle->torch->setTimeout(timeout);
  return std::unique_ptr<Store>(new Store(std::move(handle)));
}

}  // namespace stoker::parallel
