// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/findings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "stoker/base/file.h"
#include "stoker/study/inspect/finding_parts.h"

namespace stoker::study {
namespace {

// Collects all findings of an inspection.
class Findings {
 public:
  Findings(const Inspection& found, const InspectFigures& figures) : found_(found), figures_(figures) {}

  std::vector<DataFinding> all() {
    add_all(pair_findings(found_));
    bad();
    add_all(class_findings(found_, figures_));
    by_image();
    add_all(tell_tales(found_));
    kinds_of_images();
    for (const std::string& remark : found_.folder.findings) {
      findings_.push_back(finding(Grade::kRemark, "layout", remark, "", "", 0));
    }
    not_all();
    std::ranges::stable_sort(findings_, {}, &DataFinding::grade);
    return std::move(findings_);
  }

 private:
  void add_all(std::vector<DataFinding> more) { std::ranges::move(more, std::back_inserter(findings_)); }
  [[nodiscard]] const InspectedImage& image(std::size_t place) const { return found_.images[place]; }
  void add_images(Grade grade, std::string id, std::string text, std::string example, std::string advice,
                  std::vector<std::size_t> places) {
    const auto count = static_cast<std::int64_t>(places.size());
    findings_.push_back(finding(grade, std::move(id), std::move(text), std::move(example), std::move(advice), count));
    findings_.back().images = std::move(places);
  }

  void bad() {
    if (found_.bad.empty()) {
      return;
    }
    std::vector<std::size_t> places;
    for (const auto& [place, reason] : found_.bad) {
      places.push_back(place);
    }
    const auto count = static_cast<std::int64_t>(places.size()), of = static_cast<std::int64_t>(found_.images.size());
    const double share = 100 * static_cast<double>(count) / static_cast<double>(of);
    const auto& [first, reason] = *found_.bad.begin();
    add_images(Grade::kWrong, "bad",
               fmt::format("{} of {} ({} %) cannot be read", thousands(count), images_text(of),
                           share < 10 ? fmt::format("{:.2g}", share) : fmt::format("{:.0f}", share)),
               fmt::format("{}: {}", found_.name(first), printable(reason)),
               "repair or remove them; training replaces a few (bad_budget=0.001) and stops if there are more",
               std::move(places));
  }

  template <typename Test>
  std::vector<std::size_t> good_images(Test test) const {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < found_.images.size(); ++i) {
      if (!found_.bad.contains(i) && test(image(i).facts)) {
        places.push_back(i);
      }
    }
    return places;
  }

  // what: the rest of the sentence after "is" or "are".
  template <typename Test>
  void add_if(Grade grade, std::string id, std::string_view what, std::string advice, Test test) {
    std::vector<std::size_t> places = good_images(test);
    if (places.empty()) {
      return;
    }
    const auto count = static_cast<std::int64_t>(places.size());
    const ImageLook& first = image(places.front()).facts;
    std::string example = fmt::format("{}, {} x {}", found_.name(places.front()), first.width, first.height);
    add_images(grade, std::move(id), fmt::format("{} {} {}", images_text(count), is_are(count), what),
               std::move(example), std::move(advice), std::move(places));
  }

  void by_image() {
    add_if(Grade::kDoubtful, "plain", "of one colour",
           "check for failed downloads or empty frames; a model learns nothing from them",
           [](const ImageLook& facts) { return facts.plain; });
    add_if(Grade::kDoubtful, "tiny", fmt::format("less than {} pixels wide or high", kTinySide),
           "they are enlarged to the size of the others; check for thumbnails",
           [](const ImageLook& facts) { return std::min(facts.width, facts.height) < kTinySide; });
    add_if(Grade::kDoubtful, "extreme",
           fmt::format("very long: one side is more than {} times the other", kExtremeAspect),
           "a crop shows only a small part of them; check for strips, panoramas or scans", [](const ImageLook& facts) {
             return std::max(facts.width, facts.height) > kExtremeAspect * std::min(facts.width, facts.height);
           });
  }

  void kinds_of_images() {
    if (!figures_.grey) {
      add_if(Grade::kRemark, "grey", "grey, others are in colour",
             "they are trained as grey images; make sure that every class has some",
             [](const ImageLook& facts) { return facts.grey; });
    }
    add_if(Grade::kRemark, "alpha", "stored with an alpha channel; it is dropped, not blended",
           "transparent areas show their hidden colours; blend the images first if that matters",
           [](const ImageLook& facts) { return mode_of(facts).ends_with("alpha"); });
    add_if(Grade::kRemark, "cmyk", "stored as CMYK and converted without a colour profile", "",
           [](const ImageLook& facts) { return mode_of(facts) == "CMYK"; });
    add_if(Grade::kRemark, "turned", "rotated as their EXIF orientation says",
           "other programs may ignore the EXIF orientation",
           [](const ImageLook& facts) { return facts.orientation != 1; });
  }

  void not_all() {
    const auto looked = static_cast<std::int64_t>(found_.images.size());
    if (looked < found_.total) {
      findings_.push_back(
          finding(Grade::kRemark, "sample",
                  fmt::format("only {} of {} were inspected{}; duplicates and bad files among the rest are unknown",
                              thousands(looked), images_text(found_.total), found_.stopped ? " before it was stopped" : ""),
                  "", "", looked));
    }
    if (!found_.all_compared) {
      findings_.push_back(finding(Grade::kRemark, "not-compared",
                                  "too many images have nearly the same hash; not all similar images were searched", "",
                                  "", 0));
    }
  }

  const Inspection& found_;
  const InspectFigures& figures_;
  std::vector<DataFinding> findings_;
};

}  // namespace

std::string_view text_of(Grade grade) {
  switch (grade) {
    case Grade::kWrong: return "wrong";
    case Grade::kDoubtful: return "doubtful";
    case Grade::kRemark: break;
  }
  return "remark";
}

std::vector<DataFinding> findings_of(const Inspection& found, const InspectFigures& figures) {
  return Findings(found, figures).all();
}

}  // namespace stoker::study
