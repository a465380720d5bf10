// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/cache_folder.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdlib>

#include "stoker/base/fmt.h"

namespace stoker::data {
namespace {

std::filesystem::path absolute_from(const char* variable) {
  const char* value = std::getenv(variable);
  std::filesystem::path path = value != nullptr ? value : "";
  return path.is_absolute() ? path : std::filesystem::path();  // as in the XDG specification
}

}  // namespace

std::filesystem::path cache_folder() {
  if (std::filesystem::path own = absolute_from("STOKER_CACHE"); !own.empty()) {
    return own;
  }
  if (const std::filesystem::path caches = absolute_from("XDG_CACHE_HOME"); !caches.empty()) {
    return caches / "stoker";
  }
  const std::filesystem::path home = absolute_from("HOME");
  return home.empty() ? home : home / ".cache" / "stoker";
}

std::string hex_hash(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace stoker::data
