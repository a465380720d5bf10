// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/prefetcher.h"

#include <utility>

#include "stoker/base/start_thread.h"
#include "stoker/core/phase.h"

namespace stoker::device {

Prefetcher::Prefetcher(std::unique_ptr<core::BatchSource> inner, std::unique_ptr<CopyStream> stream, bool once)
    : inner_(std::move(inner)), stream_(std::move(stream)), once_(once), ready_(kAhead) {
  if (stream_) {
    thread_ = start_thread("device.prefetcher", "copies batches to the device", [this] { run(); });
  }
}

Prefetcher::~Prefetcher() {
  closing_ = true;
  ready_.close();
  go_on_.release();
  if (thread_.joinable()) {
    thread_.join();
  }
  try {
    if (!sources_.empty() && !sources_.back().copied) {  // some of its copies may have begun
      sources_.back().copied = stream_->mark(/*timing=*/true);
    }
    let_go(/*all=*/true);
  } catch (...) {  // the device is lost, and the step reports the same error
    leak();
  }
}

void Prefetcher::run() {
  while (true) {
    Item item;
    bool wait = false;
    try {
      item = prepare();
      wait = once_ && !item.batch;
    } catch (...) {
      item.error = std::current_exception();
      wait = true;
    }
    if (!ready_.push(std::move(item))) {
      return;
    }
    if (wait) {
      try {
        let_go(/*all=*/true);
      } catch (...) {  // NOLINT(bugprone-empty-catch): prepare() throws it again
      }
      go_on_.acquire();
    }
    if (closing_) {
      return;
    }
  }
}

// The next item. If this throws, only a DataError has consumed a batch: another batch stays the last source, without
// `copied`, and is copied by the next call.
Prefetcher::Item Prefetcher::prepare() {
  let_go(/*all=*/false);
  if (sources_.empty() || sources_.back().copied) {
    std::list<Source> one(1);  // before the batch is requested: without memory it would be lost
    std::optional<core::Batch> batch = inner_->next();
    if (!batch) {
      return {};
    }
    one.front().batch = std::move(*batch);
    sources_.splice(sources_.end(), one);
  }
  return copy(sources_.back());
}

Prefetcher::Item Prefetcher::copy(Source& source) {
  source.begun = stream_->mark(/*timing=*/true);
  core::Batch there(source.batch.position(), source.batch.indices());
  there.set_part(source.batch.first_row(), source.batch.global_size());
  for (const core::Field& field : source.batch.fields()) {
    there.set({field.name, stream_->copy(field.values), field.layout, field.offsets});
  }
  source.copied = stream_->mark(/*timing=*/true);
  return {std::move(there), nullptr, source.copied};
}

// Returns slots with finished copies to the loader; all: waits for all copies.
void Prefetcher::let_go(bool all) {
  while (!sources_.empty() && sources_.front().copied && (all || sources_.front().copied->ready())) {
    Source& oldest = sources_.front();
    oldest.copied->wait();
    const double seconds = oldest.copied->elapsed_ms(*oldest.begun) / 1e3;
    {
      const std::lock_guard lock(mutex_);
      copy_seconds_ += seconds;
    }
    sources_.pop_front();
  }
}

// Without events the end of the copies is unknown, so their memory is never freed.
void Prefetcher::leak() {
  static std::mutex mutex;
  static auto* const leaked = new std::list<Source>;  // marks the leak as intended for leak checkers
  const std::lock_guard lock(mutex);
  leaked->splice(leaked->end(), sources_);
}

std::optional<core::Batch> Prefetcher::next() {
  if (!stream_) {
    return inner_->next();
  }
  if (std::exchange(waits_, false)) {
    go_on_.release();
  }
  if (!item_) {
    item_ = ready_.pop();
  }
  if (item_->error) {
    waits_ = true;
    const std::exception_ptr error = std::exchange(item_, std::nullopt)->error;
    std::rethrow_exception(error);
  }
  if (item_->batch) {  // if these throw, the next call tries them again
    const core::PhaseScope phase(core::Phase::kCopy);
    stream_->await(*item_->copied);
    for (const core::Field& field : item_->batch->fields()) {
      stream_->used_here(field.values);
    }
  }
  waits_ = once_ && !item_->batch;
  return (*std::exchange(item_, std::nullopt)).batch;
}

std::optional<core::SourceFigures> Prefetcher::figures() const {
  std::optional<core::SourceFigures> figures = inner_->figures();
  if (stream_) {
    const std::lock_guard lock(mutex_);
    figures.emplace(figures.value_or(core::SourceFigures{})).copy_seconds += copy_seconds_;
  }
  return figures;
}

std::unique_ptr<core::BatchSource> prefetched(std::unique_ptr<core::BatchSource> inner, c10::Device device, bool once) {
  return std::make_unique<Prefetcher>(std::move(inner), backend_for(device).make_copy_stream(device), once);
}

}  // namespace stoker::device
