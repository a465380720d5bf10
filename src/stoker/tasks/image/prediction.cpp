// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/image/prediction.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "stoker/augment/image_policy.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/folder/folder_scan.h"
#include "stoker/tasks/image/card.h"
#include "stoker/tasks/image/preprocessing.h"

namespace stoker::tasks {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "tasks.image";

class UnlabelledImages final : public UnlabelledSource {
 public:
  UnlabelledImages(const ImagePreprocessing& pixels, const std::vector<fs::path>& paths)
      : pixels_(pixels), policy_(evaluation_policy(pixels)) {
    for (const fs::path& path : paths) {
      find(path);
    }
    if (files_.empty()) {
      fail<DataError>(kWhere, "the given paths contain no image (.jpg, .jpeg, .jpe, .jfif, .png, .webp, .npy)");
    }
  }

  [[nodiscard]] const std::vector<std::string>& findings() const override { return findings_; }

  [[nodiscard]] std::optional<UnlabelledBatch> next(std::int64_t samples) override {
    const auto count = std::min(static_cast<std::size_t>(samples), files_.size() - first_);
    if (count == 0) {
      return std::nullopt;
    }
    const std::int64_t row_bytes = std::int64_t{pixels_.image_size} * pixels_.image_size * pixels_.channels;
    const at::Tensor images = at::zeros(
        {static_cast<std::int64_t>(count), pixels_.image_size, pixels_.image_size, pixels_.channels}, at::kByte);
    auto* out = images.mutable_data_ptr<std::uint8_t>();
    UnlabelledBatch result{core::Batch({}, std::vector<std::int64_t>(count, 0)), {}};
    for (std::size_t i = 0; i < count; ++i) {
      const fs::path& file = files_[first_ + i];
      result.samples.push_back({file, 0, ""});
      try {
        read(file, {out + static_cast<std::int64_t>(i) * row_bytes, static_cast<std::size_t>(row_bytes)});
      } catch (const DataError& error) {
        result.samples.back().error = error.what();
      }
    }
    result.batch.set("image", images);
    first_ += count;
    return result;
  }

 private:
  void find(const fs::path& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      const data::FolderScan scan = data::scan_folder(path, {});
      for (const data::ScannedFile& image : scan.images) {
        files_.push_back(path / image.path);
      }
      data::describe_passed_over(scan, findings_);
    } else if (fs::exists(path, error)) {
      files_.push_back(path);
    } else {
      fail<DataError>(kWhere, "{}: does not exist", printable(path.native()));
    }
  }

  void read(const fs::path& file, std::span<std::uint8_t> out) {
    read_file(file, bytes_);
    data::decode_image(bytes_, pixels_.channels, {}, image_, printable(file.native()));
    const augment::ImageDraw drawn = augment::draw(policy_, image_.width, image_.height, {});
    augment::execute(policy_, drawn, image_.view(), out, scratch_);
  }

  ImagePreprocessing pixels_;
  augment::ImagePolicy policy_;
  std::vector<fs::path> files_;
  std::vector<std::string> findings_;
  std::size_t first_ = 0;  // of the next batch
  std::vector<std::byte> bytes_;
  augment::Image image_;
  augment::ResizeScratch scratch_;
};

}  // namespace

std::unique_ptr<UnlabelledSource> unlabelled_images(const nlohmann::json& card, const std::vector<fs::path>& paths) {
  return std::make_unique<UnlabelledImages>(image_card(card).pixels, paths);
}

}  // namespace stoker::tasks
