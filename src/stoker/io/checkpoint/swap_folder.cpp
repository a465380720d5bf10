// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/checkpoint/swap_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;

void move_folder(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    fail<IoError>("io.checkpoint", "{}: cannot be renamed to {}: {}", printable(from.native()),
                  printable(to.filename().native()), std::strerror(errno));
  }
}

void remove_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) {
    fail<IoError>("io.checkpoint", "{}: cannot be removed: {}", printable(folder.native()), error.message());
  }
}

// False if the kernel or the file system does not support it.
bool exchange(const fs::path& first, const fs::path& second) {
  if (::renameat2(AT_FDCWD, first.c_str(), AT_FDCWD, second.c_str(), RENAME_EXCHANGE) == 0) {
    return true;
  }
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM) {
    return false;
  }
  fail<IoError>("io.checkpoint", "{}: cannot be exchanged with {}: {}", printable(second.native()),
                printable(first.filename().native()), std::strerror(errno));
}

}  // namespace

SwapPlaces swap_places(const fs::path& folder, const std::string& name) {
  return {folder / name, folder / ("." + name + ".new"), folder / ("." + name + ".old")};
}

void swap_in(const SwapPlaces& places, bool can_exchange) {
  const fs::path folder = places.target.parent_path();
  if (!fs::exists(places.target)) {
    move_folder(places.fresh, places.target);
    sync_folder(folder);
    return;
  }
  if (can_exchange && exchange(places.fresh, places.target)) {
    sync_folder(folder);  // if it throws, both folders remain: a power failure may still undo the exchange
    remove_folder(places.fresh);
    return;
  }
  move_folder(places.target, places.survivor);
  move_folder(places.fresh, places.target);
  sync_folder(folder);
  remove_folder(places.survivor);
}

void recover(const SwapPlaces& places) {
  if (fs::exists(places.survivor)) {
    if (fs::exists(places.target)) {
      remove_folder(places.survivor);
    } else {
      move_folder(places.survivor, places.target);
    }
  }
  if (fs::exists(places.fresh) && fs::exists(places.target)) {
    sync_folder(places.target.parent_path());  // fresh may be the old folder of an exchange that was never synced
  }
  remove_folder(places.fresh);
}

}  // namespace stoker::io
