// SPDX-License-Identifier: Apache-2.0
// A layer over a folder: what a command writes there goes into the layer, and the folder stays as it is, with the file
// systems that are mounted inside. It is an overlay in a mount namespace of the command's own (overlayfs of Linux;
// mount_namespaces(7)), so nobody else sees it. A symbolic link that leads out of the folder leads out of the layer.
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
  // One overlay: over the folder, or over a file system that is mounted inside of it, which the first does not show.
  struct Overlay {
    std::string place, lower, work, options, user_options;
  };
  [[nodiscard]] Overlay overlay_at(const std::string& place, const std::string& lower, int number) const;

  std::string folder_, lower_, scratch_;
  std::string user_map_, group_map_;
  std::vector<Overlay> overlays_;  // the folder's first
};

}  // namespace stoker::study
