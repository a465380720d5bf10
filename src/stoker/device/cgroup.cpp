// SPDX-License-Identifier: Apache-2.0
#include "stoker/device/cgroup.h"

#include <optional>

#include "stoker/base/fmt.h"

namespace stoker::device {
namespace {

namespace fs = std::filesystem;

// The path of this process in the hierarchy of a controller ("" for v2), from lines "id:controllers:path".
std::optional<std::string> cgroup_path(std::string_view table, std::string_view controller) {
  while (!table.empty()) {
    const std::size_t end = table.find('\n');
    const std::string_view line = table.substr(0, end);
    table = end == std::string_view::npos ? std::string_view{} : table.substr(end + 1);
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) {
      continue;
    }
    const std::string names = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (names.find(fmt::format(",{},", controller)) != std::string::npos) {
      return std::string(line.substr(second + 1));
    }
  }
  return std::nullopt;
}

}  // namespace

void for_each_group(const fs::path& root, std::string_view table, std::string_view controller,
                    const std::vector<std::string>& mounts, const std::function<void(const fs::path&)>& visit) {
  const auto path = cgroup_path(table, controller);
  if (!path) {
    return;
  }
  for (const std::string& mount : mounts) {
    const fs::path base = root / "sys/fs/cgroup" / mount;
    for (fs::path group = fs::path(*path).relative_path(); !group.empty(); group = group.parent_path()) {
      visit(base / group);
    }
    visit(base);
  }
}

}  // namespace stoker::device
