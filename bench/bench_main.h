// SPDX-License-Identifier: Apache-2.0
// The main() of a bench: an error becomes one line and an exit code. One thread.
#pragma once

#include <cstdio>
#include <exception>

#include "stoker/base/fmt.h"

namespace stoker::bench {

// The result of run(argc, argv), or 2 after an error, which is printed behind the name.
inline int bench_main(const char* name, int (*run)(int, char**), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 2;
  }
}

}  // namespace stoker::bench
