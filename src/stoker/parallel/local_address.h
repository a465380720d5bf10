// SPDX-License-Identifier: Apache-2.0
// Which address of this machine reaches another one. No state.
#pragma once

#include <string>

namespace stoker::parallel {

// The numeric address of this machine from which packets to host leave; no packet is sent. If host is this machine, its
// own address. ConfigError if the name is unknown or no network leads there.
[[nodiscard]] std::string local_address(const std::string& host);

}  // namespace stoker::parallel
