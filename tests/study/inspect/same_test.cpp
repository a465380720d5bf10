// SPDX-License-Identifier: Apache-2.0
// Groups of images that are the same or look alike, compared with a twin that compares all pairs.
#include "stoker/study/inspect/same.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

namespace stoker::study {
namespace {

std::vector<const ImageLook*> pointers(const std::vector<ImageLook>& facts) {
  std::vector<const ImageLook*> result;
  for (const ImageLook& each : facts) {
    result.push_back(&each);
  }
  return result;
}

ImageLook facts_of(std::uint64_t pixels, std::uint64_t look, int firm = 64) {
  ImageLook facts;
  facts.pixels = {pixels >> 1, pixels};
  facts.look = look;
  facts.firm = firm;
  facts.tint[pixels % 12] = static_cast<std::uint8_t>(pixels % 3 * 15);  // sometimes too far apart
  return facts;
}

// The slow, plain twin: gives alike images the same colour until nothing changes.
template <typename Alike>
std::vector<ImageGroup> groups_by_colour(std::size_t size, Alike alike) {
  std::vector<std::size_t> colour(size);
  for (std::size_t i = 0; i < size; ++i) {
    colour[i] = i;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t k = 0; k < size; ++k) {
        if (i != k && colour[k] < colour[i] && alike(i, k)) {
          colour[i] = colour[k];
          changed = true;
        }
      }
    }
  }
  std::vector<ImageGroup> groups;
  for (std::size_t i = 0; i < size; ++i) {
    ImageGroup group;
    for (std::size_t k = 0; k < size; ++k) {
      if (colour[k] == i) {
        group.push_back(k);
      }
    }
    if (group.size() >= 2) {
      groups.push_back(group);
    }
  }
  return groups;
}

TEST(InspectSame, GroupsAreThoseOfComparingEachWithEach) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<ImageLook> facts;
    for (int i = 0; i < 120; ++i) {
      // Half of them are copies of another one with a few of the 64 bits flipped.
      std::uint64_t look = random();
      if (i > 0 && random() % 2 == 0) {
        look = facts[random() % facts.size()].look;
        for (std::uint64_t flips = random() % 7; flips > 0; --flips) {
          look ^= std::uint64_t{1} << random() % 64;
        }
      }
      facts.push_back(facts_of(random() % 100, look, random() % 8 == 0 ? kFirmBits - 1 : kFirmBits));
    }
    const auto same = [&](std::size_t a, std::size_t b) { return facts[a].pixels == facts[b].pixels; };
    EXPECT_EQ(same_images(pointers(facts)), groups_by_colour(facts.size(), same));
    const auto counts = [&](std::size_t i) {  // the first with these pixels, and with enough firm bits
      for (std::size_t k = 0; k < i; ++k) {
        if (same(i, k)) {
          return false;
        }
      }
      return facts[i].firm >= kFirmBits;
    };
    const auto alike = [&](std::size_t a, std::size_t b) {
      bool near = std::popcount(facts[a].look ^ facts[b].look) <= 3;
      for (std::size_t c = 0; c < 12; ++c) {
        near =
            near && std::max(facts[a].tint[c], facts[b].tint[c]) - std::min(facts[a].tint[c], facts[b].tint[c]) <= 20;
      }
      return near && counts(a) && counts(b);
    };
    const Alikes found = alike_images(pointers(facts));
    EXPECT_TRUE(found.complete);
    EXPECT_EQ(found.groups, groups_by_colour(facts.size(), alike)) << "round " << round;
  }
}

TEST(InspectSame, NothingAndOneAreNoGroups) {
  EXPECT_TRUE(same_images({}).empty());
  EXPECT_TRUE(alike_images({}).groups.empty());
  const std::vector<ImageLook> one{facts_of(1, 1)};
  EXPECT_TRUE(same_images(pointers(one)).empty());
  EXPECT_TRUE(alike_images(pointers(one)).groups.empty());
}

TEST(InspectSame, TooManyOfOneHashAreNamedAndEnd) {
  std::vector<ImageLook> facts;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    facts.push_back(facts_of(i, 0x0123456789ABCDEF));
  }
  EXPECT_FALSE(alike_images(pointers(facts)).complete);
}

}  // namespace
}  // namespace stoker::study
