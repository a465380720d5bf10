// SPDX-License-Identifier: Apache-2.0
// Chooses the variant of a network that time= allows, as far as it is known before measuring. Called by setup.
// Thread-safe: no state.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stoker::job {

// A wider network pays off if this many epochs of it fit. In equal time on CIFAR-10, 10 epochs of cnn48 reached 86.2 %
// on the test split and 22 of cnn 86.4 %: with fewer epochs, width does not pay.
inline constexpr double kWidthPays = 12;

// The widest network, reached from `model` by models::wider_model(), for which kWidthPays epochs fit if `epochs` of
// `model` fit, estimated by FLOPs. Empty: none, also if a count is unknown (0), or the network is not among `known`.
[[nodiscard]] std::string widest_that_fits(const std::string& model, double epochs,
                                           const std::vector<std::string>& known,
                                           const std::function<double(const std::string& model)>& flops_of);

}  // namespace stoker::job
