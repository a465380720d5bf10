// SPDX-License-Identifier: Apache-2.0
// For tests of whole runs: what a run leaves, a sink that stops it, and the error that it ends with. One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>

#include "stoker/base/error.h"
#include "stoker/core/events.h"
#include "stoker/job/job.h"

namespace stoker::testing {

struct Ran {
  job::Outcome outcome;
  std::filesystem::path folder;
};

// Sets stop when the step with this number ends.
class StopAt final : public core::EventSink {
 public:
  StopAt(std::atomic<bool>& stop, std::int64_t step) : stop_(stop), step_(step) {}
  void on(const core::Event& event) override {
    const auto* finished = std::get_if<core::StepFinished>(&event);
    if (finished != nullptr && finished->step >= step_) {
      stop_ = true;
    }
  }

 private:
  std::atomic<bool>& stop_;
  std::int64_t step_;
};

// The text of the error that call ends with; empty: none.
template <typename Call>
std::string complaint(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace stoker::testing
