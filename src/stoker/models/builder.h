// SPDX-License-Identifier: Apache-2.0
// Puts a network together: makes layers with seeded initial weights, registers their tensors under Python's names, and
// closes segments over them. Used by each model's .cpp, and by users for their own networks. Use once; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "stoker/models/layers.h"
#include "stoker/models/network.h"

namespace torch::nn {
class Module;  // its header takes 20 s to compile
}

namespace stoker::models {

struct ConvShape {
  std::int64_t in = 0, out = 0, kernel = 3, stride = 1, padding = 1;
  bool bias = false;       // of no use where a norm follows
  bool zero_bias = false;  // it starts as zeros
  double gain = 1;         // of the deviation of the initial weights; 0: they start as zeros
};

class NetworkBuilder {
 public:
  // Equal seeds and names give equal weights.
  explicit NetworkBuilder(std::uint64_t seed);

  // Layers made from here on belong to a new segment, one block of the network. group: freezes together with neighbours
  // of the same group; empty: the segment is its own group ...
  void begin_segment(std::string name, std::string group = "");
  // ... whose forward this is: of one tensor, or of lists where more than one enters or leaves, or the fold over parts
  // that have names of their own. A forward that draws random numbers otherwise than by dropout() must say so.
  void end_segment(std::function<at::Tensor(const at::Tensor&)> forward);
  void end_list_segment(SegmentForward forward);
  void end_segment_of(std::vector<InnerSegment> parts);
  void segment_draws() { network_->segments_.back().draws = true; }
  // The segment uses a parameter that another one owns.
  void tie(const at::Tensor& parameter);

  // A whole segment that is a torch::nn module, kept alive by the network: its parameters and running statistics under
  // their own names (after prefix), its mode following the network's. forward calls it, on one tensor. Weights start as
  // the module has them: seed torch before making it. Parameters that require no gradient stay frozen. Roles follow
  // from the kind of the module that holds a parameter and, elsewhere, from name and shape. A tied parameter counts
  // once, under its first name. ConfigError for a module without parameters, or with a persistent buffer that is no
  // floating-point one (num_batches_tracked apart, which is passed over).
  void module_segment(std::string name, std::shared_ptr<torch::nn::Module> module,
                      std::function<at::Tensor(const at::Tensor&)> forward, const std::string& prefix = "");

  // Weights normal, Kaiming fan_out for ReLU, as torchvision's ResNets start; a bias uniform in ±1/sqrt(in kernel^2),
  // torch.nn.Conv2d's default, unless the shape has it start as zeros.
  [[nodiscard]] Conv2d conv(const std::string& name, const ConvShape& shape);
  // Weights and bias uniform in ±1/sqrt(in), torch.nn.Linear's default.
  [[nodiscard]] Linear linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias = true);
  // Weights normal with this deviation, bias 0, as BERT starts.
  [[nodiscard]] Linear normal_linear(const std::string& name, std::int64_t in, std::int64_t out, double deviation);
  // The same, laid out as GPT-2 has it.
  [[nodiscard]] Projection projection(const std::string& name, std::int64_t in, std::int64_t out, double deviation);
  // Zeros, for a layer whose weight belongs to another.
  [[nodiscard]] at::Tensor bias(const std::string& name, std::int64_t width);
  // Weight 1, bias 0.
  [[nodiscard]] LayerNorm layer_norm(const std::string& name, std::int64_t width, double eps = LayerNorm::kEps);
  // Rows normal with this deviation.
  [[nodiscard]] Embedding embedding(const std::string& name, std::int64_t rows, std::int64_t width, double deviation);
  // Has no parameter; follows the mode of the segment it is made in.
  [[nodiscard]] Dropout dropout(double probability);
  // Weight 1 (or as given), bias 0, statistics 0 and 1.
  [[nodiscard]] BatchNorm2d batch_norm(const std::string& name, std::int64_t channels, double weight = 1);

  // What a tensor of a file that is loaded is called here; empty: it is passed over.
  void read_names(std::function<std::string(const std::string& name)> here);

  // The network; the builder is spent.
  [[nodiscard]] std::unique_ptr<Network> finish();

 private:
  // One that the builder made: it trains.
  at::Tensor add_parameter(const std::string& name, at::Tensor tensor, core::Role role);
  // One that trains if it requires a gradient.
  void keep_parameter(const std::string& name, const at::Tensor& tensor, core::Role role);

  std::uint64_t seed_;
  std::unique_ptr<Network> network_;
};

}  // namespace stoker::models
