// SPDX-License-Identifier: Apache-2.0
// For the hash matrix: loaders with every augmentation, one per rank, and one line of text per global batch, with its
// position and the SHA-256 of its content. Used by the matrix and by the program that it kills, so that both do the
// same. For one thread.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "stoker/data/load/image_loader.h"
#include "support/sha256.h"

namespace stoker::testing {

// A way to produce the batches. It must not change them.
struct MatrixWay {
  int threads = 0, ranks = 1;
  bool plain = false;
};

inline data::ImageLoaderOptions matrix_options(const data::ImageSplit& split, const MatrixWay& way) {
  data::ImageLoaderOptions options;
  options.split = split;
  options.policy = {.crop = augment::Crop::kRandomResized, .out_width = 32, .out_height = 24, .flip = true};
  options.policy.alternate = true;
  options.policy.operations = {augment::Affine{.degrees = 20}, augment::ColourJitter{.brightness = 0.4, .hue = 0.1},
                               augment::Grey{}, augment::Blur{.kernel = 3}, augment::Erase{}};
  options.mix = {.mixup = 1, .cutmix = 1, .block = 3};
  options.batch = 24;
  options.seed = 5;
  options.bad.on_bad = data::OnBad::kReplace;
  options.threads = way.threads;
  options.depth = 1 + way.threads % 3;
  options.plain = way.plain;
  options.ranks = way.ranks;
  return options;
}

// The loaders of all ranks. Their slices are joined again.
class MatrixLoaders {
 public:
  // options: those of rank 0.
  MatrixLoaders(data::ImageLoaderOptions options, core::Position start) {
    options.start = start;
    for (; options.rank < options.ranks; ++options.rank) {
      loaders_.push_back(std::make_unique<data::ImageLoader>(options));
    }
  }

  // The position of the next batch.
  [[nodiscard]] core::Position position() const { return loaders_.front()->position(); }
  // "EPOCH STEP SHA-256" of the next global batch, with "end" for the hash at an epoch's end.
  [[nodiscard]] std::string next() {
    const core::Position at = position();
    std::vector<core::Batch> slices;
    for (const auto& loader : loaders_) {
      if (std::optional<core::Batch> slice = loader->next()) {
        slices.push_back(std::move(*slice));
      }
    }
    if (!slices.empty() && slices.size() != loaders_.size()) {
      throw std::logic_error("some ranks are at the end of their epoch, others are not");
    }
    return fmt::format("{} {} {}", at.epoch, at.step, slices.empty() ? "end" : hash(slices));
  }

 private:
  // Field by field; each field in the order of the ranks.
  static std::string hash(const std::vector<core::Batch>& slices) {
    Sha256 hash;
    for (const core::Field& field : slices.front().fields()) {
      hash.add({reinterpret_cast<const std::uint8_t*>(field.name.data()), field.name.size()});
      for (const core::Batch& slice : slices) {
        const at::Tensor values = slice[field.name].contiguous();
        hash.add({static_cast<const std::uint8_t*>(values.const_data_ptr()), values.nbytes()});
      }
    }
    for (const core::Batch& slice : slices) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(slice.indices().data());
      hash.add({bytes, slice.indices().size() * sizeof(std::int64_t)});
    }
    return hash.done();
  }

  std::vector<std::unique_ptr<data::ImageLoader>> loaders_;
};

// The position to resume from after these lines.
inline core::Position after(const std::vector<std::string>& lines) {
  core::Position at;
  if (!lines.empty()) {
    std::size_t used = 0;
    at.epoch = std::stoll(lines.back(), &used);
    at.step = std::stoll(lines.back().substr(used)) + 1;
    if (lines.back().ends_with(" end")) {
      at = {at.epoch + 1, 0};
    }
  }
  return at;
}

}  // namespace stoker::testing
