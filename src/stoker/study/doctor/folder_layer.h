// SPDX-License-Identifier: Apache-2.0
// A layer over a folder: what a command writes there goes into the layer, and the folder stays as it is. It is an
// overlay in a mount namespace of the command's own (overlayfs of Linux; mount_namespaces(7)), so nobody else sees it.
// Used by `stoker doctor --try`. Not thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stoker::study {

class FolderLayer {
 public:
  // scratch: an empty folder for what is written, outside of `folder`. ConfigError if it is inside, or if this system
  // does not let us put a layer there.
  FolderLayer(const std::filesystem::path& folder, const std::filesystem::path& scratch);
  ~FolderLayer();  // what was written stays in scratch, and can be removed
  FolderLayer(const FolderLayer&) = delete;
  FolderLayer& operator=(const FolderLayer&) = delete;

  // Puts the calling process, and the children that it will have, under the layer. For a child between fork and exec:
  // calls the kernel only. 0, or the error's number.
  [[nodiscard]] int enter() const noexcept;

 private:
  struct Below {  // a file system that is mounted inside of the folder, which an overlay does not show by itself
    std::string from, to;
  };

  std::string folder_, lower_, work_, options_;
  std::string user_map_, group_map_;
  std::vector<Below> below_;
};

}  // namespace stoker::study
