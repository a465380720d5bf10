// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/file_stamp.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

namespace stoker {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * kSecond + time.tv_nsec; }

}  // namespace

FileStamp stamp_from(const struct stat& facts) {
  return {facts.st_ino, S_ISDIR(facts.st_mode) ? 0 : facts.st_size, nanoseconds(facts.st_mtim),
          nanoseconds(facts.st_ctim)};
}

std::optional<FileStamp> stamp_of(const std::filesystem::path& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || !(S_ISDIR(facts.st_mode) || S_ISREG(facts.st_mode))) {
    return std::nullopt;
  }
  return stamp_from(facts);
}

std::int64_t file_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now);
}

bool is_settled(const FileStamp& stamp, std::int64_t now) {
  return std::max(stamp.modified, stamp.changed) < now - 2 * kSecond;
}

}  // namespace stoker
