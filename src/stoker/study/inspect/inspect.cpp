// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/inspect.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/data/folder/cache_folder.h"
#include "stoker/data/load/bad_samples.h"
#include "stoker/data/load/row_index.h"
#include "stoker/device/cpu_quota.h"

namespace stoker::study {
namespace {

constexpr std::string_view kWhere = "study.inspect";

// The images to inspect, from all splits.
std::vector<InspectedImage> choose(const Inspection& found, std::int64_t most) {
  std::vector<InspectedImage> chosen;
  const std::int64_t count = most == 0 ? found.total : std::min(most, found.total);
  chosen.reserve(static_cast<std::size_t>(count));
  std::int64_t before = 0;
  int split = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = i * found.total / count;
    while (place - before >= found.split(split).size()) {
      before += found.split(split++).size();
    }
    const data::ImageSplit& from = found.split(split);
    const auto position = static_cast<std::size_t>(place - before);
    chosen.push_back(
        {.split = split, .index = from.samples[position], .label = from.labels[position], .bytes = 0, .facts = {}});
  }
  return chosen;
}

// Threads that inspect the chosen images; the calling thread waits and reports progress.
class Crew {
 public:
  Crew(Inspection& found, const InspectOptions& options)
      : found_(found),
        options_(options),
        looked_(found.images.size(), 0),
        rows_(*found.folder.train.source, {.cache = data::cache_folder()}) {}

  void work() {
    const Stopwatch watch;
    {
      std::vector<std::jthread> threads;
      try {
        for (int i = 0; i < found_.threads; ++i) {
          threads.emplace_back([this] { look_at_some(); });
        }
      } catch (const std::system_error&) {
        found_.threads = static_cast<int>(threads.size());  // as many as the system could start
        if (threads.empty()) {
          throw;
        }
      }
      std::unique_lock lock(mutex_);
      while (!ended_.wait_for(lock, std::chrono::milliseconds(200), [this] { return idle_ == found_.threads; })) {
        tell(watch.seconds());
      }
    }
    if (error_) {
      std::rethrow_exception(error_);
    }
    forget_the_rest();
  }

 private:
  void look_at_some() {
    ImageLooker looker;
    PixelSums sums;
    std::vector<std::byte> bytes;
    try {
      for (std::size_t place = next_++; place < looked_.size() && !stopped_; place = next_++) {
        look_at(place, looker, sums, bytes);
        looked_[place] = 1;
        ++done_;
        if (options_.stop && options_.stop()) {
          stopped_ = true;
        }
      }
    } catch (...) {
      stopped_ = true;
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    found_.sums.add(sums);
    ++idle_;
    ended_.notify_one();
  }

  void look_at(std::size_t place, ImageLooker& looker, PixelSums& sums, std::vector<std::byte>& bytes) {
    InspectedImage& image = found_.images[place];
    const data::ByteSource& source = *found_.split(image.split).source;
    const std::string name = source.name(image.index);
    try {
      source.read(image.index, bytes);
      image.bytes = static_cast<std::int64_t>(bytes.size());
      image.facts = looker.look(bytes, name, sums, image.split == 0 ? &rows_ : nullptr);
    } catch (const DataError& error) {
      const std::lock_guard lock(mutex_);
      found_.bad.emplace(place, data::without_name(error.what(), name));
    }
  }

  void tell(double seconds) const {
    const std::int64_t done = done_, of = static_cast<std::int64_t>(looked_.size());
    if (options_.progress && done > 0) {
      const double rate = static_cast<double>(done) / seconds;
      options_.progress(
          {.files = 0, .looked = done, .of = of, .rate = rate, .seconds_left = static_cast<double>(of - done) / rate});
    }
  }

  // After a stop: removes images that were not inspected and adjusts the places in bad.
  void forget_the_rest() {
    found_.stopped = done_ < static_cast<std::int64_t>(looked_.size());
    std::map<std::size_t, std::string> bad;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < looked_.size(); ++i) {
      if (looked_[i] != 0) {
        if (const auto reason = found_.bad.find(i); reason != found_.bad.end()) {
          bad.emplace(kept, std::move(reason->second));
        }
        found_.images[kept++] = found_.images[i];
      }
    }
    found_.images.resize(kept);
    found_.bad = std::move(bad);
  }

  Inspection& found_;
  const InspectOptions& options_;
  std::vector<char> looked_;  // each written by one thread only
  data::RowIndex rows_;       // of train, for later trainings
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::int64_t> done_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;  // guards the following, found_.bad and found_.sums
  std::condition_variable ended_;
  int idle_ = 0;
  std::exception_ptr error_;
};

void compare(Inspection& found) {
  std::vector<const ImageLook*> facts;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < found.images.size(); ++i) {
    if (!found.bad.contains(i) && !found.images[i].facts.plain) {
      facts.push_back(&found.images[i].facts);
      places.push_back(i);
    }
  }
  found.same = same_images(facts);
  Alikes alikes = alike_images(facts);
  found.alike = std::move(alikes.groups);
  found.all_compared = alikes.complete;
  for (std::vector<ImageGroup>* groups : {&found.same, &found.alike}) {
    for (ImageGroup& group : *groups) {
      std::ranges::transform(group, group.begin(), [&](std::size_t i) { return places[i]; });
    }
  }
}

}  // namespace

Inspection inspect_images(const std::filesystem::path& path, const InspectOptions& options) {
  if (options.images < 0 || options.threads < 0) {
    fail<ConfigError>(kWhere, "images and threads must not be negative, got {} and {}", options.images,
                      options.threads);
  }
  const Stopwatch watch;
  Inspection found;
  found.path = path;
  const auto scanned = [&](std::int64_t files) {
    if (options.progress) {
      options.progress({.files = files});
    }
  };
  found.folder = data::open_image_folder(path, {.val = 0, .seed = 0, .for_training = false}, scanned);
  found.total = found.folder.train.size() + found.folder.val.size() + found.folder.test.size();
  found.images = choose(found, options.images);
  const auto most = static_cast<int>(std::min<std::size_t>(found.images.size(), 1024));
  found.threads = std::min(options.threads > 0 ? options.threads : device::cpu_quota().cores, std::max(most, 1));
  Crew(found, options).work();
  compare(found);
  found.seconds = watch.seconds();
  return found;
}

}  // namespace stoker::study
