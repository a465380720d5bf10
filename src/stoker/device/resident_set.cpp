// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/resident_set.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/device/backend.h"
#include "stoker/device/picture_gather.h"

namespace stoker::device {
namespace {

constexpr std::int64_t kAtOnce = 4 << 20;  // bytes of pictures read, then copied

}  // namespace

ResidentSet::ResidentSet(const augment::PictureShape& shape, c10::Device device, std::unique_ptr<CopyStream> stream)
    : shape_(shape), device_(device), stream_(std::move(stream)) {
  if (!backend_for(device).can_gather()) {
    fail<DeviceError>("device.resident", "this build has no kernel that makes batches on {}; build with nvcc on PATH",
                      device.str());
  }
  pixels_ = stream_ ? stream_->room(shape.bytes()) : at::empty({shape.bytes()}, at::kByte);
}

bool ResidentSet::fill(const augment::ResidentPictures& pictures, const std::stop_token& stopping) {
  const std::int64_t bytes = shape_.picture_bytes();
  const std::int64_t some = std::max<std::int64_t>(kAtOnce / bytes, 1);
  at::Tensor host;
  if (stream_) {
    host = stream_->host({std::min(some, shape_.pictures) * bytes}, at::kByte);
  }
  for (std::int64_t first = 0; first < shape_.pictures; first += some) {
    if (stopping.stop_requested()) {
      return false;
    }
    const std::int64_t count = std::min(some, shape_.pictures - first);
    const at::Tensor there = pixels_.narrow(0, first * bytes, count * bytes);
    const at::Tensor here = stream_ ? host.narrow(0, 0, count * bytes) : there;
    pictures.read(first, {here.mutable_data_ptr<std::uint8_t>(), static_cast<std::size_t>(count * bytes)});
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
    backend_for(device_).gather(
        {shape_, pixels_.const_data_ptr<std::uint8_t>(), drawn, rows, out.mutable_data_ptr<std::uint8_t>()}, device_);
  }
  return out;
}

}  // namespace stoker::device
