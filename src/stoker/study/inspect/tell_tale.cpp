// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>

#include "stoker/base/file.h"
#include "stoker/study/inspect/finding_parts.h"

namespace stoker::study {
namespace {

constexpr std::int64_t kEnough = 20;  // images of a kind; what fewer images share may be chance

using Count = std::map<std::int64_t, std::int64_t>;  // class to images

std::pair<std::int64_t, std::int64_t> largest(const Count& count) {
  return *std::ranges::max_element(count, {}, [](const auto& each) { return each.second; });
}

// kind: the property of an image that might predict its class. Compares two guesses: the largest class among images of
// the same kind, and the largest class of all.
void look_at(const Inspection& found, std::string_view what, const std::function<std::string(const ImageLook&)>& kind,
             std::vector<DataFinding>& findings) {
  std::map<std::string, Count> kinds;
  Count all;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < found.images.size(); ++i) {
    const InspectedImage& image = found.images[i];
    if (image.split == 0 && !found.bad.contains(i)) {
      ++kinds[kind(image.facts)][image.label];
      ++all[image.label];
      ++total;
    }
  }
  if (all.size() < 2) {
    return;
  }
  const auto [usual, blind] = largest(all);
  std::int64_t knowing = 0, most = 0;
  std::string example;
  for (const auto& [name, count] : kinds) {
    std::int64_t images = 0;
    for (const auto& [label, number] : count) {
      images += number;
    }
    const auto [label, number] = largest(count);
    const auto of_usual = count.find(usual);
    knowing += images >= kEnough ? number : of_usual == count.end() ? 0 : of_usual->second;
    if (images >= kEnough && label != usual && number > most) {
      most = number;
      example = fmt::format("{} of the {} images of kind {} are \"{}\"", number, images, name,
                            printable(found.folder.classes[static_cast<std::size_t>(label)]));
    }
  }
  const double mended =
      static_cast<double>(knowing - blind) / static_cast<double>(std::max<std::int64_t>(total - blind, 1));
  if (mended >= kTellTale) {
    const double of = static_cast<double>(total) / 100;
    findings.push_back(finding(
        Grade::kDoubtful, "tell-tale",
        fmt::format("the {} alone predicts the class of {:.0f} % of the training images; guessing "
                    "the largest class is right for {:.0f} %",
                    what, static_cast<double>(knowing) / of, static_cast<double>(blind) / of),
        example, "a network learns this instead of the content; mix formats, colours and sizes over all classes", 0));
  }
}

}  // namespace

std::vector<DataFinding> tell_tales(const Inspection& found) {
  std::vector<DataFinding> findings;
  look_at(
      found, "file format", [](const ImageLook& facts) { return std::string(facts.format); }, findings);
  look_at(
      found, "kind of colours",
      [](const ImageLook& facts) { return facts.grey ? std::string("grey") : mode_of(facts); }, findings);
  look_at(
      found, "size in pixels", [](const ImageLook& facts) { return fmt::format("{} x {}", facts.width, facts.height); },
      findings);
  return findings;
}

}  // namespace stoker::study
