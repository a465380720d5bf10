// SPDX-License-Identifier: Apache-2.0
#include "stoker/memory/microbatch.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <charconv>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::memory {
namespace {

constexpr std::string_view kState = "memory.microbatch";
constexpr std::int64_t kHeader = 4;  // samples, clean, patience, growing; then two numbers per change
constexpr std::int64_t kMostPatience = std::int64_t{1} << 20;

// A whole number from the front of the text.
bool take_number(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good = error == std::errc() && number >= 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return good;
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

}  // namespace

MicrobatchSchedule parse_schedule(std::string_view text) {
  MicrobatchSchedule result;
  std::string_view rest = text;
  while (!rest.empty()) {
    MicrobatchChange change;
    const bool good = (result.empty() || take(rest, ',')) && take_number(rest, change.step) && take(rest, ':') &&
                      take_number(rest, change.samples);
    if (!good || change.step < 1 || (!result.empty() && change.step <= result.back().step)) {
      fail<ConfigError>("memory.microbatch", "expected STEP:SAMPLES,... with ascending steps from 1, got \"{}\"",
                        printable(text));
    }
    result.push_back(change);
  }
  return result;
}

bool is_schedule(std::string_view text) {
  try {
    (void)parse_schedule(text);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

std::string schedule_text(const MicrobatchSchedule& schedule) {
  std::string text;
  for (const MicrobatchChange& each : schedule) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", each.step, each.samples);
  }
  return text;
}

Microbatch::Microbatch(MicrobatchOptions options) : options_(std::move(options)), samples_(options_.asked) {
  options_.smallest = std::max<std::int64_t>(1, options_.smallest);
}

void Microbatch::begin_step(std::int64_t step) {
  step_ = step;
  const auto due = std::ranges::find(options_.repeat, step, &MicrobatchChange::step);
  if (due != options_.repeat.end() && due->samples != samples_) {
    samples_ = due->samples;
    note(step_);
  }
}

std::int64_t Microbatch::passes(std::int64_t samples) const { return passes_under(samples_, samples); }

std::int64_t Microbatch::passes_under(std::int64_t limit, std::int64_t samples) const {
  const std::int64_t most = limit > 0 ? limit : std::max<std::int64_t>(1, samples);
  const std::int64_t wanted = (samples + most - 1) / most;
  return std::max<std::int64_t>(1, std::min(wanted, samples / options_.smallest));
}

std::int64_t Microbatch::largest_pass(std::int64_t samples) const {
  const std::int64_t count = passes(samples);
  return (samples + count - 1) / count;
}

bool Microbatch::shrink(std::int64_t samples, bool from_next_step) {
  largest_batch_ = std::max(largest_batch_, samples);
  const std::int64_t before = samples_, count = passes(samples);
  samples_ = std::max<std::int64_t>(1, (largest_pass(samples) + 1) / 2);
  if (passes(samples) <= count) {
    samples_ = before;
    return false;
  }
  patience_ = growing_ ? std::min(2 * patience_, kMostPatience) : patience_;
  growing_ = false;
  note(step_ + (from_next_step ? 1 : 0));
  return true;
}

void Microbatch::follow(std::int64_t samples) {
  if (samples != samples_) {
    samples_ = samples;
    growing_ = false;
    note(step_);
  }
}

bool Microbatch::waits(std::int64_t steps) const {
  const bool smaller = samples_ > 0 && (options_.asked == 0 || samples_ < options_.asked);
  return !smaller || !options_.repeat.empty() || clean_ + steps < patience_;
}

bool Microbatch::may_grow() const { return !waits(0); }
bool Microbatch::may_grow_soon() const { return !waits(1); }

void Microbatch::grow() {
  samples_ *= 2;
  if (options_.asked > 0) {
    samples_ = std::min(samples_, options_.asked);
  } else if (samples_ >= largest_batch_) {
    samples_ = 0;
  }
  growing_ = true;
  note(step_);
}

// One entry per step, and none that changes nothing.
void Microbatch::note(std::int64_t step) {
  clean_ = 0;
  if (!changes_.empty() && changes_.back().step == step) {
    changes_.pop_back();
  }
  const std::int64_t before = changes_.empty() ? options_.asked : changes_.back().samples;
  if (before != samples_) {
    changes_.push_back({step, samples_});
  }
}

void Microbatch::save_state(core::State& state) const {
  const auto count = static_cast<std::int64_t>(changes_.size());
  const at::Tensor saved = at::empty({kHeader + 2 * count}, at::kLong);
  auto* to = saved.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t number : {samples_, clean_, patience_, std::int64_t{growing_}}) {
    *to++ = number;
  }
  for (const MicrobatchChange& each : changes_) {
    *to++ = each.step;
    *to++ = each.samples;
  }
  state.tensors[std::string(kState)] = saved;
}

void Microbatch::load_state(const core::State& state) {
  const auto found = state.tensors.find(std::string(kState));
  if (found == state.tensors.end()) {  // saved by Stoker 0.2
    return;
  }
  const at::Tensor& saved = found->second;
  if (saved.scalar_type() != at::kLong || saved.dim() != 1 || saved.numel() < kHeader || saved.numel() % 2 != 0) {
    fail<CheckpointError>("memory.microbatch", "\"{}\" is not a schedule of microbatches", kState);
  }
  const auto* from = saved.const_data_ptr<std::int64_t>();
  samples_ = from[0];
  clean_ = from[1];
  patience_ = from[2];
  growing_ = from[3] != 0;
  changes_.clear();
  for (std::int64_t i = kHeader; i < saved.numel(); i += 2) {
    changes_.push_back({from[i], from[i + 1]});
  }
}

}  // namespace stoker::memory
