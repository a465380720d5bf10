// SPDX-License-Identifier: Apache-2.0
// ResNet-18, -34 and -50 (He et al., 2015; stride in the 3x3 convolution, as torchvision's v1.5), with torchvision's
// parameter names and arithmetic, so that weights go both ways. Called by the registry.
#pragma once

#include <memory>

#include "stoker/models/registry.h"

namespace stoker::models {

// Segments stem, layer1 ... layer4, head.
[[nodiscard]] std::unique_ptr<Network> make_resnet18(const ModelOptions& options);
[[nodiscard]] std::unique_ptr<Network> make_resnet34(const ModelOptions& options);
[[nodiscard]] std::unique_ptr<Network> make_resnet50(const ModelOptions& options);

}  // namespace stoker::models
