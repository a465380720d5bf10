// SPDX-License-Identifier: Apache-2.0
// manifest.json, the list of the content of a checkpoint folder: sizes and checksums of its files and tensors, and a
// checksum of the list itself. Used by the checkpoint store. Thread-safe: values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace stoker::io {

struct Manifest {
  struct File {
    std::uint64_t bytes = 0;
    std::string checksum;
  };
  std::map<std::string, File> files;                                  // by name within the folder
  std::map<std::string, std::map<std::string, std::string>> tensors;  // file → tensor → checksum
};

inline constexpr int kCheckpointFormat = 3;  // 1, 2: of Stoker 0.1, whose segments drew from one seed per step

// IoError if the disk refuses.
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);
// CheckpointError if it is missing, damaged or has a newer format.
[[nodiscard]] Manifest read_manifest(const std::filesystem::path& folder);

// Size and checksum of a tensor file on disk, read once, in pieces; CheckpointError if its tensors or their checksums
// differ from these.
[[nodiscard]] Manifest::File measure_file(const std::filesystem::path& path,
                                          const std::map<std::string, std::string>& tensors);
// CheckpointError with the name of the file if that is not the checksum of the tensor.
void check_tensor(const std::string& file, const std::map<std::string, std::string>& tensors, const std::string& tensor,
                  const std::string& found);
// CheckpointError if the file is missing or differs from the manifest.
void check_file(const std::filesystem::path& folder, const Manifest& manifest, const std::string& name);

}  // namespace stoker::io
