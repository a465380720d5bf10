// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/same.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace stoker::study {
namespace {

constexpr std::int64_t kMostComparisons = 4'000'000'000;  // about ten seconds

// Disjoint sets; the root of a set is its smallest member.
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0); }
  std::size_t root(std::size_t i) {
    while (parent_[i] != i) {
      i = parent_[i] = parent_[parent_[i]];
    }
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    a = root(a), b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }
  // Sets with at least two members.
  std::vector<ImageGroup> groups() {
    std::vector<std::pair<std::size_t, std::size_t>> members;  // root, member
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      members.emplace_back(root(i), i);
    }
    std::ranges::sort(members);
    std::vector<ImageGroup> groups;
    for (std::size_t i = 0; i < members.size();) {
      std::size_t end = i + 1;
      while (end < members.size() && members[end].first == members[i].first) {
        ++end;
      }
      if (end - i >= 2) {
        ImageGroup& group = groups.emplace_back();
        std::transform(members.begin() + static_cast<std::ptrdiff_t>(i),
                       members.begin() + static_cast<std::ptrdiff_t>(end), std::back_inserter(group),
                       [](const auto& each) { return each.second; });
      }
      i = end;
    }
    return groups;
  }

 private:
  std::vector<std::size_t> parent_;
};

struct Look {
  std::uint64_t bits = 0;
  std::size_t image = 0;
  const ImageLook* facts = nullptr;
};

bool near(const Look& a, const Look& b) {
  return std::popcount(a.bits ^ b.bits) <= kAlikeBits &&
         std::ranges::equal(a.facts->tint, b.facts->tint,
                            [](int one, int other) { return std::abs(one - other) <= kAlikeTint; });
}

// Two hashes that differ in at most kAlikeBits bits agree in one of kAlikeBits + 1 bands: only those are compared.
constexpr int kBands = kAlikeBits + 1, kBandBits = 64 / kBands;

std::uint64_t band_of(std::uint64_t bits, int band) {
  return bits >> (band * kBandBits) & ((std::uint64_t{1} << kBandBits) - 1);
}

// Joins similar images within looks[first, last), which agree in a band.
void join_alike(std::span<const Look> looks, Sets& sets) {
  for (std::size_t i = 0; i < looks.size(); ++i) {
    for (std::size_t k = i + 1; k < looks.size(); ++k) {
      if (near(looks[i], looks[k])) {
        sets.join(looks[i].image, looks[k].image);
      }
    }
  }
}

// The first image of each set of equal images, if it has enough firm bits.
std::vector<Look> distinct_looks(std::span<const ImageLook* const> images) {
  std::vector<std::size_t> order(images.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return images[i]->pixels; });
  std::vector<Look> looks;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ImageLook& facts = *images[order[i]];
    const bool first = i == 0 || images[order[i - 1]]->pixels != facts.pixels;
    if (first && facts.firm >= kFirmBits) {
      looks.push_back({facts.look, order[i], &facts});
    }
  }
  return looks;
}

}  // namespace

std::vector<ImageGroup> same_images(std::span<const ImageLook* const> images) {
  std::vector<std::size_t> order(images.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return images[i]->pixels; });
  Sets sets(images.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (images[order[i]]->pixels == images[order[i - 1]]->pixels) {
      sets.join(order[i], order[i - 1]);
    }
  }
  return sets.groups();
}

Alikes alike_images(std::span<const ImageLook* const> images) {
  Sets sets(images.size());
  std::vector<Look> looks = distinct_looks(images);
  Alikes alikes;
  std::int64_t comparisons = 0;
  for (int band = 0; band < kBands && alikes.complete; ++band) {
    const auto key = [band](const Look& each) { return band_of(each.bits, band); };
    std::ranges::sort(looks, {}, [&](const Look& each) { return std::pair(key(each), each.image); });
    for (std::size_t first = 0; first < looks.size();) {
      std::size_t last = first + 1;
      while (last < looks.size() && key(looks[last]) == key(looks[first])) {
        ++last;
      }
      const auto members = static_cast<std::int64_t>(last - first);
      comparisons += members * (members - 1) / 2;
      if (comparisons > kMostComparisons) {
        alikes.complete = false;
        break;
      }
      join_alike(std::span(looks).subspan(first, last - first), sets);
      first = last;
    }
  }
  alikes.groups = sets.groups();
  return alikes;
}

}  // namespace stoker::study
