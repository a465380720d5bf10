// SPDX-License-Identifier: Apache-2.0
#include "stoker/models/mlp.h"

#include "stoker/base/error.h"
#include "stoker/models/builder.h"

namespace stoker::models {

std::unique_ptr<Network> make_mlp(const ModelOptions& options, std::int64_t hidden) {
  if (options.norm != ConvNorm::kBatch) {
    fail<ConfigError>("models.mlp",
                      "the perceptron has no norm that norm=group could replace; remove it, or use another model=");
  }
  NetworkBuilder builder(options.seed);
  const std::int64_t inputs = std::int64_t{options.channels} * options.image_size * options.image_size;

  builder.begin_segment("layer1");
  const Linear fc1 = builder.linear("fc1", inputs, hidden);
  builder.end_segment([fc1](const at::Tensor& x) { return fc1(x.flatten(1)).relu_(); });

  builder.begin_segment("layer2");
  const Linear fc2 = builder.linear("fc2", hidden, hidden);
  builder.end_segment([fc2](const at::Tensor& x) { return fc2(x).relu_(); });

  builder.begin_segment("head");
  const Linear fc = builder.linear("fc", hidden, options.classes);
  builder.end_segment([fc](const at::Tensor& x) { return fc(x); });
  return builder.finish();
}

}  // namespace stoker::models
