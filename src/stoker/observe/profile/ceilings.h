// SPDX-License-Identifier: Apache-2.0
// What this machine reaches at best, measured on the spot: a large matrix product and a large copy, on the device and
// with the threads of the run. Rates of operators are compared with it. Used by job after a burst, on the thread that
// steps; a tenth of a second.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace stoker::observe::profile {

struct ProductCeiling {
  std::string type;  // "float", "bfloat16", "half"
  double flops_per_second = 0;
};

struct Ceilings {
  std::vector<ProductCeiling> products = {};  // a type that could not be measured is missing
  double bytes_per_second = -1;               // of a copy, reads and writes counted; -1: unknown

  // -1: unknown.
  [[nodiscard]] double product(const std::string& type) const;
};

// types: of products, see ProductCeiling. Takes at most a quarter of the memory that is free, and gives it back to the
// device or the system; what needs more is left out.
[[nodiscard]] Ceilings measure_ceilings(c10::Device device, const std::vector<std::string>& types);

}  // namespace stoker::observe::profile
