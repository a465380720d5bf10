// SPDX-License-Identifier: Apache-2.0
// Which variant of a network time= has epochs for, as far as that can be told before it is measured. Called by setup.
// Thread-safe: no state.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stoker::job {

// A wider network is worth its time where so many epochs of it fit. In equal time on CIFAR-10, 10 epochs of cnn48
// reached 86.2 % on the test split and 22 of cnn 86.4 %: with fewer, width does not pay.
inline constexpr double kWidthPays = 12;

// The widest network reached from `model` by models::wider_model() for which kWidthPays epochs fit where `epochs` of
// `model` do, reckoned by FLOPs. Empty: none; so it is where a count is unknown (0), or the network not among `known`.
[[nodiscard]] std::string widest_that_fits(const std::string& model, double epochs,
                                           const std::vector<std::string>& known,
                                           const std::function<double(const std::string& model)>& flops_of);

}  // namespace stoker::job
