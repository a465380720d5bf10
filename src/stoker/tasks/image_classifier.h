// SPDX-License-Identifier: Apache-2.0
// A network, a cross-entropy loss and the preprocessing of pictures, as a Trainable. Made by
// tasks/image_classification; used by training, eval, predict. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/core/trainable.h"
#include "stoker/models/network.h"

namespace stoker::tasks {

// What turns uint8 pixels into the network's input: x / 255, less mean, by std, per channel. Saved with every
// checkpoint, so that predictions see what training saw.
struct ImagePreprocessing {
  int channels = 3;
  int image_size = 224;           // pixels a side that enter the network
  int resize = 256;               // short side before the centre crop of evaluation
  std::vector<double> mean, std;  // one a channel, of values in 0 ... 1
};

struct ClassifierOptions {
  ImagePreprocessing preprocessing;
  bool channels_last = true;
  double label_smoothing = 0;
  at::Tensor class_weights;  // float [classes], or undefined
};

class ImageClassifier final : public core::Trainable {
 public:
  ImageClassifier(std::unique_ptr<models::Network> network, ClassifierOptions options);

  [[nodiscard]] models::Network& network() { return *network_; }
  // Moves everything, the loss's constants included.
  void to(c10::Device device);

  [[nodiscard]] const std::vector<core::Parameter>& parameters() const override;
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const override;
  [[nodiscard]] core::TensorList norm_buffers() const override;

  // "image" uint8 [B, H, W, C] to float32 [B, C, H, W]: a view of the same memory order where channels_last is on.
  [[nodiscard]] core::TensorList inputs(const core::Batch& batch) const override;
  [[nodiscard]] int segments() const override;
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) override;

  // One term, "cross_entropy", on "target" int64 [B].
  [[nodiscard]] std::vector<std::string> loss_names() const override { return {"cross_entropy"}; }
  [[nodiscard]] core::Normalisers normalisers(const core::Batch& batch) const override;
  [[nodiscard]] core::LossTerms loss(const core::TensorList& outputs, const core::Batch& batch) const override;

  [[nodiscard]] std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs,
                                                        const core::Batch& batch) const override;
  [[nodiscard]] std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override;
  void set_training(bool on) override;

 private:
  std::unique_ptr<models::Network> network_;
  ClassifierOptions options_;
  at::Tensor shift_, scale_;  // float [1, C, 1, 1]: (x - shift) * scale on 0 ... 255
};

}  // namespace stoker::tasks
