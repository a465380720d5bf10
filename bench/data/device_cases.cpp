// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <cstring>
#include <string>

#include "measure_cases.h"
#include "stoker/data/load/image_loader_resident.h"
#include "stoker/device/backend.h"
#include "stoker/resident/source.h"
#include "stoker/study/paired.h"

namespace stoker::bench {
namespace {

constexpr std::int64_t kBatchBytes = std::int64_t{256} * 224 * 224 * 3;

// Why this machine cannot measure; empty if it can.
std::string without_device() {
  return device::find_backend(c10::kCUDA) != nullptr ? std::string() : "no CUDA: " + device::missing_reason(c10::kCUDA);
}

// CIFAR-10's training images, kept decoded; padded, cropped and mirrored.
data::ImageLoaderOptions cifar10(const Words& words) {
  data::ImageLoaderOptions options;
  options.split = data::open_image_folder(words.text("data"), {.val = 0}).train;
  options.policy = {.crop = augment::Crop::kPad, .out_width = 32, .out_height = 32, .flip = true};
  options.batch = 512;
  options.drop_tail = true;
  options.threads = 0;
  options.depth = 1;
  options.store = std::make_shared<data::PixelStore>(options.split.source->size(), std::int64_t{1} << 30);
  return options;
}

// Takes 64 batches, waits for the device, and returns the number of their samples.
std::int64_t batches(core::BatchSource& source, c10::Device device) {
  std::int64_t samples = 0;
  for (int i = 0; i < 64; ++i) {
    const std::optional<core::Batch> batch = source.next();
    samples += batch ? batch->size() : 0;
  }
  device::backend_for(device).synchronize(device);
  return samples;
}

}  // namespace

// GB/s of copying a batch from page-locked memory to the device, and from memory to memory on one thread.
Json copies(const Words& words) {
  if (const std::string why = without_device(); !why.empty()) {
    return {{"skipped", why}};
  }
  const c10::Device device(c10::kCUDA, 0);
  const at::Tensor pinned = at::empty({kBatchBytes}, at::TensorOptions(at::kByte).pinned_memory(true));
  pinned.fill_(1);
  const at::Tensor there = at::empty({kBatchBytes}, at::TensorOptions(at::kByte).device(device));
  const at::Tensor from = at::empty({kBatchBytes}, at::kByte).fill_(1),
                   to = at::empty({kBatchBytes}, at::kByte).fill_(0);
  study::PairingOptions options;
  options.seconds = words.seconds();
  const study::Paired paired = study::time_in_turns(
      {[&] { there.copy_(pinned, /*non_blocking=*/true); }, [&] { device::backend_for(device).synchronize(device); }},
      {[&] { std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), static_cast<std::size_t>(kBatchBytes)); }},
      options);
  return {{"gb_per_second", 1e-9 * kBatchBytes / paired.first_seconds},
          {"memcpy_gb_per_second", 1e-9 * kBatchBytes / paired.second_seconds}};
}

// Crops, mirrors and normalises whole batches; their draws are on the device already, as after a chunk has arrived.
// "source_per_second" is the rate of ResidentSource, including its thread's draws.
Json resident(const Words& words) {
  if (const std::string why = without_device(); !why.empty()) {
    return {{"skipped", why}};
  }
  const c10::Device device(c10::kCUDA, 0);
  const device::Backend& backend = device::backend_for(device);
  data::ImageLoaderOptions options = cifar10(words);
  const auto small = std::make_shared<data::ResidentSplit>(options);
  resident::ResidentSource source(nullptr, small, device, {});
  options.batch = words.number("batch", 16'384);
  const data::ResidentSplit images(options);
  resident::ResidentSet set(images.shape(), device, backend.make_copy_stream(device));
  (void)set.fill(images, {});
  set.used_here();
  std::vector<at::Tensor> windows;
  for (std::int64_t step = 0; step < images.steps_per_epoch(); ++step) {
    augment::WindowRows rows;
    images.add_rows(0, step, rows);
    const auto count = static_cast<std::int64_t>(rows.windows.size());
    windows.push_back(at::from_blob(rows.windows.data(), {count, augment::WindowDraw::kWords}, at::kInt).to(device));
  }
  const at::Tensor shift = at::full({1, 3, 1, 1}, 120.0, at::device(device));
  const at::Tensor scale = at::full({1, 3, 1, 1}, 1 / 63.0, at::device(device));
  const auto epoch = [&](bool normalise) {  // as tasks::ImageClassifier normalises
    for (const at::Tensor& each : windows) {
      const at::Tensor image = set.make_batch(each);
      if (normalise) {
        image.permute({0, 3, 1, 2}).to(at::kFloat).sub_(shift).mul_(scale);
      }
    }
    backend.synchronize(device);
    return options.batch * static_cast<std::int64_t>(windows.size());
  };
  (void)rate_of(0.5, [&] { return epoch(true); });
  Json json = rate_of(words.seconds(), [&] { return epoch(true); });
  json["crop_flip_per_second"] = rate_of(words.seconds(), [&] { return epoch(false); })["per_second"];
  json["source_per_second"] = rate_of(words.seconds(), [&] { return batches(source, device); })["per_second"];
  return json;
}

// The CPU twin of the above, and ImageLoader with the same images in memory, both on the caller's thread.
Json twin(const Words& words) {
  at::set_num_threads(1);
  const c10::Device cpu(c10::kCPU);
  const data::ImageLoaderOptions options = cifar10(words);
  data::ImageLoader loader(options);
  while (loader.next()) {  // the first epoch decodes
  }
  resident::ResidentSource source(nullptr, std::make_shared<data::ResidentSplit>(options), cpu, {});
  (void)rate_of(0.1, [&] { return batches(loader, cpu); });
  const Json ram = rate_of(words.seconds(), [&] { return batches(loader, cpu); });
  Json json = rate_of(words.seconds(), [&] { return batches(source, cpu); });
  json["ram_per_cpu_second"] = ram["per_cpu_second"];
  const data::ResidentSplit images(options);
  json["draws_per_cpu_second"] = rate_of(words.seconds(), [&] {
    augment::WindowRows rows;
    for (std::int64_t step = 0; step < images.steps_per_epoch(); ++step) {
      images.add_rows(0, step, rows);
    }
    return static_cast<std::int64_t>(rows.indices.size());
  })["per_cpu_second"];
  return json;
}

}  // namespace stoker::bench
