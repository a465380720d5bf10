// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/figures.h"

#include <algorithm>
#include <cmath>

namespace stoker::study {
namespace {

constexpr std::size_t kFewValues = 12, kBins = 24;

// The quantile `share` of sorted values, which must not be empty.
double quantile(const std::vector<double>& values, double share) {
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::llround(share * last))];
}

std::vector<Bin> bins_of(const std::vector<double>& values, Bins kind) {
  std::vector<Bin> bins;
  for (const double value : values) {
    if (bins.empty() || bins.back().from != value) {
      bins.push_back({value, value, 0});
    }
    ++bins.back().count;
    if (bins.size() > kFewValues) {
      break;
    }
  }
  if (bins.size() <= kFewValues) {
    return bins;
  }
  const double least = values.front(), most = values.back();
  const auto edge = [&](std::size_t i) {
    const double share = static_cast<double>(i) / kBins;
    return kind == Bins::kEqualRatio ? least * std::pow(most / least, share) : least * (1 - share) + most * share;
  };
  bins.assign(kBins, {});
  for (std::size_t i = 0; i < kBins; ++i) {
    bins[i].from = edge(i);
    bins[i].to = edge(i + 1);
  }
  bins.back().to = values.back();
  std::size_t bin = 0;
  for (const double value : values) {
    while (bin + 1 < kBins && value >= bins[bin + 1].from) {
      ++bin;
    }
    ++bins[bin].count;
  }
  return bins;
}

std::vector<SplitCount> splits_of(const Inspection& found) {
  std::vector<SplitCount> splits(3);
  for (int i = 0; i < 3; ++i) {
    const data::ImageSplit& split = found.split(i);
    SplitCount& count = splits[static_cast<std::size_t>(i)];
    count.name = split.name;
    count.images = split.size();
    count.by_class = split.labels.counts(found.folder.classes.size());
  }
  for (std::size_t i = 0; i < found.images.size(); ++i) {
    SplitCount& count = splits[static_cast<std::size_t>(found.images[i].split)];
    ++count.looked;
    count.bad += found.bad.contains(i) ? 1 : 0;
  }
  std::erase_if(splits, [](const SplitCount& each) { return each.images == 0; });
  return splits;
}

}  // namespace

Distribution distribution_of(std::vector<double> values, Bins bins) {
  Distribution result;
  if (values.empty()) {
    return result;
  }
  std::ranges::sort(values);
  result.least = values.front(), result.most = values.back();
  result.low = quantile(values, 0.05), result.median = quantile(values, 0.5), result.high = quantile(values, 0.95);
  result.bins = bins_of(values, bins);
  return result;
}

std::string mode_of(const ImageLook& facts) {
  switch (facts.channels) {
    case 1: return "grey";
    case 2: return "grey + alpha";
    case 4: return facts.format == "JPEG" ? "CMYK" : "colour + alpha";
    default: return "colour";
  }
}

InspectFigures figures_of(const Inspection& found) {
  InspectFigures figures;
  figures.splits = splits_of(found);
  std::vector<double> widths, heights, aspects, bytes;
  for (std::size_t i = 0; i < found.images.size(); ++i) {
    const InspectedImage& image = found.images[i];
    figures.bytes += image.bytes;
    if (found.bad.contains(i)) {
      continue;
    }
    const ImageLook& facts = image.facts;
    ++figures.good;
    ++figures.formats[std::string(facts.format)];
    ++figures.modes[mode_of(facts)];
    ++figures.orientations[facts.orientation];
    figures.grey = figures.grey && facts.grey;
    widths.push_back(facts.width);
    heights.push_back(facts.height);
    aspects.push_back(static_cast<double>(facts.width) / facts.height);
    bytes.push_back(static_cast<double>(image.bytes));
  }
  figures.width = distribution_of(std::move(widths), Bins::kEqualRatio);
  figures.height = distribution_of(std::move(heights), Bins::kEqualRatio);
  figures.aspect = distribution_of(std::move(aspects), Bins::kEqualRatio);
  figures.file_bytes = distribution_of(std::move(bytes), Bins::kEqualRatio);
  for (std::size_t channel = 0; figures.good > 0 && channel < (figures.grey ? 1U : 3U); ++channel) {
    figures.mean.push_back(found.sums.mean(channel));
    figures.deviation.push_back(found.sums.deviation(channel));
  }
  return figures;
}

}  // namespace stoker::study
