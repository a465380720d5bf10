// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/predict.h"

#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "stoker/augment/image_policy.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/folder_scan.h"
#include "stoker/data/image_decode.h"
#include "stoker/precision/autocast.h"
#include "stoker/tasks/image_classification.h"
#include "stoker/tasks/image_task.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job.predict";

}  // namespace

FoundPictures find_pictures(const std::vector<fs::path>& paths) {
  FoundPictures found;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      const data::FolderScan scan = data::scan_folder(path, {});
      for (const data::ScannedFile& picture : scan.pictures) {
        found.files.push_back(path / picture.path);
      }
      data::describe_passed_over(scan, found.findings);
    } else if (fs::exists(path, error)) {
      found.files.push_back(path);
    } else {
      fail<DataError>(kWhere, "{}: does not exist", printable(path.native()));
    }
  }
  if (found.files.empty()) {
    fail<DataError>(kWhere, "there is no picture (.jpg, .jpeg, .jpe, .jfif, .png) in what was given");
  }
  return found;
}

void predict_files(LoadedModel& loaded, const std::vector<fs::path>& files, int top_k, std::int64_t batch,
                   const std::function<void(const Prediction&)>& take) {
  if (loaded.card.task != "image_classification") {
    fail<ConfigError>(kWhere, "{}: is a model for {}, which has no predictions of pictures",
                      printable(loaded.checkpoint.native()), loaded.card.task);
  }
  const c10::InferenceMode inference;
  loaded.model->set_training(false);
  tasks::ImageCard card;
  read_card(loaded.checkpoint, [&] { card = tasks::image_card(loaded.info); });
  const auto classes = static_cast<std::int64_t>(card.classes.size());
  const std::int64_t guesses = std::clamp<std::int64_t>(top_k, 1, classes);
  const tasks::ImagePreprocessing& pixels = card.pixels;
  const augment::ImagePolicy policy = tasks::evaluation_policy(pixels);
  const at::ScalarType dtype = precision::autocast_dtype(loaded.card.precision);
  const c10::Device device = loaded.device();
  const std::int64_t row_bytes = std::int64_t{pixels.image_size} * pixels.image_size * pixels.channels;

  std::vector<std::byte> bytes;
  augment::Image image;
  augment::ResizeScratch scratch;
  for (std::size_t first = 0; first < files.size(); first += static_cast<std::size_t>(batch)) {
    const std::size_t count = std::min(files.size() - first, static_cast<std::size_t>(batch));
    const auto rows = static_cast<std::int64_t>(count);
    const at::Tensor images = at::zeros({rows, pixels.image_size, pixels.image_size, pixels.channels}, at::kByte);
    std::vector<Prediction> results(count);
    for (std::size_t i = 0; i < count; ++i) {
      results[i].file = files[first + i];
      try {
        read_file(files[first + i], bytes);
        data::decode_image(bytes, pixels.channels, {}, image, printable(files[first + i].native()));
        const augment::ImageDraw drawn = augment::draw(policy, image.width, image.height, {});
        augment::execute(policy, drawn, image.view(),
                         {images.mutable_data_ptr<std::uint8_t>() + static_cast<std::int64_t>(i) * row_bytes,
                          static_cast<std::size_t>(row_bytes)},
                         scratch);
      } catch (const DataError& error) {
        results[i].error = error.what();
      }
    }
    core::Batch input({}, std::vector<std::int64_t>(count, 0));
    input.set("image", images.to(device));
    at::Tensor logits;
    {
      const bool mixed = dtype != at::kFloat;
      const precision::AutocastGuard autocast(device.type(), mixed ? dtype : at::kBFloat16, mixed);
      logits = loaded.model->forward(loaded.model->inputs(input)).front();
    }
    const auto [values, ids] = at::topk(at::softmax(logits.to(at::kFloat), 1).cpu(), guesses, 1);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::int64_t k = 0; k < guesses && results[i].error.empty(); ++k) {
        const auto row = static_cast<std::int64_t>(i);
        results[i].guesses.push_back(
            {card.classes.at(static_cast<std::size_t>(ids.accessor<std::int64_t, 2>()[row][k])),
             values.accessor<float, 2>()[row][k]});
      }
      take(results[i]);
    }
  }
}

}  // namespace stoker::job
