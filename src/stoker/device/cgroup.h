// SPDX-License-Identifier: Apache-2.0
// The control groups that this process belongs to, of cgroups v1 and v2. Used by cpu_quota and host_memory.
// Thread-safe: no state.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::device {

// table: the content of /proc/self/cgroup. controller: of v1, such as "memory", or "" for v2. mounts: possible folders
// of the hierarchy below root/sys/fs/cgroup. Calls visit with the folder of the process's group and of every ancestor,
// under each mount; the folder may not exist. In a container the path may name a group that is not visible; then only
// the mount itself is visible.
void for_each_group(const std::filesystem::path& root, std::string_view table, std::string_view controller,
                    const std::vector<std::string>& mounts,
                    const std::function<void(const std::filesystem::path& group)>& visit);

}  // namespace stoker::device
