// SPDX-License-Identifier: Apache-2.0
// The only include of fmt: every file that formats text includes this, so the copy in use is decided in one place.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
