// SPDX-License-Identifier: Apache-2.0
// A network without a loss: parameters, buffers, and a chain of segments that maps a list of tensors to a list. Tasks
// wrap one into a Trainable. Made by make_network (registry.h) or by a NetworkBuilder. One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "stoker/core/trainable.h"
#include "stoker/models/layers.h"

namespace stoker::models {

using SegmentForward = std::function<core::TensorList(core::TensorList)>;

// A part of a segment: lists of tensors in, lists out, as segments.
struct InnerSegment {
  std::string name;  // "attention", "mlp"
  SegmentForward forward;
};

// A block of the network: a residual or transformer block, the stem, the head.
struct Segment {
  std::string name;   // "stem", "layer1.0", ..., "head"
  std::string group;  // segments that freeze together: "layer1"; neighbours of one group share its name
  std::shared_ptr<SegmentMode> mode;
  SegmentForward forward;                // the fold over inner, if there are any
  std::vector<InnerSegment> inner = {};  // may be empty
  bool draws = false;                    // forward draws random numbers in training
  std::vector<std::int64_t> norms = {};  // channels of its batch norms
};

// The result of loading a map of weights: names, in the network's order.
struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;  // in the network, not in the map: keeps its initial value
  std::vector<std::string> foreign;  // in the map, not in the network
  std::vector<std::string>
      wrong_shape;        // "fc.weight: [1000, 512] in the file, [10, 512] here"; keeps its initial value
  bool new_head = false;  // the last segment's weights did not fit: it starts from its initial values
  // Everything fitted and nothing is left over.
  [[nodiscard]] bool exact() const { return missing.empty() && foreign.empty() && wrong_shape.empty(); }
  // One line for people.
  [[nodiscard]] std::string text() const;
};

class Network {
 public:
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] const std::vector<core::Parameter>& parameters() const { return parameters_; }
  // Running statistics, named as in Python ("bn1.running_mean"): views of norm_buffers(). A buffer that contains an
  // infinity from the start (an attention mask) is a constant and not a view of norm_buffers().
  [[nodiscard]] const std::vector<core::NamedTensor>& buffers() const { return buffers_; }
  // All running statistics in one flat float32 tensor; empty without batch norm. With torch::nn batch norms also their
  // counts of batches, in one flat int64 tensor.
  [[nodiscard]] core::TensorList norm_buffers() const;

  [[nodiscard]] int segments() const { return static_cast<int>(segments_.size()); }
  [[nodiscard]] const Segment& segment(int segment) const { return segments_.at(segment); }
  [[nodiscard]] core::TensorList forward_segment(int segment, core::TensorList inputs) const;
  // The fold over all segments.
  [[nodiscard]] at::Tensor forward(const at::Tensor& input) const;

  // On: batch norm uses batch statistics. Off: it uses its running statistics; frozen segments stay off.
  void set_training(bool on);
  [[nodiscard]] bool training() const { return training_; }
  // The groups of segments that freeze together, in order: "stem", "layer1", ..., "head".
  [[nodiscard]] std::vector<std::string> freeze_groups() const;
  // The segments of the first groups take no gradients and keep their statistics; the others are trained, except for
  // parameters that took no gradient before: the caller froze them, and they stay frozen. A tied parameter follows its
  // first segment. ConfigError outside 0 ... the number of groups.
  void set_frozen(int first_groups);

  // On: batch norms use their running statistics and keep them, also in training, so that no sample depends on another;
  // their weights are trained. Sensible with the statistics of a trained network.
  void freeze_statistics(bool on);

  // The batch norms that compute statistics in training; none if a torch::nn module has some, too.
  [[nodiscard]] core::NormCount norms_by_batch() const;
  // From here on their statistics are those of the samples of all ranks; null: of this process. ranks outlive it.
  void synchronise_norms(core::NormExchange* ranks);

  // Moves everything, in place: existing handles stay valid, gradients are dropped. Statistics stay float32 unless
  // dtype is float64.
  void to(at::Device device, at::ScalarType dtype = at::kFloat);
  [[nodiscard]] at::Device device() const;
  // Stores the weights of the 2-d convolutions in this memory order (kContiguous or kChannelsLast), in place: values
  // and handles stay, gradients are dropped if the order changes. False if there is no such convolution.
  bool lay_out(at::MemoryFormat format);

  // Copies weights that fit by name and shape, in place, from any floating dtype or device. Tensors without meaning
  // here (num_batches_tracked, GPT-2's masks) are ignored. CheckpointError if none fit.
  LoadReport load(const std::map<std::string, at::Tensor>& file);

 private:
  friend class NetworkBuilder;
  friend std::int64_t flops(Network& network, at::IntArrayRef sample_shape);
  Network() = default;
  // Makes the running statistics views of one flat tensor, and the counts of batches views of another; constants stay
  // separate.
  void flatten_statistics(at::Device device, at::ScalarType dtype);
  [[nodiscard]] bool is_head(const std::string& parameter) const;

  std::vector<core::Parameter> parameters_;
  std::vector<core::NamedTensor> buffers_;
  std::set<std::string> constants_;  // names of buffers
  at::Tensor statistics_;            // undefined without batch norm
  core::TensorList counts_;          // of batches, int64 scalars of torch::nn modules: views of count_
  at::Tensor count_;                 // undefined without counts_
  std::vector<Segment> segments_;
  std::shared_ptr<FlopMeter> meter_;
  std::function<std::string(const std::string& name)> read_name_;  // NetworkBuilder::read_names
  bool training_ = true;
  std::set<std::string> frozen_here_;  // parameters that were trained until set_frozen()
};

// Floating-point operations (2 per multiply-add) of convolutions and linear layers for one sample of shape [C, H, W],
// forward, counted by one evaluation pass on zeros. Leaves the network as it was.
[[nodiscard]] std::int64_t flops(Network& network, at::IntArrayRef sample_shape);

}  // namespace stoker::models
