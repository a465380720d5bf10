// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/known_bad.h"

#include <charconv>
#include <optional>

#include "stoker/base/csv_cell.h"
#include "stoker/base/error.h"
#include "stoker/base/version.h"
#include "stoker/data/decode/image_decode.h"
#include "stoker/data/folder/cache_folder.h"
#include "stoker/data/load/bad_samples.h"
#include "stoker/data/table/csv.h"

namespace stoker::data {
namespace {

constexpr std::int64_t kWriteEvery = 10'000'000'000;  // ns

// First lines of a list. A list of another version or another kind of decoding is ignored.
std::string head_of(const KnownBadOptions& options) {
  return fmt::format("stoker {} found bad,{} channels\nsample,offset,inode,size,modified,changed,reason\n", kVersion,
                     options.channels);
}

// The rows of the list without its last line, the hash; empty if the hash does not match.
std::string_view checked(std::string_view text) {
  const std::size_t end = text.size() < 2 ? std::string_view::npos : text.rfind('\n', text.size() - 2);
  if (end == std::string_view::npos || text.substr(end + 1) != hex_hash(text.substr(0, end + 1)) + "\n") {
    return {};
  }
  return text.substr(0, end + 1);
}

template <typename Number>
bool read_number(const std::string& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

KnownBad::KnownBad(std::shared_ptr<const ByteSource> source, KnownBadOptions options)
    : source_(std::move(source)), options_(std::move(options)) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::canonical(source_->place(), error);
  if (options_.cache.empty() || error) {
    return;
  }
  file_ = options_.cache / "bad" /
          fmt::format("{}-{}{}.csv", hex_hash(place.native()), options_.channels, options_.strict ? "" : "-lenient");
  for (Entry& entry : read()) {
    const std::int64_t index = find(entry);
    if (index < 0 || options_.retry || source_->file_of(index) != entry.file) {
      changed_ = changed_ || index >= 0;
      continue;
    }
    known_.emplace(index, entry.reason);
    found_.emplace(index, std::move(entry));
  }
}

std::vector<KnownBad::Entry> KnownBad::read() const {
  std::vector<Entry> entries;
  try {
    const std::string text = read_text(file_), head = head_of(options_);
    const std::string_view rows = checked(text);
    if (!rows.starts_with(head)) {
      return {};
    }
    CsvReader reader(rows.substr(head.size()), file_.native());
    for (std::vector<std::string> row; reader.next(row);) {
      SampleFile file;
      FileStamp& stamp = file.stamp;
      if (row.size() == 7 && read_number(row[1], file.offset) && read_number(row[2], stamp.inode) &&
          read_number(row[3], stamp.size) && read_number(row[4], stamp.modified) &&
          read_number(row[5], stamp.changed)) {
        entries.push_back({row.front(), file, row.back()});
      }
    }
  } catch (const DataError&) {
    return {};  // there is no list
  }
  return entries;
}

std::int64_t KnownBad::find(const Entry& entry) const {
  std::int64_t low = 0, high = source_->size();
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (source_->key(middle) < entry.key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  std::int64_t found = -1;
  for (; low < source_->size() && source_->key(low) == entry.key; ++low) {
    const std::optional<SampleFile> file = source_->file_of(low);
    if (file && file->offset == entry.file.offset) {  // with several tar files, the unchanged one
      found = found < 0 || file->stamp == entry.file.stamp ? low : found;
    }
  }
  return found;
}

KnownBad::~KnownBad() {
  if (changed_) {
    try {
      write();
    } catch (const std::exception&) {  // out of memory: all images are tried again
    }
  }
}

void KnownBad::refuse(std::int64_t index) const {
  if (const auto found = known_.find(index); found != known_.end()) {
    fail<DataError>("data.known_bad", "{}: {} (known bad and unchanged; retry_bad=on tries it again)",
                    source_->name(index), found->second);
  }
}

bool KnownBad::is_hopeless(std::int64_t index) const {
  std::vector<std::byte> bytes;
  source_->read(index, bytes);
  const std::string name = source_->name(index);
  const DecodeLimits limits{.strict = options_.strict};
  ImageDecoder decoder;
  ImageDecoder::Size size;
  try {
    size = decoder.open(bytes, options_.channels, limits, name);
  } catch (const DataError&) {
    return true;
  }
  // A file is decoded from its first row to the last requested one. So every region needs the first pixel, which is in
  // one of the corners, since the image may be rotated.
  for (const int x : {0, size.width - 1}) {
    for (const int y : {0, size.height - 1}) {
      try {
        (void)decoder.open(bytes, options_.channels, limits, name);
        (void)decoder.decode({x, y, 1, 1}, name);
        return false;
      } catch (const DataError&) {
        continue;
      }
    }
  }
  return true;
}

void KnownBad::learn(std::int64_t index, std::string_view reason) {
  if (file_.empty()) {
    return;
  }
  try {
    const std::optional<SampleFile> before = source_->file_of(index);
    if (!before || !is_settled(before->stamp, options_.clock()) || !is_hopeless(index) ||
        source_->file_of(index) != before) {
      return;
    }
    const std::lock_guard lock(mutex_);
    found_[index] = {std::string(source_->key(index)), *before, without_name(reason, source_->name(index))};
    changed_ = true;
    if (options_.clock() - written_at_ >= kWriteEvery) {  // so that a killed run keeps most of them
      write();
    }
  } catch (const std::exception&) {
    return;  // unreadable or out of memory: may be temporary
  }
}

void KnownBad::write() {
  std::string text = head_of(options_);
  const auto add = [&](const Entry& entry) {
    const FileStamp& stamp = entry.file.stamp;
    text += fmt::format("{},{},{},{},{},{},{}\n", csv_cell(entry.key), entry.file.offset, stamp.inode, stamp.size,
                        stamp.modified, stamp.changed, csv_cell(entry.reason));
  };
  for (const Entry& entry : read()) {  // of another split, or found by another process
    const std::int64_t index = find(entry);
    const bool others = !found_.contains(index) && !options_.retry;
    if (index < 0 || (others && source_->file_of(index) == entry.file)) {
      add(entry);
    }
  }
  for (const auto& [index, entry] : found_) {
    add(entry);
  }
  text += hex_hash(text) + "\n";
  written_at_ = options_.clock();
  try {
    std::error_code error;
    std::filesystem::create_directories(file_.parent_path(), error);
    write_file_atomically(file_, text);
    changed_ = false;
  } catch (const IoError&) {
    return;  // read-only or full: the images are tried again next time
  }
}

}  // namespace stoker::data
