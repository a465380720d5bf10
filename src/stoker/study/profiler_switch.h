// SPDX-License-Identifier: Apache-2.0
// torch's profiler and its anomaly mode, switched on and off: what the tips table measures the cost of. Process-wide;
// one thread at a time.
#pragma once

namespace stoker::study {

// torch.profiler's recording of operators on the CPU, with its defaults.
void start_profiler();
// What was recorded is brought together as for a report, and dropped. Nothing without a start.
void stop_profiler();

// torch.autograd.set_detect_anomaly.
void set_anomaly_mode(bool on);

}  // namespace stoker::study
