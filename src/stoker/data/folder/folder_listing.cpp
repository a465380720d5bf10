// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/folder_listing.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstddef>

#include "stoker/data/decode/image_decode.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

bool looks_like_image(const fs::path& path) {
  std::array<std::byte, 16> head{};
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return false;
  }
  const ssize_t got = ::read(file, head.data(), head.size());
  ::close(file);
  return got > 0 && !image_format(Bytes(head).first(static_cast<std::size_t>(got))).empty();
}

void add(FolderListing& listing, const fs::directory_entry& entry) {
  FolderEntry result{entry.path().filename().native(), EntryKind::kSpecial};
  std::error_code error;
  const bool link =
      entry.is_symlink(error);  // most file systems return the kind with the name, without a stat call per file
  if (entry.is_directory(error)) {
    result.kind = EntryKind::kFolder;
    listing.steady = listing.steady && (!link || !is_hidden_folder(result.name));
  } else {
    if (entry.is_regular_file(error)) {
      const bool look = !result.name.starts_with('.') && ending_of(result.name).empty();
      listing.steady = listing.steady && !look;
      result.kind = look && looks_like_image(entry.path()) ? EntryKind::kImage : EntryKind::kFile;
    } else if (link) {
      result.kind = EntryKind::kBrokenLink;
    }
    listing.steady = listing.steady && !link;
  }
  listing.entries.push_back(std::move(result));
}

}  // namespace

std::array<std::uint64_t, 2> FolderListing::hash() const {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const FolderEntry& entry : entries) {
    XXH3_128bits_update(&state, &entry.kind, 1);
    XXH3_128bits_update(&state, entry.name.c_str(), entry.name.size() + 1);  // with the terminating 0
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {hash.low64, hash.high64};
}

bool is_hidden_folder(std::string_view name) { return name.starts_with('.') || name == "__MACOSX"; }

std::string ending_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  std::string ending(dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1));
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return ending;
}

FolderListing list_folder(const fs::path& folder) {
  FolderListing listing;
  for (fs::directory_iterator each(folder, listing.error), end; !listing.error && each != end;
       each.increment(listing.error)) {
    add(listing, *each);
  }
  std::ranges::sort(listing.entries, {}, &FolderEntry::name);
  return listing;
}

}  // namespace stoker::data
