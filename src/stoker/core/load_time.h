// SPDX-License-Identifier: Apache-2.0
// What loading costs, so that plans know whether threads beside the step would pay. Measured by tasks. A plain value.
#pragma once

namespace stoker::core {

struct LoadTime {
  double seconds = 0;  // of one thread, to read, decode and augment a sample; 0: it lies in memory
  double asleep = 0;   // of these, waiting for a disk or a network: no core is needed for them
};

}  // namespace stoker::core
