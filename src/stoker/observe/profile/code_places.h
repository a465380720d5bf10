// SPDX-License-Identifier: Apache-2.0
// Names addresses of this process's code: function, and source file and line if the program was built with -g. From the
// loader's tables, and for this program's own files by addr2line, if it is installed, in at most three seconds. Used by
// host_code.h. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace stoker::observe::profile {

struct CodePlace {
  std::string function = {};  // "stoker::data::decode_png(...)"; "(libtorch_cpu.so)" if it has no name;
                              // "(generated code)" if it is in no file, as kernels of oneDNN
  std::string file = {};      // of the source; empty: unknown
  std::int32_t line = 0;      // 0: unknown
  std::string module = {};    // "libtorch_cpu.so", "stoker"
  bool own = false;           // of this program, or of a library that is neither torch's nor the system's
};

// Places by address.
[[nodiscard]] std::map<std::uintptr_t, CodePlace> code_places(std::span<const std::uintptr_t> addresses);

}  // namespace stoker::observe::profile
