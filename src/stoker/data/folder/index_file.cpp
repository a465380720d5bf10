// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/index_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "stoker/data/folder/byte_source.h"

namespace stoker::data {
namespace {

constexpr std::string_view kMagic = "stoker index 1\n\n";  // includes the version
constexpr std::size_t kNumber = sizeof(std::uint64_t);
constexpr std::size_t kTail = 3 * kNumber;  // total length, XXH3-128 of everything before

class Writer {
 public:
  explicit Writer(const std::function<void(Bytes)>& put) : put_(put) { XXH3_128bits_reset(&state_); }

  void bytes(Bytes piece) {
    constexpr std::size_t kPiece = std::size_t{1} << 16;
    length_ += piece.size();
    if (pending_.size() + piece.size() > kPiece) {
      flush();
    }
    if (piece.size() > kPiece) {
      XXH3_128bits_update(&state_, piece.data(), piece.size());
      put_(piece);
    } else {
      pending_.insert(pending_.end(), piece.begin(), piece.end());
    }
  }
  void number(std::uint64_t value) { bytes(std::as_bytes(std::span(&value, 1))); }
  void block(Bytes piece) {
    number(piece.size());
    bytes(piece);
  }
  void text(std::string_view text) { block(as_bytes(text)); }
  void texts(const std::vector<std::string>& all) {
    number(all.size());
    for (const std::string& each : all) {
      text(each);
    }
  }
  void stamp(const FileStamp& stamp, bool settled) {
    number(stamp.inode);
    number(static_cast<std::uint64_t>(stamp.size));
    number(static_cast<std::uint64_t>(stamp.modified));
    number(static_cast<std::uint64_t>(stamp.changed));
    number(settled ? 1 : 0);
  }
  void finish() {
    flush();
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    const std::array<std::uint64_t, 3> tail = {length_ + kTail, hash.low64, hash.high64};
    put_(std::as_bytes(std::span(tail)));
  }

 private:
  void flush() {
    XXH3_128bits_update(&state_, pending_.data(), pending_.size());
    put_(pending_);
    pending_.clear();
  }

  const std::function<void(Bytes)>& put_;
  XXH3_state_t state_;
  std::vector<std::byte> pending_;
  std::uint64_t length_ = 0;
};

// A reader that fails at the first value that does not fit; from then on it returns empty values.
class Reader {
 public:
  explicit Reader(Bytes bytes) : left_(bytes) {}

  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return good_ && left_.empty(); }
  void refuse() {
    good_ = false;
    left_ = {};
  }
  Bytes bytes(std::uint64_t count) {
    if (count > left_.size()) {
      refuse();
      return {};
    }
    const Bytes piece = left_.first(count);
    left_ = left_.subspan(count);
    return piece;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    if (const Bytes piece = bytes(kNumber); !piece.empty()) {
      std::memcpy(&value, piece.data(), kNumber);
    }
    return value;
  }
  bool yes_or_no() {
    const std::uint64_t value = number();
    if (value > 1) {
      refuse();
    }
    return value == 1;
  }
  // A count of items with at least `bytes` bytes each; fails if the file is too short for them.
  std::uint64_t count(std::size_t each) {
    const std::uint64_t value = number();
    if (value > left_.size() / each) {
      refuse();
      return 0;
    }
    return value;
  }
  Bytes block() { return bytes(number()); }
  std::string text() { return std::string(as_text(block())); }
  std::vector<std::string> texts() {
    std::vector<std::string> all(count(kNumber));
    for (std::string& each : all) {
      each = text();
    }
    return all;
  }
  FileStamp stamp(bool& settled) {
    FileStamp stamp;
    stamp.inode = number();
    stamp.size = static_cast<std::int64_t>(number());
    stamp.modified = static_cast<std::int64_t>(number());
    stamp.changed = static_cast<std::int64_t>(number());
    settled = yes_or_no();
    return stamp;
  }

 private:
  Bytes left_;
  bool good_ = true;
};

void write_split(const IndexedSplit& split, Writer& out) {
  out.text(split.root);
  out.number(split.shards.size());
  for (const std::uint64_t shard : split.shards) {
    out.number(shard);
  }
  out.block(split.ends);
  out.block(split.text);
  out.block(split.places);
  out.number(split.labels.size());
  for (const LabelRun& run : split.labels) {
    out.number(static_cast<std::uint64_t>(run.count));
    out.number(run.label);
  }
}

// Checks that ends ascend and stay inside the text, and that places refer to existing shards.
bool is_sound(const IndexedSplit& split) {
  const std::size_t samples = split.ends.size() / kNumber;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    std::uint64_t end = 0;
    std::memcpy(&end, split.ends.data() + i * kNumber, kNumber);
    if (end < before || end > split.text.size()) {
      return false;
    }
    before = end;
  }
  const std::size_t places = split.shards.empty() ? 0 : samples;
  if (split.ends.size() % kNumber != 0 || split.places.size() != places * sizeof(TarPlace)) {
    return false;
  }
  for (std::size_t i = 0; i < places; ++i) {
    TarPlace place;
    std::memcpy(&place, split.places.data() + i * sizeof place, sizeof place);
    if (place.shard < 0 || place.shard >= std::ssize(split.shards)) {
      return false;
    }
  }
  return true;
}

// Checks that each sample has a class.
std::vector<LabelRun> read_labels(Reader& in, std::size_t samples, std::size_t classes) {
  std::vector<LabelRun> labels(in.count(2 * kNumber));
  std::size_t left = samples;
  for (LabelRun& run : labels) {
    const std::uint64_t count = in.number(), label = in.number();
    if (count > left || label >= classes) {
      in.refuse();
      return {};
    }
    left -= count;
    run = {static_cast<std::int64_t>(count), static_cast<std::uint32_t>(label)};
  }
  if (left > 0) {
    in.refuse();
  }
  return labels;
}

IndexedSplit read_split(Reader& in, const FolderIndex& index) {
  IndexedSplit split;
  split.root = in.text();
  split.shards.resize(in.count(kNumber));
  for (std::uint64_t& shard : split.shards) {
    shard = in.number();
    if (shard >= index.files.size()) {
      in.refuse();
    }
  }
  split.ends = in.block();
  split.text = in.block();
  split.places = in.block();
  if (!is_sound(split)) {
    in.refuse();
  }
  split.labels = read_labels(in, split.ends.size() / kNumber, index.classes.size());
  return split;
}

}  // namespace

void write_index(const FolderIndex& index, const std::function<void(Bytes)>& put) {
  Writer out(put);
  out.bytes(as_bytes(kMagic));
  out.text(index.program);
  out.text(index.path);
  out.number(index.folders.size());
  for (const IndexedFolder& folder : index.folders) {
    out.text(folder.path);
    out.stamp(folder.stamp, folder.settled);
    out.number(folder.listing[0]);
    out.number(folder.listing[1]);
  }
  out.number(index.files.size());
  for (const IndexedFile& file : index.files) {
    out.text(file.path);
    out.stamp(file.stamp, file.settled);
  }
  out.number(static_cast<std::uint64_t>(index.seen));
  out.number(index.has_val ? 1 : 0);
  out.text(index.layout);
  out.texts(index.findings);
  out.texts(index.classes);
  for (const IndexedSplit& split : index.splits) {
    write_split(split, out);
  }
  out.finish();
}

bool index_is_whole(Bytes file) {
  if (file.size() < kMagic.size() + kTail || !as_text(file).starts_with(kMagic)) {
    return false;
  }
  Reader tail(file.last(kTail));
  const std::uint64_t length = tail.number(), low = tail.number(), high = tail.number();
  if (length != file.size()) {
    return false;
  }
  const XXH128_hash_t hash = XXH3_128bits(file.data(), file.size() - kTail);
  return hash.low64 == low && hash.high64 == high;
}

std::optional<FolderIndex> parse_index(Bytes file) {
  if (file.size() < kMagic.size() + kTail || !as_text(file).starts_with(kMagic)) {
    return std::nullopt;
  }
  Reader in(file.subspan(kMagic.size(), file.size() - kMagic.size() - kTail));
  FolderIndex index;
  index.program = in.text();
  index.path = in.text();
  constexpr std::size_t kStamp = 5 * kNumber;
  index.folders.resize(in.count(kNumber + kStamp + 2 * kNumber));
  for (IndexedFolder& folder : index.folders) {
    folder.path = in.text();
    folder.stamp = in.stamp(folder.settled);
    folder.listing = {in.number(), in.number()};
  }
  index.files.resize(in.count(kNumber + kStamp));
  for (IndexedFile& file_read : index.files) {
    file_read.path = in.text();
    file_read.stamp = in.stamp(file_read.settled);
  }
  index.seen = static_cast<std::int64_t>(in.number());
  index.has_val = in.yes_or_no();
  index.layout = in.text();
  index.findings = in.texts();
  index.classes = in.texts();
  for (IndexedSplit& split : index.splits) {
    split = read_split(in, index);
  }
  return in.at_end() ? std::optional(std::move(index)) : std::nullopt;
}

}  // namespace stoker::data
