// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <utility>

#include "stoker/augment/image_policy.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/decode/jpeg_encode.h"
#include "stoker/study/tips/step_way.h"
#include "stoker/study/tips/tip_rows.h"

namespace stoker::study {
namespace {

constexpr int kFiles = 32, kWidth = 500, kHeight = 375, kQuality = 90;  // of the different files
constexpr int kNoise = 48;                                              // grey levels
constexpr int kSide = 32;                                               // of what the model sees

// Waves and noise, with about as many bytes per pixel as photographs.
std::vector<std::vector<std::byte>> made_up_jpegs() {
  std::vector<std::vector<std::byte>> files;
  files.reserve(kFiles);
  augment::Image image;
  image.reshape(kWidth, kHeight, 3);
  for (int number = 0; number < kFiles; ++number) {
    std::uint8_t* out = image.pixels.data();
    for (std::uint32_t i = 0; i < std::uint32_t{kWidth} * kHeight * 3; ++i) {
      const int x = static_cast<int>(i / 3) % kWidth, y = static_cast<int>(i / 3) / kWidth;
      const int wave = (x * (number % 7 + 1) + y * (number % 5 + 1)) / 8 % 200;
      *out++ = static_cast<std::uint8_t>(wave + static_cast<int>((i * 2654435761U) >> 24) % kNoise);
    }
    files.push_back(data::encode_jpeg(image.view(), kQuality));
  }
  return files;
}

struct DecodeHabits {
  data::JpegPath path = data::JpegPath::kFastest;
  bool whole = false;  // decodes pixels outside the crop, too
};

// Makes batches of random crops on the calling thread.
class Decoding {
 public:
  Decoding(std::int64_t batch, const DecodeHabits& habits) : batch_(batch), habits_(habits), decoder_(habits.path) {}

  core::Batch next() {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(batch_));
    at::Tensor images = at::empty({batch_, kSide, kSide, 3}, at::kByte), labels = at::empty({batch_}, at::kLong);
    constexpr std::size_t kBytes = std::size_t{kSide} * kSide * 3;
    for (std::size_t i = 0; i < indices.size(); ++i, ++number_) {
      indices[i] = number_ % kFiles;
      labels.mutable_data_ptr<std::int64_t>()[i] = number_ % 2;
      decode(indices[i], {images.mutable_data_ptr<std::uint8_t>() + i * kBytes, kBytes});
    }
    core::Batch batch({}, std::move(indices));
    batch.set("image", std::move(images));
    batch.set("target", std::move(labels));
    return batch;
  }

 private:
  void decode(std::int64_t index, std::span<std::uint8_t> row) {
    const std::vector<std::byte>& file = files_[static_cast<std::size_t>(index)];
    const auto [width, height] = decoder_.open(file, 3, {}, "synthetic.jpg");
    const augment::DrawKey key{1, static_cast<std::uint32_t>(number_ / kFiles), static_cast<std::uint64_t>(index)};
    const augment::ImageDraw drawn = augment::draw(policy_, width, height, key);
    const augment::Region region =
        habits_.whole ? augment::Region{0, 0, width, height} : augment::needed(policy_, drawn);
    augment::crop(policy_, drawn, decoder_.decode(region, "synthetic.jpg"), row, scratch_);
  }

  const std::vector<std::vector<std::byte>> files_ = made_up_jpegs();
  const augment::ImagePolicy policy_{
      .crop = augment::Crop::kRandomResized, .out_width = kSide, .out_height = kSide, .flip = true};
  std::int64_t batch_;
  DecodeHabits habits_;
  data::ImageDecoder decoder_;
  augment::ResizeScratch scratch_;
  std::int64_t number_ = 0;  // of the next image
};

// A step on a batch that the same thread decodes before.
Way decoding_way(const TipCase& tip_case, const DecodeHabits& habits) {
  const StepOnBatches engine = engine_step(tip_case);
  const std::int64_t batch = tip_case.batch > 0 ? tip_case.batch : bench_model(tip_case.model).batch;
  Way way;
  way.side.call = [decoding = std::make_shared<Decoding>(batch, habits), step = engine.step] {
    step(decoding->next());
  };
  way.side.finish = wait_for(tip_case.device);
  way.outcome = engine.outcome;
  return way;
}

Tip about_decoding(std::string id, std::string title, std::string without, std::string with,
                   const DecodeHabits& habits) {
  return {.id = std::move(id),
          .title = std::move(title),
          .without = std::move(without),
          .with = std::move(with),
          .models = {"cnn"},
          .make = [habits](const TipCase& tip_case, bool on) {
            return decoding_way(tip_case, on ? DecodeHabits{} : habits);
          }};
}

}  // namespace

Tip jpeg_crop() {
  return about_decoding("jpeg-crop", "JPEGs of 500 x 375 decoded only where a crop needs them", "whole images",
                        "the crop", {.whole = true});
}

Tip jpeg_path() {
  return about_decoding("jpeg-path", "crops of JPEGs of 500 x 375 by a decoder of our own", "libjpeg-turbo", "Stoker's",
                        {.path = data::JpegPath::kLibrary});
}

}  // namespace stoker::study
