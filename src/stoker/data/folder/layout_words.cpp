// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/layout_words.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "stoker/data/folder/labels_table.h"

namespace stoker::data {
namespace {

// Names used by data sets such as Pascal VOC, Cityscapes, ADE20K, CamVid, Oxford-IIIT Pet, DRIVE and Carvana.
constexpr std::array<std::string_view, 13> kImageWords = {"images", "image", "imgs",  "img",    "jpegimages",
                                                          "photos", "photo", "input", "inputs", "leftimg8bit",
                                                          "rgb",    "pics",  "frames"};
constexpr std::array<std::string_view, 21> kMaskWords = {"masks",
                                                         "mask",
                                                         "labels",
                                                         "label",
                                                         "annotations",
                                                         "annotation",
                                                         "annots",
                                                         "annot",
                                                         "seg",
                                                         "segmentation",
                                                         "segs",
                                                         "segmentationclass",
                                                         "segmentationobject",
                                                         "gt",
                                                         "gtfine",
                                                         "ground_truth",
                                                         "ground-truth",
                                                         "groundtruth",
                                                         "targets",
                                                         "target",
                                                         "trimaps"};
// Endings of file names; the second list does not decide whether it is a mask.
constexpr std::array<std::string_view, 12> kMaskEndings = {"mask",     "masks",       "seg",    "segmentation",
                                                           "label",    "labels",      "gt",     "annotation",
                                                           "labelids", "instanceids", "gtfine", "manual1"};
constexpr std::array<std::string_view, 5> kOtherEndings = {"leftimg8bit", "color", "colour", "l", "training"};
constexpr std::string_view kJoints = "_-. ";

bool is_among(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

// Removes one of the words and its separator from the end of name: "train_masks" becomes "train". A word alone becomes
// "".
bool cut_word(std::string_view& name, std::span<const std::string_view> words) {
  if (is_among(name, words)) {
    name = {};
    return true;
  }
  const std::size_t joint = name.find_last_of(kJoints);
  if (joint == std::string_view::npos || joint == 0 || !is_among(name.substr(joint + 1), words)) {
    return false;
  }
  name = name.substr(0, joint);
  return true;
}

// "trainannot" as in CamVid: no separator. Only after a split, since "plant" also ends in such a word.
bool cut_annot(std::string_view& name) {
  constexpr std::string_view kAnnot = "annot";
  if (!name.ends_with(kAnnot) || !split_of_name(name.substr(0, name.size() - kAnnot.size()))) {
    return false;
  }
  name.remove_suffix(kAnnot.size());
  return true;
}

// "train2017" becomes "train".
std::string_view without_year(std::string_view name) {
  const std::string_view end = name.substr(name.size() - std::min<std::size_t>(name.size(), 4));
  const bool year = end.size() == 4 && (end.starts_with("19") || end.starts_with("20")) &&
                    std::ranges::all_of(end, [](char c) { return c >= '0' && c <= '9'; });
  return year ? name.substr(0, name.size() - 4) : name;
}

template <typename Take>
void each_part(std::string_view path, const Take& take) {
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    take(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
}

void append_part(std::string& key, std::string_view part) {
  if (!part.empty()) {
    key += key.empty() ? "" : "/";
    key += part;
  }
}

}  // namespace

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view stem_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

ImageRole role_of(std::string_view path) {
  ImageRole role;
  const std::string folder = lower(folder_of(path)), name = lower(stem_of(path));
  each_part(folder, [&](std::string_view part) {
    const bool mask = cut_word(part, kMaskWords) || cut_annot(part);
    if (!mask) {
      (void)cut_word(part, kImageWords);
    }
    role.mask = role.mask || mask;
    append_part(role.key, part);
  });
  std::string_view stem = name;
  const auto cut_ending = [&](std::span<const std::string_view> words) {
    std::string_view shorter = stem;
    const bool cut = cut_word(shorter, words) && !shorter.empty();  // a file may be named "mask"
    stem = cut ? shorter : stem;
    return cut;
  };
  for (bool more = true; more;) {  // "aachen_000000_000019_gtFine_labelIds"
    const bool mask = cut_ending(kMaskEndings);
    role.mask = role.mask || mask;
    more = mask || cut_ending(kOtherEndings);
  }
  append_part(role.key, stem);
  return role;
}

std::string folder_without_words(std::string_view folder) {
  std::string left;
  const std::string small = lower(folder);
  each_part(small, [&](std::string_view part) {
    part = without_year(part);
    if (!cut_word(part, kMaskWords)) {
      (void)cut_word(part, kImageWords);
    }
    append_part(left, split_of_name(part) || part == "trainval" ? std::string_view() : part);
  });
  return left;
}

}  // namespace stoker::data
