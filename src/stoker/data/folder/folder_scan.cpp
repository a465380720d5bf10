// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/folder_scan.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <tuple>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/folder/folder_listing.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kProgressEvery = 5'000;  // files
constexpr std::array<std::string_view, 7> kImages = {"jpg", "jpeg", "jpe", "jfif", "png", "webp", "npy"};
constexpr std::array<std::string_view, 14> kUnsupported = {"gif", "bmp", "tif", "tiff", "avif", "heic", "heif",
                                                           "jxl", "jp2", "ppm", "pgm",  "pbm",  "tga",  "svg"};

constexpr std::array<std::string_view, 3> kNotes = {"xml", "json", "txt"};
constexpr std::array<std::string_view, 9> kSounds = {"wav", "flac", "mp3", "ogg", "opus", "m4a", "aac", "aiff", "wma"};

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Collects files by kind; is_image() decides for files without an extension.
class Collector {
 public:
  Collector(FolderScan& scan, const std::function<void(std::int64_t)>& progress) : scan_(scan), progress_(progress) {}

  void count() {
    if (++seen_ % kProgressEvery == 0 && progress_) {
      progress_(seen_);
    }
  }
  template <typename IsImage>
  void add(ScannedFile file, const IsImage& is_image) {
    const std::string_view name = last_part(file.path);
    const std::string end = ending_of(file.path);
    const bool top = name.size() == file.path.size();
    if (name.starts_with('.') || file.path.starts_with("__MACOSX/") || file.path.find("/.") != std::string::npos) {
      scan_.hidden.add(file.path);
    } else if (std::ranges::find(kImages, end) != kImages.end()) {
      scan_.images.push_back(std::move(file));
    } else if (std::ranges::find(kUnsupported, end) != kUnsupported.end()) {
      scan_.unsupported[end].add(file.path);
    } else if (top && name == "labels.csv") {
      scan_.labels = std::move(file);
    } else if (name == "labels.csv" && std::ranges::count(file.path, '/') == 1) {
      scan_.inner_labels.push_back(std::move(file));
    } else if (top && end == "tar") {
      scan_.tars.push_back(file.path);
    } else if (end.empty() && is_image()) {
      scan_.images.push_back(std::move(file));
    } else if (std::ranges::find(kSounds, end) != kSounds.end()) {
      scan_.sounds.add(file.path);
    } else {
      scan_.other.add(file.path);
      if (std::ranges::find(kNotes, end) != kNotes.end()) {
        scan_.notes.push_back(std::move(file));
      }
    }
  }
  void finish() {
    const auto place = [](const ScannedFile& file) { return std::tie(file.path, file.shard); };
    if (!std::ranges::is_sorted(scan_.images, {}, place)) {  // folders are sorted already
      std::ranges::sort(scan_.images, {}, place);
    }
    std::ranges::sort(scan_.notes, {}, place);
    std::ranges::sort(scan_.folders);
    std::ranges::sort(scan_.tars);
    scan_.seen = seen_;
    if (progress_) {
      progress_(seen_);
    }
  }

 private:
  FolderScan& scan_;
  const std::function<void(std::int64_t)>& progress_;
  std::int64_t seen_ = 0;
};

using FolderId = std::pair<dev_t, ino_t>;

// Depth first; chain holds the ids of the folders from the root to here, to detect links back to one of them.
class Walker {
 public:
  Walker(FolderScan& scan, Collector& collector) : scan_(scan), collector_(collector) {}

  void walk(const fs::path& folder, const std::string& relative) {
    struct stat facts {};
    if (::stat(folder.c_str(), &facts) != 0) {
      unreadable(folder, std::error_code(errno, std::generic_category()));
    }
    const FolderId id{facts.st_dev, facts.st_ino};
    if (std::ranges::find(chain_, id) != chain_.end()) {
      scan_.loops.add(relative);
      return;
    }
    chain_.push_back(id);
    if (!relative.empty() && chain_.size() <= 3) {
      scan_.folders.push_back(relative);
    }
    const FolderListing listing = list_folder(folder);
    if (listing.error) {
      unreadable(folder, listing.error);
    }
    scan_.visited.push_back({relative, stamp_from(facts), listing.hash(), listing.steady});
    for (const FolderEntry& entry : listing.entries) {
      visit(folder, entry, relative.empty() ? entry.name : relative + "/" + entry.name);
    }
    chain_.pop_back();
  }

 private:
  [[noreturn]] static void unreadable(const fs::path& folder, const std::error_code& error) {
    fail<DataError>("data.folder", "{}: folder cannot be read: {}; check the path and its permissions",
                    printable(folder.native()), error.message());
  }
  void visit(const fs::path& folder, const FolderEntry& entry, std::string relative) {
    if (entry.kind == EntryKind::kFolder) {
      if (is_hidden_folder(entry.name)) {
        scan_.hidden.add(relative);
      } else {
        walk(folder / entry.name, relative);
      }
      return;
    }
    collector_.count();
    if (entry.kind == EntryKind::kBrokenLink) {
      scan_.broken_links.add(relative);
    } else if (entry.kind == EntryKind::kSpecial) {
      scan_.special.add(relative);
    } else {
      collector_.add({.path = std::move(relative)}, [&] { return entry.kind == EntryKind::kImage; });
    }
  }

  FolderScan& scan_;
  Collector& collector_;
  std::vector<FolderId> chain_;
};

}  // namespace

void Tally::add(std::string_view name) {
  if (count++ == 0 || name < first) {
    first = name;
  }
}

FolderScan scan_folder(const fs::path& folder, const std::function<void(std::int64_t)>& progress) {
  FolderScan scan;
  scan.root = folder;
  Collector collector(scan, progress);
  Walker(scan, collector).walk(folder, "");
  collector.finish();
  return scan;
}

FolderScan scan_tars(const std::vector<fs::path>& tars, const std::function<void(std::int64_t)>& progress) {
  FolderScan scan;
  Collector collector(scan, progress);
  std::vector<std::byte> bytes;
  for (const fs::path& path : tars) {
    const auto shard = static_cast<std::int32_t>(scan.shards.size());
    scan.shards.push_back(std::make_shared<TarFile>(path));
    const TarFile& tar = *scan.shards.back();
    for (const TarMember& member : tar.members()) {
      collector.count();
      collector.add({member.path, shard, member.offset, member.size}, [&] {
        tar.read(member.offset, std::min<std::int64_t>(member.size, 16), bytes);
        return !image_format(bytes).empty();
      });
    }
    for (std::int64_t i = 0; i < tar.passed_over(); ++i) {
      scan.special.add(path.filename().native());
    }
  }
  collector.finish();
  return scan;
}

void describe_passed_over(const FolderScan& scan, std::vector<std::string>& findings) {
  const auto say = [&](const Tally& tally, std::string_view what) {
    if (tally.count > 0) {
      findings.push_back(fmt::format("{} ignored: {}, for example {}", what, tally.count, printable(tally.first)));
    }
  };
  for (const auto& [format, tally] : scan.unsupported) {
    say(tally, fmt::format("images in an unsupported format ({})", format));
  }
  say(scan.sounds, "sound files");
  say(scan.other, "files that are not images");
  say(scan.hidden, "hidden files or folders");
  say(scan.special, "special files (FIFO, device, socket, link in a tar)");
  say(scan.broken_links, "broken links");
  say(scan.loops, "links to a parent folder");
}

}  // namespace stoker::data
