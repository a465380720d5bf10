// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/predict.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "stoker/base/bounded_queue.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/start_thread.h"
#include "stoker/core/guarded_memory.h"
#include "stoker/device/backend.h"
#include "stoker/device/prefetcher.h"
#include "stoker/precision/autocast.h"
#include "stoker/precision/process_switches.h"
#include "stoker/tasks/registry.h"

namespace stoker::job {
namespace {

// Reads on its own thread, one or two batches ahead of the model: decoding and computing overlap.
class ReadAhead final : public core::BatchSource {
 public:
  ReadAhead(tasks::UnlabelledSource& source, std::int64_t batch)
      : read_(2),
        thread_(start_thread("job.predict", "reads the files", [this, &source, batch] { run(source, batch); })) {}
  ~ReadAhead() override {
    read_.close();  // the thread ends after its current batch
  }

  std::optional<core::Batch> next() override {
    std::optional<Item> item = read_.pop();
    if (item && item->error) {
      error_ = item->error;
    }
    if (error_) {  // for good: files cannot be read again from the middle
      std::rethrow_exception(error_);
    }
    if (!item) {
      return std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    samples_.push_back(std::move(item->read->samples));
    return std::move(item->read->batch);
  }
  // Samples of the oldest batch from next() that were not requested yet. From any thread.
  std::vector<tasks::UnlabelledSample> samples() {
    const std::lock_guard lock(mutex_);
    std::vector<tasks::UnlabelledSample> oldest = std::move(samples_.front());
    samples_.pop_front();
    return oldest;
  }

 private:
  struct Item {
    std::optional<tasks::UnlabelledBatch> read;
    std::exception_ptr error;
  };
  void run(tasks::UnlabelledSource& source, std::int64_t batch) {
    for (bool more = true; more;) {
      Item item;
      try {
        item.read = source.next(batch);
      } catch (...) {
        item.error = std::current_exception();
      }
      const bool last = !item.read;
      more = (!last || item.error) && read_.push(std::move(item)) && !last;
    }
    read_.close();
  }

  BoundedQueue<Item> read_;
  std::exception_ptr error_;
  std::mutex mutex_;  // guards samples_
  std::deque<std::vector<tasks::UnlabelledSample>> samples_;
  std::jthread thread_;  // last: it uses the queue
};

// A batch whose answers are being copied from the device to the host.
struct PendingAnswers {
  std::vector<Prediction> predictions;
  tasks::Answers answers;  // float64 on the CPU, complete once arrived has finished
  std::unique_ptr<device::Event> arrived;
};

PendingAnswers ask(LoadedModel& loaded, const core::Batch& input, std::vector<tasks::UnlabelledSample> samples) {
  PendingAnswers asked{{}, loaded.model->answers(loaded.model->forward(loaded.model->inputs(input))), nullptr};
  if (!asked.answers.values.defined()) {
    fail<ConfigError>("job.predict", "{}: is a model for {}, which gives no predictions",
                      printable(loaded.checkpoint.native()), loaded.card.task);
  }
  const bool copied =
      !asked.answers.values.is_cpu();  // to page-locked memory, which must not be freed if the device is lost
  asked.answers.values = asked.answers.values.to(at::kCPU, at::kDouble, /*non_blocking=*/true);
  if (copied) {
    asked.answers.values = core::guarded(asked.answers.values);
  }
  asked.arrived = device::backend_for(loaded.device()).make_event(loaded.device(), /*timing=*/false);
  asked.arrived->record();
  for (tasks::UnlabelledSample& sample : samples) {
    asked.predictions.push_back({std::move(sample), {}, {}});
  }
  return asked;
}

void fill(std::vector<Prediction>& predictions, const tasks::Answers& answers, int top_k) {
  if (answers.classes.empty()) {
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      predictions[i].value = answers.values.const_data_ptr<double>()[i];
    }
    return;
  }
  const auto guesses = std::clamp<std::int64_t>(top_k, 1, static_cast<std::int64_t>(answers.classes.size()));
  const auto [values, ids] = at::topk(answers.values, guesses, 1);
  const auto value = values.accessor<double, 2>();
  const auto id = ids.accessor<std::int64_t, 2>();
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    for (std::int64_t k = 0; k < guesses && predictions[i].sample.error.empty(); ++k) {
      predictions[i].guesses.push_back({answers.classes[static_cast<std::size_t>(id[row][k])], value[row][k]});
    }
  }
}

}  // namespace

std::unique_ptr<tasks::UnlabelledSource> open_unlabelled(const LoadedModel& loaded,
                                                         const std::vector<std::filesystem::path>& paths) {
  const tasks::TaskKind& kind = tasks::task_kind(loaded.card.task);
  std::unique_ptr<tasks::UnlabelledSource> source;
  read_card(loaded.checkpoint, [&] { source = kind.open_unlabelled(loaded.info, paths); });
  if (!source) {
    fail<ConfigError>("job.predict", "{}: is a model for {}, which cannot predict from files",
                      printable(loaded.checkpoint.native()), kind.name());
  }
  return source;
}

void predict(LoadedModel& loaded, tasks::UnlabelledSource& source, int top_k, std::int64_t batch,
             const std::function<void(const Prediction&)>& take) {
  const at::NoGradGuard no_grad;
  loaded.model->set_training(false);
  const at::ScalarType dtype = precision::autocast_dtype(loaded.card.precision);
  const bool mixed = dtype != at::kFloat;
  const precision::AutocastGuard autocast(loaded.device().type(), mixed ? dtype : at::kBFloat16, mixed);
  const auto finish = [&](PendingAnswers& asked) {
    asked.arrived->wait();
    fill(asked.predictions, asked.answers, top_k);
    std::ranges::for_each(asked.predictions, take);
  };
  const precision::ProcessSwitches switches;
  at::set_num_threads(std::max(1, at::get_num_threads() - 1));  // one core for the reading thread
  auto reading = std::make_unique<ReadAhead>(source, batch);
  ReadAhead& read = *reading;
  const auto batches = device::prefetched(std::move(reading), loaded.device(), /*once=*/true);
  std::optional<PendingAnswers> before;  // the device computes the next batch while these answers are used
  const auto next = [&] {
    try {
      return batches->next();
    } catch (...) {  // batches before the failed samples are answered
      if (before) {
        finish(*before);
      }
      throw;
    }
  };
  while (const std::optional<core::Batch> input = next()) {
    PendingAnswers asked = ask(loaded, *input, read.samples());
    if (before) {
      finish(*before);
    }
    before = std::move(asked);
  }
  if (before) {
    finish(*before);
  }
}

}  // namespace stoker::job
