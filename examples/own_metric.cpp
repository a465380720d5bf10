// SPDX-License-Identifier: Apache-2.0
// Your own metric in a whole run: it is logged, is shown in the report, and selects the best checkpoint.
//
//     own_metric [DATA [RUN]]     DATA: the Fashion-MNIST sample, a folder or tar file; RUN: a name (runs/NAME, or
//                                 NAME-2, ... if that exists) or a path
//
// A shop wants each piece on the right shelf: a shirt predicted as a pullover costs nothing, a shirt among the shoes
// does. A metric has two parts: evaluate() returns tensors that add up over batches (sums, counts), metrics() computes
// the metric from the totals. So it is exact for every batch size, and nothing waits for the device in between.
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <stoker/stoker.h>

namespace {

using namespace stoker;

// Shelf of each class, in the order of their names: ankle_boot, bag, coat, dress, pullover, sandal, shirt, sneaker,
// t-shirt_top, trouser. Shoes are on shelf 0, clothes for the upper body on 2.
constexpr std::int64_t kShelves[] = {0, 1, 2, 3, 2, 0, 2, 0, 2, 4};

// The task's model with another metric.
class ShelfClassifier final : public tasks::ImageClassifier {
 public:
  explicit ShelfClassifier(ImageClassifier&& plain) : ImageClassifier(std::move(plain)) {}

  std::vector<core::NamedTensor> evaluate(const core::TensorList& outputs, const core::Batch& batch) const override {
    const at::Tensor shelves = at::tensor(at::ArrayRef<std::int64_t>(kShelves)).to(outputs[0].device());
    const at::Tensor predicted = shelves.index_select(0, outputs[0].argmax(1));
    const at::Tensor right = predicted.eq(shelves.index_select(0, batch["target"])).sum();
    std::vector<core::NamedTensor> totals = ImageClassifier::evaluate(outputs, batch);
    totals.push_back({"right_shelf", right});
    return totals;
  }

  std::vector<core::MetricValue> metrics(const std::vector<core::NamedTensor>& totals) const override {
    std::vector<core::MetricValue> values = ImageClassifier::metrics(totals);
    const auto total = [&](const char* name) {
      return std::ranges::find(totals, name, &core::NamedTensor::name)->tensor.item<double>();
    };
    // The first of the list selects the best checkpoint.
    values.insert(values.begin(), {"shelf_accuracy", total("right_shelf") / total("samples"), true});
    return values;
  }
};

}  // namespace

int main(int argc, char** argv) try {
  job::start_process();  // first: loads CUDA if there is a driver
  const std::string data = argc > 1 ? argv[1] : "examples/data/fashion-mnist-6000.tar";
  const std::string run = argc > 2 ? argv[2] : "own-metric";

  tasks::TaskChanges changes;
  changes.model = [](std::unique_ptr<tasks::Model> model) {
    return std::make_unique<ShelfClassifier>(std::move(dynamic_cast<tasks::ImageClassifier&>(*model)));
  };
  tasks::derive_task("shelves", "image_classification", changes);

  const std::vector<std::string> words = {"task=shelves", "data=" + data, "run=" + run, "model=mlp", "epochs=4"};
  job::Job job = job::Job::prepare(job::make_request({}, words), [](const std::string&) {});
  const std::atomic<bool> stop = false;
  const job::Outcome outcome = job.train({}, stop);
  for (const core::MetricValue& metric : outcome.test) {
    fmt::print("test {} {:.4f}\n", metric.name, metric.value);
  }
  fmt::print("see {}\n", (job.run_path() / "report.html").native());
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
