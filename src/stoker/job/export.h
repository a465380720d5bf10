// SPDX-License-Identifier: Apache-2.0
// Weights for other programs to load. Used by `stoker export`.
#pragma once

#include <filesystem>
#include <string>

namespace stoker::job {

// Writes the checkpoint's weights to out under the names of torchvision or GPT-2, with model, classes and preprocessing
// as metadata. If out is a folder (an existing one, or a path that ends in '/'), it writes model.safetensors there,
// with the files that other programs expect beside it. Returns a line for people. CheckpointError, IoError.
std::string export_weights(const std::filesystem::path& run, const std::filesystem::path& out,
                           const std::string& checkpoint);

}  // namespace stoker::job
