// SPDX-License-Identifier: Apache-2.0
// Weights for other programs to load. Used by `stoker export`.
#pragma once

#include <filesystem>
#include <string>

namespace stoker::job {

// Writes the checkpoint's weights to out under torchvision's or GPT-2's names, with model, classes and preprocessing as
// metadata. Into a folder (one that is there, or a path that ends in '/') they go as model.safetensors, with what other
// programs expect beside them. Returns a line for people. CheckpointError, IoError.
std::string export_weights(const std::filesystem::path& run, const std::filesystem::path& out,
                           const std::string& checkpoint);

}  // namespace stoker::job
