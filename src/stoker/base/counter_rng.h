// SPDX-License-Identifier: Apache-2.0
// Random numbers addressed by their purpose: (seed, epoch) is the key, (sample, operation, occurrence, draw) the
// counter. Two threads, two ranks or a resumed run that use the same address get the same number. Used by augment and
// by every seeded choice in data. A CounterRng is a value: copy it freely, one per thread.
#pragma once

#include <cstdint>

#include "stoker/base/philox.h"

namespace stoker {

// Every consumer of random numbers has its own number here, so that no two ever share a counter. Numbers are part of
// the reproducibility promise: append, never renumber.
enum class RandomOp : std::uint16_t {
  kSplit = 1,  // which samples become the validation split
  kOrder = 2,  // the sample permutation
  kCrop = 3,
  kFlip = 4,
  kColour = 5,
  kMix = 6,
  kInit = 7,    // initial weights
  kImage = 8,   // which images are shown to people
  kWindow = 9,  // the start of an epoch's windows of a text
  kToken = 10,  // the next token of a generated text
  kAffine = 11,
  kGrey = 12,
  kBlur = 13,
  kErase = 14,
  kDraw = 15,     // which sample a draw with replacement gives
  kDerive = 16,   // seeds derived from a run's seed
  kStandIn = 64,  // the replacement of a bad sample
  kOwn = 0x8000,  // this and every greater number: programs that use the library
};

class CounterRng {
 public:
  // occurrence distinguishes copies of a sample in one epoch: 0 if each occurs once; if a sample may occur again, the
  // number of the draw within the epoch, which is unique and needs no count of earlier draws.
  CounterRng(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample, RandomOp op, std::uint32_t occurrence = 0)
      : key_{static_cast<std::uint32_t>(seed ^ (seed >> 32)), epoch},
        counter_{static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32),
                 static_cast<std::uint32_t>(op) << 16, occurrence} {}

  // 32 uniform bits.
  std::uint32_t next() {
    if (used_ == 4) {
      block_ = philox4x32(counter_, key_);
      ++counter_[2];  // the low 16 bits of this word count blocks of draws
      used_ = 0;
    }
    return block_[used_++];
  }
  // Uniform in [0, 1), on a grid of 2^-24, so that it is exact as a float and as a double.
  double uniform() { return static_cast<double>(next() >> 8) * 0x1p-24; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Uniform in 0 ... n-1 for n >= 1, by multiplication (bias below n / 2^32).
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((std::uint64_t{next()} * n) >> 32); }

 private:
  PhiloxKey key_;
  PhiloxBlock counter_;
  PhiloxBlock block_{};
  int used_ = 4;
};

// A separate seed for part `number` of something with this seed: without it, two sets of one size had the same order.
inline std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t number) {
  CounterRng random(seed, 0, number, RandomOp::kDerive);
  const std::uint64_t high = random.next();
  return (high << 32) | random.next();
}

}  // namespace stoker
