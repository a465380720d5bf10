// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "stoker/base/file.h"
#include "stoker/study/inspect/finding_parts.h"

namespace stoker::study {
namespace {

constexpr std::string_view kAlikeAdvice =
    "look at them before you remove any: frames of a video, products on a white background or planes in the sky "
    "also count as similar";

class PairFindings {
 public:
  explicit PairFindings(const Inspection& found) : found_(found) {}

  std::vector<DataFinding> all() {
    same_in_splits();
    same_with_labels();
    same_copies();
    alike();
    return std::move(findings_);
  }

 private:
  [[nodiscard]] const InspectedImage& image(std::size_t place) const { return found_.images[place]; }
  [[nodiscard]] std::string class_name(std::int64_t label) const {
    return printable(found_.folder.classes[static_cast<std::size_t>(label)]);
  }
  // "a/1.jpg (train, cat) and b/1.jpg (val, dog)"
  [[nodiscard]] std::string both(std::size_t a, std::size_t b) const {
    const auto one = [this](std::size_t place) {
      return fmt::format("{} ({}, {})", found_.name(place), found_.split(image(place).split).name,
                         class_name(image(place).label));
    };
    return fmt::format("{} and {}", one(a), one(b));
  }

  // The groups whose members differ in key. The first member that differs is moved next to the first member.
  template <typename Key>
  std::vector<ImageGroup> that_differ(const std::vector<ImageGroup>& groups, Key key) const {
    std::vector<ImageGroup> chosen;
    for (ImageGroup group : groups) {
      const auto other = std::ranges::find_if(
          group, [&](std::size_t place) { return key(image(place)) != key(image(group.front())); });
      if (other != group.end()) {
        std::rotate(group.begin() + 1, other, other + 1);
        chosen.push_back(std::move(group));
      }
    }
    return chosen;
  }
  static int split_of(const InspectedImage& each) { return each.split; }
  static std::int64_t label_of(const InspectedImage& each) { return each.label; }

  // Images in another split than the first image of their group.
  [[nodiscard]] std::int64_t elsewhere(const std::vector<ImageGroup>& groups) const {
    std::int64_t count = 0;
    for (const ImageGroup& group : groups) {
      const int first = image(*std::ranges::min_element(group)).split;
      count += std::ranges::count_if(group, [&](std::size_t place) { return image(place).split != first; });
    }
    return count;
  }
  static std::int64_t members(const std::vector<ImageGroup>& groups) {
    std::int64_t count = 0;
    for (const ImageGroup& group : groups) {
      count += static_cast<std::int64_t>(group.size());
    }
    return count;
  }

  void add_groups(Grade grade, std::string id, std::string text, std::string advice, std::int64_t count,
                  std::vector<ImageGroup> groups) {
    std::string example = both(groups.front()[0], groups.front()[1]);
    findings_.push_back(finding(grade, std::move(id), std::move(text), std::move(example), std::move(advice), count));
    findings_.back().groups = std::move(groups);
  }
  void same_in_splits() {
    std::vector<ImageGroup> groups = that_differ(found_.same, split_of);
    if (const std::int64_t count = elsewhere(groups); count > 0) {
      add_groups(Grade::kWrong, "leak",
                 fmt::format("{} of val or test {} also in another split, pixel for pixel; the metrics are too good",
                             images_text(count), is_are(count)),
                 "remove them from one of the splits", count, std::move(groups));
    }
  }

  void same_with_labels() {
    std::vector<ImageGroup> groups = that_differ(found_.same, label_of);
    if (const std::int64_t count = members(groups); count > 0) {
      add_groups(Grade::kWrong, "labels",
                 fmt::format("{} have the same pixels as an image of another class", images_text(count)),
                 "decide which class is right, and remove the others", count, std::move(groups));
    }
  }

  void same_copies() {
    std::int64_t copies = 0;
    std::vector<ImageGroup> groups;
    for (const ImageGroup& group : found_.same) {
      std::set<std::pair<int, std::int64_t>> different;
      for (const std::size_t place : group) {
        different.emplace(image(place).split, image(place).label);
      }
      copies += static_cast<std::int64_t>(group.size() - different.size());
      if (different.size() < group.size()) {
        groups.push_back(group);
      }
    }
    if (copies > 0) {
      add_groups(Grade::kDoubtful, "same",
                 fmt::format("{} {} another image of the same split and class, pixel for pixel", images_text(copies),
                             copies == 1 ? "repeats" : "repeat"),
                 "remove them, unless they are meant to have more weight", copies, std::move(groups));
    }
  }

  void alike() {
    std::vector<ImageGroup> splits = that_differ(found_.alike, split_of), labels = that_differ(found_.alike, label_of),
                            rest;
    std::ranges::copy_if(found_.alike, std::back_inserter(rest), [&](const ImageGroup& group) {
      return std::ranges::all_of(group, [&](std::size_t place) {
        const InspectedImage &one = image(place), &first = image(group.front());
        return one.split == first.split && one.label == first.label;
      });
    });
    if (const std::int64_t count = elsewhere(splits); count > 0) {
      add_groups(
          Grade::kDoubtful, "alike-leak",
          fmt::format("{} {} similar to an image of another split", images_text(count), count == 1 ? "is" : "are"),
          std::string(kAlikeAdvice), count, std::move(splits));
    }
    if (const std::int64_t count = members(labels); count > 0) {
      add_groups(Grade::kDoubtful, "alike-labels",
                 fmt::format("{} are similar to an image of another class", images_text(count)),
                 std::string(kAlikeAdvice), count, std::move(labels));
    }
    if (const std::int64_t count = members(rest); count > 0) {
      add_groups(Grade::kRemark, "alike",
                 fmt::format("{} are similar to another image of the same split and class", images_text(count)),
                 std::string(kAlikeAdvice), count, std::move(rest));
    }
  }

  const Inspection& found_;
  std::vector<DataFinding> findings_;
};

}  // namespace

std::vector<DataFinding> pair_findings(const Inspection& found) { return PairFindings(found).all(); }

}  // namespace stoker::study
