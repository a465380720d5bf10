// SPDX-License-Identifier: Apache-2.0
// Highway compiles this file once for each family of processors; docs/decisions/highway.md.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stoker/base/feistel_kernels.cpp"
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// clang-format off: must come before highway.h
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include "stoker/base/counter_rng.h"
#include "stoker/base/feistel.h"

HWY_BEFORE_NAMESPACE();
namespace stoker::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR  // a processor without any of the families
void rounds(const FeistelKey& key, std::uint64_t* left, std::uint64_t* right) {
  for (std::size_t lane = 0; lane < kFeistelLanes; ++lane) {
    for (int round = 0; round < kFeistelRounds; ++round) {
      const PhiloxBlock counter = {static_cast<std::uint32_t>(right[lane]), FeistelKey::tweak(round), key.epoch, 0};
      const std::uint64_t next = left[lane] ^ (philox4x32(counter, {key.seed_low, key.seed_high})[0] & key.mask);
      left[lane] = right[lane];
      right[lane] = next;
    }
  }
}
#else
namespace {

constexpr std::size_t kBytes = HWY_MAX_BYTES >= 64 ? 64 : HWY_MAX_BYTES >= 32 ? 32 : 16;
constexpr hn::FixedTag<std::uint64_t, kBytes / 8> kLongs;
constexpr hn::Repartition<std::uint32_t, decltype(kLongs)> kWords;
using Longs = hn::Vec<decltype(kLongs)>;

// Vectors that are computed together: each step waits for the previous one, so several vectors hide the wait, as many
// as there are registers for. Philox has four words per value.
constexpr std::size_t kChains = kBytes >= 64 ? 4 : 2;
constexpr std::size_t kStep = kChains * kBytes / 8;
static_assert(kFeistelLanes % kStep == 0);

HWY_INLINE Longs product(Longs a, std::uint32_t b) {  // of the low words
  return hn::MulEven(hn::BitCast(kWords, a), hn::Set(kWords, b));
}

// The first word of philox4x32() of (right, tweak, epoch, 0). A word is in the low half of a number, with any value in
// the high half.
HWY_INLINE void one_round(const FeistelKey& key, std::uint32_t tweak, Longs (&left)[kChains], Longs (&right)[kChains]) {
  Longs c0[kChains], c1[kChains], c2[kChains], c3[kChains];
  for (std::size_t i = 0; i < kChains; ++i) {
    c0[i] = right[i];
    c1[i] = hn::Set(kLongs, std::uint64_t{tweak});
    c2[i] = hn::Set(kLongs, std::uint64_t{key.epoch});
    c3[i] = hn::Zero(kLongs);
  }
  std::uint32_t key0 = key.seed_low, key1 = key.seed_high;
  for (int step = 0; step < 10; ++step) {
    const Longs k0 = hn::Set(kLongs, std::uint64_t{key0}), k1 = hn::Set(kLongs, std::uint64_t{key1});
    for (std::size_t i = 0; i < kChains; ++i) {
      const Longs product0 = product(c0[i], 0xD2511F53), product1 = product(c2[i], 0xCD9E8D57);
      c0[i] = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c1[i]), k0);
      c1[i] = product1;
      c2[i] = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3[i]), k1);
      c3[i] = product0;
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  const Longs mask = hn::Set(kLongs, std::uint64_t{key.mask});
  for (std::size_t i = 0; i < kChains; ++i) {
    const Longs next = hn::Xor(left[i], hn::And(c0[i], mask));
    left[i] = right[i];
    right[i] = next;
  }
}

}  // namespace

void rounds(const FeistelKey& key, std::uint64_t* left, std::uint64_t* right) {
  constexpr std::size_t kEach = kBytes / 8;
  for (std::size_t at = 0; at < kFeistelLanes; at += kStep) {
    Longs lefts[kChains], rights[kChains];
    for (std::size_t i = 0; i < kChains; ++i) {
      lefts[i] = hn::LoadU(kLongs, left + at + i * kEach);
      rights[i] = hn::LoadU(kLongs, right + at + i * kEach);
    }
    for (int round = 0; round < kFeistelRounds; ++round) {
      one_round(key, FeistelKey::tweak(round), lefts, rights);
    }
    for (std::size_t i = 0; i < kChains; ++i) {
      hn::StoreU(lefts[i], kLongs, left + at + i * kEach);
      hn::StoreU(rights[i], kLongs, right + at + i * kEach);
    }
  }
}

#endif
}  // namespace stoker::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(rounds);

std::uint32_t FeistelKey::tweak(int round) {
  return (static_cast<std::uint32_t>(RandomOp::kOrder) << 16) | static_cast<std::uint32_t>(round);
}

void feistel_rounds(const FeistelKey& key, std::uint64_t* left, std::uint64_t* right) {
  HWY_DYNAMIC_DISPATCH(rounds)(key, left, right);
}

}  // namespace stoker
#endif
