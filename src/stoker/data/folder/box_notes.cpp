// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <unordered_set>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/data/folder/folder_listing.h"
#include "stoker/data/folder/foreign_layout.h"
#include "stoker/data/folder/layout_words.h"

namespace stoker::data {
namespace {

constexpr std::size_t kLooks = 16;  // annotation files that are read
constexpr double kAgree = 0.75;     // share of these that must match

// Whether images are in at least two folders with names other than splits; these may be classes.
bool folders_tell_classes(const FolderScan& scan) {
  std::set<std::string> left;
  std::string_view folder = "/";  // of the previous file; files are sorted
  for (const ScannedFile& file : scan.images) {
    if (folder_of(file.path) == folder) {
      continue;
    }
    folder = folder_of(file.path);
    if (std::string rest = folder_without_words(folder);
        !rest.empty() && left.insert(std::move(rest)).second && left.size() > 1) {
      return true;
    }
  }
  return false;
}

std::vector<const ScannedFile*> notes_of(const FolderScan& scan, std::string_view ending) {
  std::vector<const ScannedFile*> notes;
  for (const ScannedFile& note : scan.notes) {
    if (ending_of(note.path) == ending) {
      notes.push_back(&note);
    }
  }
  return notes;
}

// Annotation files with the name of an image.
std::vector<const ScannedFile*> called_as_images(const FolderScan& scan, std::vector<const ScannedFile*> notes) {
  if (notes.empty()) {
    return notes;
  }
  std::unordered_set<std::string_view> stems;
  for (const ScannedFile& image : scan.images) {
    stems.insert(stem_of(image.path));
  }
  std::erase_if(notes, [&](const ScannedFile* note) { return !stems.contains(stem_of(note->path)); });
  return notes;
}

bool is_voc(const std::string& text) {
  return text.find("<annotation") != std::string::npos && text.find("<object>") != std::string::npos &&
         text.find("<bndbox>") != std::string::npos;
}

// A line "class x y width height" (with an optional confidence) or "class polygon"; coordinates are fractions of the
// image size.
bool is_yolo_line(std::string_view line) {
  constexpr double kSlack = 0.01;  // rounding
  std::size_t numbers = 0;
  for (std::size_t at = line.find_first_not_of(" \t\r"); at != std::string_view::npos;
       at = line.find_first_not_of(" \t\r", at)) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    const std::string_view word = line.substr(at, end - at);
    double value = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool whole = error == std::errc() && rest == word.data() + word.size();
    const bool fits =
        numbers == 0 ? value >= 0 && word.find('.') == std::string_view::npos : value >= -kSlack && value <= 1 + kSlack;
    if (!whole || !fits) {
      return false;
    }
    ++numbers;
    at = end;
  }
  return numbers == 5 || numbers == 6 || (numbers >= 7 && numbers % 2 == 1);
}

bool is_yolo(std::string_view text) {
  bool some = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      if (!is_yolo_line(line)) {
        return false;
      }
      some = true;
    }
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return some;
}

bool is_coco(const std::string& text) {
  const auto has = [&](std::string_view member) { return text.find(member) != std::string::npos; };
  return has("\"images\"") && has("\"file_name\"") && has("\"annotations\"") && has("\"bbox\"");
}

struct Notes {
  std::string_view ending, format;
  bool named_as_images;
  std::int64_t head, tail;  // bytes to read; COCO files start with images and end with boxes and categories
  bool (*fits)(const std::string&);
};
constexpr std::int64_t kWhole = 1 << 20;
const std::array kFormats = {
    Notes{.ending = "xml", .format = "Pascal VOC", .named_as_images = true, .head = kWhole, .tail = 0, .fits = is_voc},
    Notes{.ending = "txt",
          .format = "YOLO",
          .named_as_images = true,
          .head = kWhole,
          .tail = 0,
          .fits = [](const std::string& text) { return is_yolo(text); }},
    Notes{
        .ending = "json", .format = "COCO", .named_as_images = false, .head = kWhole, .tail = kWhole, .fits = is_coco},
};

std::optional<ForeignLayout> find_format(const FolderScan& scan, const Notes& format) {
  std::vector<const ScannedFile*> notes = notes_of(scan, format.ending);
  if (format.named_as_images) {
    notes = called_as_images(scan, std::move(notes));
  }
  const std::size_t looks = std::min(kLooks, notes.size());
  std::size_t read = 0, fitting = 0;
  const ScannedFile* example = nullptr;
  for (std::size_t i = 0; i < looks; ++i) {
    const ScannedFile& note = *notes[i * notes.size() / looks];
    const std::string text = ends_of(scan, note, format.head, format.tail);
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
      continue;  // an image without boxes
    }
    ++read;
    if (format.fits(text)) {
      ++fitting;
      example = example == nullptr ? &note : example;
    }
  }
  // For formats not named as images one match is enough: COCO has other .json files beside it (captions, settings).
  const double least = format.named_as_images ? kAgree * static_cast<double>(read) : 1;
  if (example == nullptr || static_cast<double>(fitting) < least) {
    return std::nullopt;
  }
  return ForeignLayout{"detection", fmt::format("{} contains boxes in {} format, and the images are not in class "
                                                "folders",
                                                printable(example->path), format.format)};
}

}  // namespace

std::optional<ForeignLayout> find_boxes(const FolderScan& scan) {
  if (scan.notes.empty() || scan.images.empty() || folders_tell_classes(scan)) {
    return std::nullopt;
  }
  for (const Notes& format : kFormats) {
    if (std::optional<ForeignLayout> found = find_format(scan, format)) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace stoker::data
