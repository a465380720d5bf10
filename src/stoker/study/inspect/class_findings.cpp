// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "stoker/base/file.h"
#include "stoker/study/inspect/finding_parts.h"

namespace stoker::study {
namespace {

class ClassFindings {
 public:
  ClassFindings(const Inspection& found, const InspectFigures& figures) : found_(found), figures_(figures) {}

  std::vector<DataFinding> all() {
    classes_that_train_lacks();
    classes();
    return std::move(findings_);
  }

 private:
  [[nodiscard]] const SplitCount* split_named(std::string_view name) const {
    const auto at = std::ranges::find(figures_.splits, name, &SplitCount::name);
    return at == figures_.splits.end() ? nullptr : &*at;
  }

  void add_classes(Grade grade, std::string id, std::string_view what, const std::vector<std::size_t>& classes,
                   std::string advice) {
    if (!classes.empty()) {
      findings_.push_back(finding(grade, std::move(id),
                                  fmt::format("{} of {} classes {} {}", classes.size(), found_.folder.classes.size(),
                                              is_are(static_cast<std::int64_t>(classes.size())), what),
                                  fmt::format("\"{}\"", printable(found_.folder.classes[classes.front()])),
                                  std::move(advice), static_cast<std::int64_t>(classes.size())));
    }
  }

  void classes_that_train_lacks() {
    if (found_.folder.classes.size() == 1) {
      findings_.push_back(finding(Grade::kWrong, "one-class", "there is only one class",
                                  fmt::format("\"{}\"", printable(found_.folder.classes.front())),
                                  "classification needs at least two", 1));
    }
    const SplitCount* train = split_named("train");
    if (train == nullptr) {
      findings_.push_back(finding(Grade::kWrong, "no-train", "there are no images to train on", "", "", 0));
      return;
    }
    add_classes(Grade::kWrong, "unknown-class", "without an image in train; `stoker train` stops at them",
                classes_with(*train, 0, 0), "add images of these classes to train, or remove the classes");
  }

  static std::vector<std::size_t> classes_with(const SplitCount& split, std::int64_t least, std::int64_t most) {
    std::vector<std::size_t> classes;
    for (std::size_t i = 0; i < split.by_class.size(); ++i) {
      if (split.by_class[i] >= least && split.by_class[i] <= most) {
        classes.push_back(i);
      }
    }
    return classes;
  }

  void classes() {
    for (const SplitCount& split : figures_.splits) {
      if (split.name != "train") {
        add_classes(Grade::kDoubtful, "missing",
                    fmt::format("without an image in {}; its metrics do not cover them", split.name),
                    classes_with(split, 0, 0), "add some images if possible");
      }
    }
    const SplitCount* train = split_named("train");
    if (train == nullptr || found_.folder.classes.size() < 2) {
      return;
    }
    const std::vector<std::size_t> there = classes_with(*train, 1, train->images);
    const auto by_size = [&](std::size_t label) { return train->by_class[label]; };
    const std::size_t least = *std::ranges::min_element(there, {}, by_size),
                      most = *std::ranges::max_element(there, {}, by_size);
    const double ratio = static_cast<double>(by_size(most)) / static_cast<double>(by_size(least));
    if (ratio >= kImbalance) {
      findings_.push_back(finding(
          Grade::kDoubtful, "imbalance",
          fmt::format("the largest class of train has {:.0f} times as many images as the smallest", ratio),
          fmt::format("\"{}\" has {}, \"{}\" has {}", printable(found_.folder.classes[most]), thousands(by_size(most)),
                      printable(found_.folder.classes[least]), thousands(by_size(least))),
          "class_weights=balanced gives every class the same weight, sampling=balanced draws every class equally "
          "often; "
          "look at the metrics per class",
          0));
    }
    add_classes(Grade::kDoubtful, "few", fmt::format("represented by fewer than {} images in train", kFewImages),
                classes_with(*train, 1, kFewImages - 1),
                "a model learns little from so few images; add more if possible");
  }

  const Inspection& found_;
  const InspectFigures& figures_;
  std::vector<DataFinding> findings_;
};

}  // namespace

std::vector<DataFinding> class_findings(const Inspection& found, const InspectFigures& figures) {
  return ClassFindings(found, figures).all();
}

}  // namespace stoker::study
