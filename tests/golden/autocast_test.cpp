// SPDX-License-Identifier: Apache-2.0
// The output dtype of each operator inside an AutocastGuard equals that of torch.autocast (make_autocast.py), and the
// table has every operator that our networks and losses call.
#include "stoker/precision/autocast.h"

#include <ATen/Functions.h>  // all operators
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "golden/golden_file.h"
#include "stoker/models/encoder.h"
#include "stoker/models/gpt.h"
#include "stoker/models/registry.h"
#include "stoker/models/unet.h"
#include "stoker/ops/cross_entropy.h"
#include "stoker/ops/linear_cross_entropy.h"

namespace stoker::golden {
namespace {

// Makes new tensors: the first input of an operator, and the others.
struct Inputs {
  at::ScalarType first_dtype, rest_dtype;
  [[nodiscard]] at::Tensor first(at::IntArrayRef shape) const { return at::ones(shape, first_dtype); }
  [[nodiscard]] at::Tensor rest(at::IntArrayRef shape) const { return at::ones(shape, rest_dtype); }
};
using Operator = std::function<at::Tensor(const Inputs&)>;

const std::vector<std::int64_t> kImages{2, 3, 4, 4}, kRows{2, 4}, kHeads{1, 1, 2, 4};

at::Tensor batch_norm(const Inputs& v) {
  return at::batch_norm(v.first(kImages), v.rest({3}), v.rest({3}), at::zeros({3}), at::ones({3}), true, 0.1, 1e-5,
                        false);
}

std::map<std::string, Operator> products() {
  return {
      {"conv2d",
       [](auto& v) {
         return at::conv2d(v.first(kImages), v.rest({4, 3, 3, 3}));
       }},
      {"conv_transpose2d",
       [](auto& v) {
         return at::conv_transpose2d(v.first(kImages), v.rest({3, 4, 2, 2}));
       }},
      {"linear",
       [](auto& v) {
         return at::linear(v.first({2, 3}), v.rest({4, 3}), v.rest({4}));
       }},
      {"matmul",
       [](auto& v) {
         return at::matmul(v.first({2, 3}), v.rest({3, 4}));
       }},
      {"mm",
       [](auto& v) {
         return at::mm(v.first({2, 3}), v.rest({3, 4}));
       }},
      {"bmm",
       [](auto& v) {
         return at::bmm(v.first({2, 2, 3}), v.rest({2, 3, 4}));
       }},
      {"addmm",
       [](auto& v) {
         return at::addmm(v.first({4}), v.rest({2, 3}), v.rest({3, 4}));
       }},
      {"scaled_dot_product_attention",
       [](auto& v) { return at::scaled_dot_product_attention(v.first(kHeads), v.rest(kHeads), v.rest(kHeads)); }},
  };
}

std::map<std::string, Operator> others() {
  const at::Tensor index = at::arange(2, at::kLong);
  const std::vector<double> twice{2, 2};
  return {
      {"batch_norm", batch_norm},
      {"layer_norm", [](auto& v) { return at::layer_norm(v.first(kRows), {4}, v.rest({4}), v.rest({4})); }},
      {"softmax", [](auto& v) { return at::softmax(v.first(kRows), 1); }},
      {"log_softmax", [](auto& v) { return at::log_softmax(v.first(kRows), 1); }},
      {"logsumexp", [](auto& v) { return at::logsumexp(v.first(kRows), {1}); }},
      {"cross_entropy_loss", [=](auto& v) { return at::cross_entropy_loss(v.first(kRows), index); }},
      {"mse_loss", [](auto& v) { return at::mse_loss(v.first(kRows), v.rest(kRows)); }},
      {"gelu", [](auto& v) { return at::gelu(v.first(kRows), "tanh"); }},
      {"relu", [](auto& v) { return at::relu(v.first(kRows)); }},
      {"tanh", [](auto& v) { return at::tanh(v.first(kRows)); }},
      {"sigmoid", [](auto& v) { return at::sigmoid(v.first(kRows)); }},
      {"exp", [](auto& v) { return at::exp(v.first(kRows)); }},
      {"add", [](auto& v) { return v.first(kRows) + v.rest(kRows); }},
      {"add_", [](auto& v) { return v.first(kRows).add_(v.rest(kRows)); }},
      {"mul", [](auto& v) { return v.first(kRows) * v.rest(kRows); }},
      {"div", [](auto& v) { return v.first(kRows) / 2.0; }},
      {"masked_fill", [](auto& v) { return v.first(kRows).masked_fill(at::ones({4}, at::kBool), 0); }},
      {"cat",
       [](auto& v) {
         return at::cat({v.first(kRows), v.rest(kRows)});
       }},
      {"stack",
       [](auto& v) {
         return at::stack({v.first(kRows), v.rest(kRows)});
       }},
      {"embedding",
       [=](auto& v) {
         return at::embedding(v.first({5, 4}), index);
       }},
      {"max_pool2d",
       [](auto& v) {
         return at::max_pool2d(v.first(kImages), {2, 2});
       }},
      {"avg_pool2d",
       [](auto& v) {
         return at::avg_pool2d(v.first(kImages), {2, 2});
       }},
      {"adaptive_avg_pool2d",
       [](auto& v) {
         return at::adaptive_avg_pool2d(v.first(kImages), {1, 1});
       }},
      {"upsample_nearest2d", [=](auto& v) { return at::upsample_nearest2d(v.first(kImages), {}, twice); }},
      {"upsample_bilinear2d", [=](auto& v) { return at::upsample_bilinear2d(v.first(kImages), {}, false, twice); }},
      {"dropout", [](auto& v) { return at::dropout(v.first(kRows), 0.5, true); }},
      {"amax", [](auto& v) { return at::amax(v.first(kRows)); }},
      {"sum", [](auto& v) { return v.first(kRows).sum(); }},
      {"mean", [](auto& v) { return v.first(kRows).mean(); }},
  };
}

std::string name_of(at::ScalarType dtype) {
  return dtype == at::kFloat ? "float32" : dtype == at::kHalf ? "float16" : dtype == at::kBFloat16 ? "bfloat16" : "?";
}

std::string outcome(const Operator& run, at::ScalarType half, const Inputs& inputs) {
  const precision::AutocastGuard guard(at::kCPU, half);
  try {
    return name_of(run(inputs).scalar_type());
  } catch (const c10::Error&) {
    return "refused";
  }
}

// The table's lines, by "autocast operator".
std::map<std::string, std::string> table() {
  std::ifstream file(folder() / "autocast.tsv");
  std::map<std::string, std::string> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string autocast, name, rest;
    words >> autocast >> name;
    std::getline(words >> std::ws, rest);
    if (autocast != "#") {
      rows[autocast + " " + name] = rest;
    }
  }
  return rows;
}

TEST(GoldenAutocast, EveryOperatorsDtypeIsPythons) {
  const auto golden = table();
  std::size_t rows = 0;
  for (const at::ScalarType half : {at::kBFloat16, at::kHalf}) {
    for (const auto& operators : {products(), others()}) {
      for (const auto& [name, run] : operators) {
        const std::string key = name_of(half) + " " + name;
        ASSERT_TRUE(golden.contains(key)) << key << ": run tests/golden/make_autocast.py";
        EXPECT_EQ(outcome(run, half, {at::kFloat, at::kFloat}) + " " + outcome(run, half, {half, half}) + " " +
                      outcome(run, half, {half, at::kFloat}),
                  golden.at(key))
            << key;
        ++rows;
      }
    }
  }
  EXPECT_EQ(rows, golden.size());
}

// While it exists, records the names of operators that no other operator calls.
class Recorder {
 public:
  Recorder() {
    names().clear();
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&Recorder::begin, &Recorder::end).scopes({at::RecordScope::FUNCTION}));
  }
  ~Recorder() { at::removeCallback(handle_); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  static std::set<std::string>& names() {
    static std::set<std::string> all;
    return all;
  }

 private:
  static int& depth() {
    static int calls = 0;
    return calls;
  }
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    if (depth()++ == 0) {
      names().insert(std::string(std::string_view(call.name()).substr(std::string_view("aten::").size())));
    }
    return nullptr;
  }
  static void end(const at::RecordFunction&, at::ObserverContext*) { --depth(); }

  at::CallbackHandle handle_ = 0;
};

core::TensorList fold(const models::Network& network, core::TensorList values) {
  for (int segment = 0; segment < network.segments(); ++segment) {
    values = network.forward_segment(segment, std::move(values));
  }
  return values;
}

// The operators that forward passes and losses of our networks call; building the networks does not count.
std::set<std::string> called_by_networks() {
  std::vector<std::unique_ptr<models::Network>> of_images;
  for (const char* name : {"mlp", "cnn", "resnet18", "resnet50"}) {
    of_images.push_back(models::make_network(name, {.classes = 4, .image_size = 32}));
  }
  of_images.push_back(models::make_unet({.classes = 4, .width = 4, .depth = 2}));
  constexpr auto kWritten = ops::AttentionKind::kWritten;
  const auto gpt = models::make_gpt({.layers = 1, .width = 16, .dropout = 0.1, .open_head = true});
  const auto written = models::make_gpt({.layers = 1, .width = 16, .attention = kWritten});
  const auto encoder = models::make_encoder({.layers = 1, .width = 16});
  const at::Tensor images = at::ones({2, 3, 32, 32}), target = at::arange(2, at::kLong), weights = at::ones({4});
  const at::Tensor tokens = target.view({1, 2});
  const precision::AutocastGuard guard(at::kCPU, at::kBFloat16);
  const at::NoGradGuard no_grad;
  const Recorder recorder;
  for (const auto& network : of_images) {
    const at::Tensor logits = network->forward(images);
    if (logits.dim() == 2) {
      (void)ops::cross_entropy_sum(logits, target, 0.1, weights);
    }
  }
  (void)fold(*written, {tokens});
  (void)fold(*encoder, {tokens, tokens});
  const core::TensorList values = fold(*gpt, {tokens});
  (void)ops::linear_cross_entropy_sum(values[0].flatten(0, 1), values[1], target, 1);
  return Recorder::names();
}

TEST(GoldenAutocast, TheTableHoldsWhatOurNetworksCall) {
  // Reshaped and moved values, masks, new tensors, in-place operators, and the chunked loss after its logits.
  const std::set<std::string> without_rule = {
      "clamp_min", "exp_",  "flatten", "gather", "ge",   "log", "logical_not", "ones", "relu_",     "reshape", "select",
      "slice",     "split", "squeeze", "sub",    "sub_", "to",  "transpose",   "tril", "unsqueeze", "view",    "zeros"};
  const std::set<std::string> called = called_by_networks();
  EXPECT_TRUE(called.contains("conv2d") && called.contains("scaled_dot_product_attention"));
  for (const std::string& name : called) {
    EXPECT_TRUE(without_rule.contains(name) || products().contains(name) || others().contains(name)) << name;
  }
}

}  // namespace
}  // namespace stoker::golden
