// SPDX-License-Identifier: Apache-2.0
#include "stoker/resident/set.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::resident {
namespace {

constexpr std::int64_t kAtOnce = 4 << 20;  // bytes of images per read and copy

}  // namespace

ResidentSet::ResidentSet(const augment::ImageShape& shape, c10::Device device,
                         std::unique_ptr<device::CopyStream> stream)
    : shape_(shape), device_(device), gather_(find_gatherer(device.type())), stream_(std::move(stream)) {
  if (gather_ == nullptr) {
    fail<DeviceError>("resident.set", "{} cannot make batches of resident images; set resident=off or device=cpu",
                      device.str());
  }
  pixels_ = stream_ ? stream_->room(shape.bytes()) : at::empty({shape.bytes()}, at::kByte);
}

bool ResidentSet::fill(const augment::ResidentImages& images, const std::stop_token& stopping) {
  const std::int64_t bytes = shape_.image_bytes();
  const std::int64_t some = std::max<std::int64_t>(kAtOnce / bytes, 1);
  at::Tensor host;
  if (stream_) {
    host = stream_->host({std::min(some, shape_.images) * bytes}, at::kByte);
  }
  for (std::int64_t first = 0; first < shape_.images; first += some) {
    if (stopping.stop_requested()) {
      return false;
    }
    const std::int64_t count = std::min(some, shape_.images - first);
    const at::Tensor there = pixels_.narrow(0, first * bytes, count * bytes);
    const at::Tensor here = stream_ ? host.narrow(0, 0, count * bytes) : there;
    images.read(first, {here.mutable_data_ptr<std::uint8_t>(), static_cast<std::size_t>(count * bytes)});
    if (stream_) {
      stream_->copy(here, there);
      stream_->mark(/*timing=*/false)->wait();
    }
  }
  return true;
}

void ResidentSet::used_here() {
  if (stream_) {
    stream_->used_here(pixels_);
  }
}

at::Tensor ResidentSet::make_batch(const at::Tensor& windows) const {
  const std::int64_t rows = windows.size(0);
  at::Tensor out =
      at::empty({rows, shape_.height, shape_.width, shape_.channels}, at::TensorOptions(at::kByte).device(device_));
  const auto* drawn = static_cast<const augment::WindowDraw*>(windows.const_data_ptr());
  if (rows > 0) {
    gather_({.shape = shape_,
             .pixels = pixels_.const_data_ptr<std::uint8_t>(),
             .windows = drawn,
             .rows = rows,
             .out = out.mutable_data_ptr<std::uint8_t>()},
            device_);
  }
  return out;
}

}  // namespace stoker::resident
