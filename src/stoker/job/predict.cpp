// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/predict.h"

#include <ATen/ops/zeros.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "stoker/augment/image_policy.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/image_decode.h"
#include "stoker/data/image_loader.h"
#include "stoker/device/placement.h"
#include "stoker/job/trials.h"
#include "stoker/precision/autocast.h"
#include "stoker/tasks/image_classification.h"
#include "stoker/train/evaluate.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kWhere = "job.predict";

c10::Device device_of(const tasks::ImageClassifier& model) { return model.parameters().front().tensor.device(); }

// The split with its labels in the model's numbering.
data::ImageSplit relabelled(data::ImageSplit split, const std::vector<std::string>& data_classes,
                            const std::vector<std::string>& model_classes) {
  std::vector<std::int64_t> ids;
  for (const std::string& name : data_classes) {
    const auto found = std::ranges::find(model_classes, name);
    if (found == model_classes.end()) {
      std::vector<std::string> known;
      for (const std::string& each : model_classes) {
        known.push_back(printable(each));
      }
      fail<DataError>(kWhere, "class \"{}\" is unknown to the model, which knows {}", printable(name), fmt::join(known, ", "));
    }
    ids.push_back(found - model_classes.begin());
  }
  for (std::int64_t& label : split.labels) {
    label = ids.at(static_cast<std::size_t>(label));
  }
  return split;
}

const data::ImageSplit& choose_split(const data::ImageFolder& folder, const std::string& split) {
  const data::ImageSplit& chosen = split == "test" ? folder.test : split == "val" ? folder.val : folder.train;
  if (chosen.size() == 0) {
    fail<DataError>(kWhere, "the data has no {} split; it has train {}, val {}, test {}", split, folder.train.size(),
                    folder.val.size(), folder.test.size());
  }
  return chosen;
}

bool is_picture_name(const fs::path& path) {
  std::string extension = path.extension().native();
  std::ranges::transform(extension, extension.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

}  // namespace

SplitReport evaluate_split(LoadedModel& loaded, const fs::path& data, const std::string& split, double val, std::uint64_t seed,
                           std::int64_t batch) {
  const data::ImageFolder folder = data::open_image_folder(data, {split == "all" ? 0 : val, seed});
  data::ImageLoaderOptions options;
  options.split = relabelled(choose_split(folder, split), folder.classes, loaded.card.classes);
  options.channels = loaded.card.pixels.channels;
  options.policy = tasks::evaluation_policy(loaded.card.pixels);
  options.batch = std::min(batch, options.split.size());
  options.shuffle = false;
  options.threads = 0;
  SplitReport report;
  report.split = split;
  report.samples = options.split.size();
  device::PlacedSource source(std::make_unique<data::ImageLoader>(std::move(options)), device_of(*loaded.model));
  const auto totals = train::evaluate(*loaded.model, source, autocast_dtype_of(loaded.card.precision));
  report.metrics = loaded.model->metrics(totals);
  report.classes = tasks::class_rows(totals, loaded.card.classes);
  return report;
}

std::vector<fs::path> find_pictures(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      std::vector<fs::path> found;
      for (fs::recursive_directory_iterator each(path, error), end; !error && each != end; each.increment(error)) {
        if (is_picture_name(each->path()) && each->is_regular_file(error)) {
          found.push_back(each->path());
        }
      }
      if (error) {
        fail<DataError>(kWhere, "{}: cannot be searched: {}", printable(path.native()), error.message());
      }
      std::ranges::sort(found);
      files.insert(files.end(), found.begin(), found.end());
    } else if (fs::exists(path, error)) {
      files.push_back(path);
    } else {
      fail<DataError>(kWhere, "{}: does not exist", printable(path.native()));
    }
  }
  if (files.empty()) {
    fail<DataError>(kWhere, "there is no picture (.jpg, .jpeg, .png) in what was given");
  }
  return files;
}

void predict_files(LoadedModel& loaded, const std::vector<fs::path>& files, int top_k, std::int64_t batch,
                   const std::function<void(const Prediction&)>& take) {
  const c10::InferenceMode inference;
  loaded.model->set_training(false);
  const auto classes = static_cast<std::int64_t>(loaded.card.classes.size());
  const std::int64_t guesses = std::clamp<std::int64_t>(top_k, 1, classes);
  const tasks::ImagePreprocessing& pixels = loaded.card.pixels;
  const augment::ImagePolicy policy = tasks::evaluation_policy(pixels);
  const at::ScalarType dtype = autocast_dtype_of(loaded.card.precision);
  const c10::Device device = device_of(*loaded.model);
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
        results[i].guesses.push_back({loaded.card.classes.at(static_cast<std::size_t>(ids.accessor<std::int64_t, 2>()[row][k])),
                                      values.accessor<float, 2>()[row][k]});
      }
      take(results[i]);
    }
  }
}

}  // namespace stoker::job
