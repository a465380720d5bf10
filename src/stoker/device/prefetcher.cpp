// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/prefetcher.h"

#include <utility>

namespace stoker::device {

Prefetcher::Prefetcher(std::unique_ptr<core::BatchSource> inner, std::unique_ptr<CopyStream> stream, bool once)
    : inner_(std::move(inner)), stream_(std::move(stream)), once_(once), ready_(kAhead) {
  if (stream_) {
    thread_ = std::jthread([this] { run(); });
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
    let_go(/*all=*/true);
  } catch (...) {  // the device is lost, and the step reports the same error
    leak();
  }
}

void Prefetcher::run() {
  bool ended = false;
  for (bool more = true; more;) {
    Item item;
    try {
      if (once_ && ended) {
        let_go(/*all=*/true);
        go_on_.acquire();
        if (closing_) {
          return;
        }
      }
      let_go(/*all=*/false);
      if (std::optional<core::Batch> batch = inner_->next()) {
        item = copy(std::move(*batch));
      }
    } catch (...) {
      item.error = std::current_exception();
    }
    ended = !item.batch && !item.error;
    more = ready_.push(std::move(item));
  }
  ready_.close();
}

Prefetcher::Item Prefetcher::copy(core::Batch batch) {
  const std::shared_ptr<Event> begun = stream_->mark(/*timing=*/true);
  Source& source = sources_.emplace_back(Source{std::move(batch), begun, begun});
  core::Batch there(source.batch.position(), source.batch.indices());
  there.set_part(source.batch.first_row(), source.batch.global_size());
  try {
    for (const core::Field& field : source.batch.fields()) {
      there.set({field.name, stream_->copy(field.values), field.layout, field.offsets});
    }
  } catch (...) {  // no memory for a field: copies of other fields still read the batch
    source.copied = stream_->mark(/*timing=*/true);
    throw;
  }
  source.copied = stream_->mark(/*timing=*/true);
  return {std::move(there), nullptr, source.copied};
}

// Returns slots with finished copies to the loader; all: waits for all copies.
void Prefetcher::let_go(bool all) {
  while (!sources_.empty() && (all || sources_.front().copied->ready())) {
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
  if (std::exchange(ended_, false) && once_) {
    go_on_.release();
  }
  std::optional<Item> item = ready_.pop();
  if (item->error) {
    std::rethrow_exception(item->error);
  }
  if (!item->batch) {
    ended_ = true;
    return std::nullopt;
  }
  stream_->await(*item->copied);
  for (const core::Field& field : item->batch->fields()) {
    stream_->used_here(field.values);
  }
  return std::move(item->batch);
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
