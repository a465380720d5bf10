// SPDX-License-Identifier: Apache-2.0
// Builds a network: makes layers with seeded initial weights, registers their tensors under Python's names, and makes
// segments of them. Used by each model's .cpp, and by users for their own networks. Use once; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "stoker/models/layers.h"
#include "stoker/models/network.h"

namespace torch::nn {
class Module;  // its header takes 20 s to compile
}

namespace stoker::models {

struct ConvShape {
  std::int64_t in = 0, out = 0, kernel = 3, stride = 1, padding = 1;
  bool bias = false;       // useless if a norm follows
  bool zero_bias = false;  // it starts at zero
  double gain = 1;         // factor of the deviation of the initial weights; 0: they start at zero
};

class NetworkBuilder {
 public:
  // Equal seeds and names give equal weights.
  explicit NetworkBuilder(std::uint64_t seed);

  // Layers made from here on belong to a new segment, one block of the network. group: freezes together with neighbours
  // of the same group; empty: the segment is its own group ...
  void begin_segment(std::string name, std::string group = "");
  // ... with this forward: of one tensor, of lists if more than one enters or leaves, or the fold over named parts. A
  // forward that draws random numbers other than by dropout() must declare it.
  void end_segment(std::function<at::Tensor(const at::Tensor&)> forward);
  void end_list_segment(SegmentForward forward);
  void end_segment_of(std::vector<InnerSegment> parts);
  void segment_draws() { current_segment("segment_draws").draws = true; }
  // The segment uses a parameter of another segment.
  void tie(const at::Tensor& parameter);

  // A whole segment that is a torch::nn module, kept alive by the network: its parameters and running statistics under
  // their own names (after prefix), its mode following the network's. forward calls it, on one tensor. Weights start as
  // in the module: seed torch before making it. Parameters that require no gradient stay frozen. Roles depend on the
  // kind of the module that owns a parameter or, for other modules, on name and shape. A tied parameter counts once,
  // under its first name. ConfigError for a module without parameters, or with a persistent buffer that is not
  // floating-point (except num_batches_tracked, which is no buffer of the network).
  void module_segment(std::string name, std::shared_ptr<torch::nn::Module> module,
                      std::function<at::Tensor(const at::Tensor&)> forward, const std::string& prefix = "");

  // Weights normal, Kaiming fan_out for ReLU, as in torchvision's ResNets; a bias uniform in ±1/sqrt(in kernel^2),
  // torch.nn.Conv2d's default, unless the shape sets it to start at zero.
  [[nodiscard]] Conv2d conv(const std::string& name, const ConvShape& shape);
  // Weights and bias uniform in ±1/sqrt(in), torch.nn.Linear's default.
  [[nodiscard]] Linear linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias = true);
  // Weights normal with this deviation, bias 0, as in BERT.
  [[nodiscard]] Linear normal_linear(const std::string& name, std::int64_t in, std::int64_t out, double deviation);
  // The same, with the memory layout of GPT-2.
  [[nodiscard]] Projection projection(const std::string& name, std::int64_t in, std::int64_t out, double deviation);
  // Zeros, for a layer whose weight belongs to another.
  [[nodiscard]] at::Tensor bias(const std::string& name, std::int64_t width);
  // Weight 1, bias 0.
  [[nodiscard]] LayerNorm layer_norm(const std::string& name, std::int64_t width, double eps = LayerNorm::kEps);
  // Rows normal with this deviation.
  [[nodiscard]] Embedding embedding(const std::string& name, std::int64_t rows, std::int64_t width, double deviation);
  // Has no parameters; follows the mode of the segment that it is made in.
  [[nodiscard]] Dropout dropout(double probability);
  // Weight 1 (or as given), bias 0, statistics 0 and 1.
  [[nodiscard]] BatchNorm2d batch_norm(const std::string& name, std::int64_t channels, double weight = 1);

  // Weight 1, bias 0. ConfigError unless groups divides channels.
  [[nodiscard]] GroupNorm group_norm(const std::string& name, std::int64_t channels, std::int64_t groups);
  // One of the two. Group norm with 32 groups, as its authors advise, or with as many of at least 2 channels as divide
  // the channels.
  [[nodiscard]] std::function<at::Tensor(const at::Tensor&)> conv_norm(ConvNorm kind, const std::string& name,
                                                                       std::int64_t channels);

  // Maps the name of a tensor in a loaded file to its name here; empty: it is ignored.
  void read_names(std::function<std::string(const std::string& name)> here);

  // The network; the builder cannot be used afterwards.
  [[nodiscard]] std::unique_ptr<Network> finish();

 private:
  // ConfigError that names what needs a segment if none has begun.
  [[nodiscard]] Segment& current_segment(std::string_view what);
  // A parameter made by the builder: it is trained.
  at::Tensor add_parameter(const std::string& name, at::Tensor tensor, core::Role role);
  // A parameter that is trained if it requires a gradient.
  void keep_parameter(const std::string& name, const at::Tensor& tensor, core::Role role);

  std::uint64_t seed_;
  std::unique_ptr<Network> network_;
};

}  // namespace stoker::models
