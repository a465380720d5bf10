// SPDX-License-Identifier: Apache-2.0
// Weights for others to load, and what a file or folder holds in words. Used by `stoker export` and `stoker info`.
#pragma once

#include <filesystem>
#include <string>

namespace stoker::job {

// Writes the checkpoint's weights to out under torchvision's or GPT-2's names, with model, classes and preprocessing as
// metadata. Into a folder (one that is there, or a path that ends in '/') they go as model.safetensors, with what other
// programs expect beside them. Returns a line for people. CheckpointError, IoError.
std::string export_weights(const std::filesystem::path& run, const std::filesystem::path& out,
                           const std::string& checkpoint);

// A run or checkpoint folder, a safetensors file, a data folder or tar; "models" and "machine" likewise, in lines.
// DataError for anything else.
[[nodiscard]] std::string info_text(const std::string& what);

}  // namespace stoker::job
