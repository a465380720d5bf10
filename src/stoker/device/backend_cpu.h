// SPDX-License-Identifier: Apache-2.0
// The CPU backend: always available. Made by the registry in backend.cpp.
#pragma once

#include <memory>

#include "stoker/device/backend.h"

namespace stoker::device {

[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend();

}  // namespace stoker::device
