// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/checkpoint/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <new>

#include "stoker/base/fmt.h"

namespace stoker::io {
namespace {

std::string hex(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

}  // namespace

struct Checksum::State {
  XXH3_state_t hash;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->hash); }
Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) {
    XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
  }
}

std::string Checksum::text() const { return hex(XXH3_128bits_digest(&state_->hash)); }

std::string checksum_of(std::span<const std::byte> bytes) { return hex(XXH3_128bits(bytes.data(), bytes.size())); }

}  // namespace stoker::io
