// SPDX-License-Identifier: Apache-2.0
// Your own torch::nn module, trained like every other model: with a plan, checkpoints, logs and a report.
//
//     own_module [DATA [RUN]]     DATA: images of 28 x 28 grey pixels in 10 classes, a folder or tar file;
//                                 RUN: a name (runs/NAME, or NAME-2, ... if that exists) or a path
//
// The code that connects the module to a run is marked "glue": 11 lines, and the first line of main. The end proves
// that it is still your module: another instance, unknown to Stoker, loads the checkpoint's weights and predicts the
// same with plain torch.
#include <ATen/Context.h>
#include <ATen/ops/relu.h>
#include <stoker/stoker.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace {

using namespace stoker;

// Your module. Nothing in it depends on Stoker.
struct Net : torch::nn::Module {
  Net(std::int64_t channels, std::int64_t classes)
      : conv1(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, 16, 3).stride(2)))),
        norm1(register_module("norm1", torch::nn::BatchNorm2d(16))),
        conv2(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).stride(2)))),
        norm2(register_module("norm2", torch::nn::BatchNorm2d(32))),
        head(register_module("head", torch::nn::Linear(32 * 6 * 6, classes))) {}

  at::Tensor forward(const at::Tensor& images) {  // float [B, channels, 28, 28] → logits [B, classes]
    const at::Tensor x = at::relu(norm1(conv1(images)));
    return head(at::relu(norm2(conv2(x))).flatten(1));
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d norm1;
  torch::nn::Conv2d conv2;
  torch::nn::BatchNorm2d norm2;
  torch::nn::Linear head;
};

std::filesystem::path train_net(const std::string& data, const std::string& run) {
  // glue begins
  models::add_model({"net", "two convolutions of my own"}, [](const models::ModelOptions& options) {
    at::manual_seed(options.seed);
    const auto net = std::make_shared<Net>(options.channels, options.classes);
    models::NetworkBuilder builder(options.seed);
    builder.module_segment("net", net, [net](const at::Tensor& x) { return net->forward(x); });
    return builder.finish();
  });
  const std::vector<std::string> words = {"model=net", "data=" + data, "run=" + run, "epochs=3", "precision=fp32"};
  job::Job job = job::Job::prepare(job::make_request({}, words), [](const std::string&) {});
  const std::atomic<bool> stop = false;
  const job::Outcome outcome = job.train({}, stop);
  // glue ends
  fmt::print("run: {} {} on the test images after {} steps\n", outcome.test.front().name, outcome.test.front().value,
             outcome.step);
  return job.run_path();
}

// Loads weights into a module with plain torch: names are the module's, layouts are torch's.
void load(Net& net, const std::map<std::string, at::Tensor>& weights) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : net.named_parameters()) {
    parameter.value().copy_(weights.at(parameter.key()));
  }
  for (auto& buffer : net.named_buffers()) {
    if (buffer.value().is_floating_point()) {  // num_batches_tracked is not kept
      buffer.value().copy_(weights.at(buffer.key()));
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  job::start_process();  // first: loads CUDA if there is a driver
  const std::string data = argc > 1 ? argv[1] : "examples/data/fashion-mnist-6000.tar";
  const std::filesystem::path run = train_net(data, argc > 2 ? argv[2] : "own-module");

  Net mine(1, 10);
  load(mine, io::load_weights(run / "checkpoints/best").weights);
  mine.eval();

  // The images as in the run: the checkpoint has their preprocessing.
  const job::LoadedModel trained = job::load_model(run, at::kCPU);
  data::ImageLoaderOptions options;
  options.split = data::open_image_folder(data).test;
  options.channels = 1;
  options.policy = {.crop = augment::Crop::kNone, .out_width = 28, .out_height = 28};
  options.shuffle = false;
  data::ImageLoader images(options);

  const at::NoGradGuard no_grad;
  std::int64_t right = 0, all = 0;
  while (const std::optional<core::Batch> batch = images.next()) {
    const at::Tensor logits = mine.forward(trained.model->inputs(*batch)[0]);
    right += logits.argmax(1).eq((*batch)["target"]).sum().item<std::int64_t>();
    all += batch->size();
  }
  fmt::print("module: {} of {} test images correct with plain torch\n", right, all);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
