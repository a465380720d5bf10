// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/load/row_list.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "stoker/base/fmt.h"
#include "stoker/base/version.h"

namespace stoker::data {
namespace {

// The head of a list: text, number of entries, length of the whole file.
constexpr std::size_t kText = 48, kHead = kText + 2 * sizeof(std::uint64_t);
constexpr std::size_t kPiece = std::size_t{1} << 16;  // bytes written at a time

// Another version may have found other rows. Padded with zeros.
std::array<char, kText> head_text() {
  std::array<char, kText> text{};
  fmt::format_to_n(text.data(), text.size() - 1, "stoker rows 1 {}\n", kVersion);
  return text;
}

struct Slot {
  std::uint64_t hash = 0;
  std::uint32_t bytes = 0;
  std::uint32_t check = 0;
  std::uint64_t place = 0;  // offset in the file, then 16 bits of length
};
static_assert(sizeof(Slot) == kRowListSlot);

// Depends on the key, so that rows of another image do not fit.
std::uint32_t check_of(const ContentKey& key, Bytes packed) {
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(packed.data(), packed.size(), key.hash ^ key.bytes));
}

void put_number(std::uint32_t value, std::vector<std::byte>& packed) {
  for (; value >= 0x80; value >>= 7) {
    packed.push_back(static_cast<std::byte>(value | 0x80));
  }
  packed.push_back(static_cast<std::byte>(value));
}

// Removes a number from the front; false if there is none.
bool take_number(Bytes& packed, std::uint32_t& value) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < 5 && i < packed.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(packed[i]);
    sum |= (byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      packed = packed.subspan(i + 1);
      value = static_cast<std::uint32_t>(sum);
      return sum <= 0xFFFF'FFFF && (i == 0 || byte != 0);  // the shortest form only
    }
  }
  return false;
}

// Small numbers for small differences of either sign.
std::uint32_t step_between(std::int16_t before, std::int16_t now) {
  const auto step = static_cast<std::uint16_t>(now - before);
  const auto folded = static_cast<std::uint16_t>(step << 1);
  return step < 0x8000 ? folded : static_cast<std::uint16_t>(~folded);
}

std::int16_t after_step(std::int16_t before, std::uint32_t step) {
  const auto half = static_cast<std::uint16_t>(step >> 1);
  return static_cast<std::int16_t>(before + (step % 2 == 0 ? half : static_cast<std::uint16_t>(~half)));
}

Slot slot_at(Bytes file, std::size_t number) {
  Slot slot;
  std::memcpy(&slot, file.data() + kHead + number * sizeof slot, sizeof slot);
  return slot;
}

// The rows that a slot points to; empty if they do not belong to it.
Bytes rows_of(const Slot& slot, Bytes file) {
  const std::uint64_t offset = slot.place >> 16, length = slot.place & 0xFFFF;
  if (offset > file.size() || length > file.size() - offset) {
    return {};
  }
  const Bytes packed = file.subspan(offset, length);
  return check_of({slot.hash, slot.bytes}, packed) == slot.check ? packed : Bytes();
}

}  // namespace

ContentKey content_key(Bytes file) {
  return {XXH3_64bits(file.data(), file.size()), static_cast<std::uint32_t>(file.size())};
}

void pack_rows(const JpegRows& rows, std::vector<std::byte>& packed) {
  packed.clear();
  JpegRow before;
  for (const JpegRow& row : rows) {
    put_number(row.bit - before.bit, packed);
    for (std::size_t i = 0; i < row.dc.size(); ++i) {
      put_number(step_between(before.dc[i], row.dc[i]), packed);
    }
    before = row;
  }
}

bool unpack_rows(Bytes packed, JpegRows& rows) {
  rows.clear();
  JpegRow row;
  while (!packed.empty()) {
    std::uint32_t value = 0;
    bool good = take_number(packed, value);
    row.bit += value;
    for (std::int16_t& dc : row.dc) {
      good = good && take_number(packed, value) && value <= 0xFFFF;
      dc = after_step(dc, value);
    }
    if (!good) {
      rows.clear();
      return false;
    }
    rows.push_back(row);
  }
  return true;
}

RowList::RowList(std::shared_ptr<const MappedFile> file, std::size_t count)
    : file_(std::move(file)), count_(count), used_(new std::atomic<bool>[count]()) {}

std::shared_ptr<const RowList> RowList::open(const std::filesystem::path& path, std::size_t most_read) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path, most_read);
  const std::array<char, kText> text = head_text();
  if (!file || file->bytes().size() < kHead || std::memcmp(file->bytes().data(), text.data(), kText) != 0) {
    return nullptr;
  }
  std::array<std::uint64_t, 2> numbers{};
  std::memcpy(numbers.data(), file->bytes().data() + kText, sizeof numbers);
  const auto [count, length] = numbers;
  if (length != file->bytes().size() || count > (length - kHead) / sizeof(Slot)) {
    return nullptr;
  }
  return std::shared_ptr<const RowList>(new RowList(std::move(file), count));
}

Bytes RowList::find(const ContentKey& key) const {
  const Bytes file = file_->bytes();
  std::size_t low = 0, high = count_;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const Slot slot = slot_at(file, middle);
    if (comes_before({slot.hash, slot.bytes}, key)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == count_) {
    return {};
  }
  const Slot slot = slot_at(file, low);
  if (slot.hash != key.hash || slot.bytes != key.bytes) {
    return {};
  }
  used_[low].store(true, std::memory_order_relaxed);
  return rows_of(slot, file);
}

PackedRows RowList::entry(std::size_t number) const {
  const Slot slot = slot_at(file_->bytes(), number);
  return {{slot.hash, slot.bytes}, rows_of(slot, file_->bytes()), used_[number].load(std::memory_order_relaxed)};
}

bool comes_before(const ContentKey& a, const ContentKey& b) {
  return std::tie(a.hash, a.bytes) < std::tie(b.hash, b.bytes);
}

void write_row_list(std::span<const PackedRows> entries, const std::function<void(Bytes)>& put) {
  std::uint64_t end = kHead + entries.size() * sizeof(Slot);
  std::vector<std::byte> pending;
  pending.reserve(2 * kPiece);
  const auto add = [&](Bytes bytes) {
    pending.insert(pending.end(), bytes.begin(), bytes.end());
    if (pending.size() >= kPiece) {
      put(pending);
      pending.clear();
    }
  };
  std::uint64_t length = end;
  for (const PackedRows& entry : entries) {
    length += entry.packed.size();
  }
  const std::array<char, kText> text = head_text();
  const std::array<std::uint64_t, 2> numbers = {entries.size(), length};
  add(std::as_bytes(std::span(text)));
  add(std::as_bytes(std::span(numbers)));
  for (const PackedRows& entry : entries) {
    const Slot slot{entry.key.hash, entry.key.bytes, check_of(entry.key, entry.packed),
                    end << 16 | entry.packed.size()};
    add(std::as_bytes(std::span(&slot, 1)));
    end += entry.packed.size();
  }
  for (const PackedRows& entry : entries) {
    add(entry.packed);
  }
  put(pending);
}

}  // namespace stoker::data
