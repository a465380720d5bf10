// SPDX-License-Identifier: Apache-2.0
#include "stoker/train/pass_seed.h"

#include <ATen/Context.h>

#include <mutex>

#include "stoker/base/philox.h"

namespace stoker::train {

void seed_pass(c10::Device device, std::uint64_t seed, std::int64_t step, std::int64_t row, std::uint32_t segment) {
  const PhiloxBlock mixed =
      philox4x32({static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(row), segment, 0x5EED},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed((std::uint64_t{mixed[0]} << 32) | mixed[1]);
}

}  // namespace stoker::train
