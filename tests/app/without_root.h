// SPDX-License-Identifier: Apache-2.0
// Takes root's right to ignore file permissions from a child process, before it becomes `stoker`. The child still runs
// as root: torch may be in a folder that only root can enter, where the user `nobody` could not start the program.
#pragma once

#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace stoker::testing {

// For StokerProcess's before_exec: 0, or 93 if the rights could not be given up, which fails the test.
inline int without_root_rights() {
  const bool dropped = ::geteuid() != 0 || (::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) == 0 &&
                                            ::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH) == 0);
  return dropped ? 0 : 93;
}

}  // namespace stoker::testing
