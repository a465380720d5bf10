// SPDX-License-Identifier: Apache-2.0
// A small made-up table for tests of the command line, and settings that learn it quickly. Thread-safe: no state.
#pragma once

#include <string>

#include "app/stoker_process.h"

namespace stoker::testing {

inline const Words kShort = {"epochs=30", "lr=0.01", "intra_op=1", "precision=fp32", "batch=16", "hidden=16"};

// 240 rows: pay depends on age and job. Some ages are missing, and the column "same" is constant.
inline std::string people(const std::string& end = "") {
  std::string text = "age,job,same,pay\n";
  for (int i = 0; i < 240; ++i) {
    const int age = 18 + i * 7 % 50, job = i * 5 % 3;
    const bool high = age + 10 * job > 50;
    text += (i % 17 == 3 ? "?" : std::to_string(age)) + ", " +
            (job == 0   ? "clerk"
             : job == 1 ? "smith"
                        : "\"sea, man\"") +
            ",1," + (high ? ">50K" : "<=50K") + end + "\n";
  }
  return text;
}

}  // namespace stoker::testing
