// SPDX-License-Identifier: Apache-2.0
// A network, a cross-entropy loss and the preprocessing of images, as a Trainable. Made by the image task; used for
// training, eval and predict. Programs with their own loss or metrics derive from it and move the task's model into
// theirs (derived_task.h). One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/augment/resize.h"
#include "stoker/tasks/network_trainable.h"

namespace stoker::tasks {

// Converts uint8 pixels into the network's input: (x / 255 - mean) / std, per channel. Saved with every checkpoint, so
// that predictions use the same preprocessing as training.
struct ImagePreprocessing {
  int channels = 3;
  int image_size = 224;           // pixels per side of the network's input
  int resize = 256;               // short side before the centre crop of evaluation
  std::vector<double> mean, std;  // one per channel, of values in 0 ... 1
  augment::Interpolation interpolation = augment::Interpolation::kBilinear;
};

struct ClassifierOptions {
  ImagePreprocessing preprocessing;
  bool channels_last = true;
  double label_smoothing = 0;
  at::Tensor class_weights;          // float [classes], or undefined
  std::vector<std::string> classes;  // names, for tables() and answers(); may be empty
};

class ImageClassifier : public NetworkTrainable {
 public:
  ImageClassifier(std::unique_ptr<models::Network> network, ClassifierOptions options);

  void to(c10::Device device) override;
  bool set_channels_last(bool on) override;

  // "image" uint8 [B, H, W, C] to float32 [B, C, H, W]: a view in the same memory order if channels_last is on.
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override;

  // One term, "cross_entropy", on "target" int64 [B].
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"cross_entropy"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override;
  [[nodiscard]] bool counts_samples() const override { return !options_.class_weights.defined(); }
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override;

  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs,
                                                        const core::Batch& batch) const override;
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override;
  // [B, 3]: target, prediction, its probability.
  [[nodiscard]] at::Tensor verdicts(const core::TensorList& outputs, const core::Batch& batch) const override;
  [[nodiscard]] Answers answers(const core::TensorList& outputs) const override;
  // "classes": one row per class.
  [[nodiscard]] std::vector<Table> tables(const std::vector<core::NamedTensor>& totals) const override;

 private:
  ClassifierOptions options_;
  at::Tensor shift_, scale_;  // float [1, C, 1, 1]: (x - shift) * scale on 0 ... 255
};

}  // namespace stoker::tasks
