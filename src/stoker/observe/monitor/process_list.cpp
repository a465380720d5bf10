// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/monitor/process_list.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>

#include "stoker/base/fmt.h"

namespace stoker::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecord = "/metrics.jsonl";

// Asked once per user: a directory service may take long.
std::string user_name(unsigned uid) {
  static std::mutex mutex;
  static std::map<unsigned, std::string> known;
  const std::lock_guard lock(mutex);
  const auto [place, is_new] = known.try_emplace(uid, std::to_string(uid));
  if (is_new) {
    passwd entry{};
    passwd* found = nullptr;
    std::vector<char> buffer(4096);
    if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
      place->second = found->pw_name;
    }
  }
  return place->second;
}

// Arguments are separated by NUL bytes.
std::string command_of(const fs::path& process, const std::string& name) {
  std::string command = device::read_kernel_file(process / "cmdline");
  while (!command.empty() && command.back() == '\0') {
    command.pop_back();
  }
  std::ranges::replace(command, '\0', ' ');
  return command.empty() ? "[" + name + "]" : command;
}

// Whether the process may write to one of its descriptors. The kernel gives the flags of open(2) in octal.
bool is_writable(const fs::path& process, const fs::path& descriptor) {
  const std::string info = device::read_kernel_file(process / "fdinfo" / descriptor);
  const std::string_view flags = device::kernel_field(info, "flags");
  unsigned value = 0;
  const auto [end, error] = std::from_chars(flags.data(), flags.data() + flags.size(), value, 8);
  return error == std::errc() && (value & O_ACCMODE) != O_RDONLY;
}

// The folder is looked for where the process sees it: it may be in a container.
bool is_run(const fs::path& process, const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(process / "root" / folder.relative_path() / "plan.json", error);
}

void read_files(ListedProcess& listed, const fs::path& process, const std::vector<std::string>& prefixes) {
  std::error_code error;
  fs::directory_iterator it(process / "fd", error);
  listed.files_known = !error;
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(it->path(), gone).native();
    if (std::ranges::any_of(prefixes, [&](const std::string& prefix) { return target.starts_with(prefix); }) &&
        std::ranges::find(listed.open_files, target) == listed.open_files.end()) {
      listed.open_files.push_back(target);
    }
    if (target.ends_with(kRecord) && is_writable(process, it->path().filename())) {
      std::string folder = target.substr(0, target.size() - kRecord.size());
      listed.run_folder = is_run(process, folder) ? std::move(folder) : listed.run_folder;
    }
  }
}

bool is_id(std::string_view text) {
  return text.size() >= 12 && std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

std::string container_of(std::string_view cgroup) {
  std::string pod, container;
  for (std::size_t start = 0; start < cgroup.size();) {
    const std::size_t end = std::min(cgroup.find_first_of("/\n", start), cgroup.size());
    std::string_view part = cgroup.substr(start, end - start);
    start = end + 1;
    part = part.substr(0, part.ends_with(".scope")   ? part.size() - 6
                          : part.ends_with(".slice") ? part.size() - 6
                                                     : part.npos);
    const std::size_t dash = part.rfind('-');
    const std::string_view kind = dash == part.npos ? "" : part.substr(0, dash);
    const std::string_view id = dash == part.npos ? part : part.substr(dash + 1);
    if (id.starts_with("pod") && id.size() > 20) {
      pod = id.substr(3);
    } else if (is_id(id) && id.size() == 64) {
      const std::string_view by = kind == "cri-containerd" ? "containerd" : kind == "libpod" ? "podman" : kind;
      container = fmt::format("{} {}", by.empty() ? "container" : by, id.substr(0, 12));
    }
  }
  return pod.empty() ? container
                     : fmt::format("pod {}{}{}", pod.substr(0, 13), container.empty() ? "" : ", ", container);
}

std::optional<ListedProcess> read_process(int pid, const std::vector<std::string>& prefixes, const fs::path& root) {
  const fs::path process = root / "proc" / std::to_string(pid);
  ListedProcess listed;
  listed.pid = pid;
  listed.times = parse_stat(device::read_kernel_file(process / "stat"));
  struct stat owner {};
  if (!listed.times.start_seconds || ::stat(process.c_str(), &owner) != 0) {
    return std::nullopt;
  }
  listed.uid = owner.st_uid;
  listed.user = user_name(owner.st_uid);
  listed.command = command_of(process, listed.times.name);
  const std::string uptime = device::read_kernel_file(root / "proc/uptime");
  listed.age_seconds = std::max(0.0, std::strtod(uptime.c_str(), nullptr) - *listed.times.start_seconds);
  listed.container = container_of(device::read_kernel_file(process / "cgroup"));
  read_files(listed, process, prefixes);
  return listed;
}

// Lines "begin-end flags offset device inode  path".
std::optional<std::vector<std::string>> mapped_files(int pid, std::string_view prefix, const fs::path& root) {
  std::ifstream file(root / "proc" / std::to_string(pid) / "maps");
  std::vector<std::string> files;
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t path = line.find(prefix);
    if (path != line.npos && (files.empty() || line.compare(path, line.npos, files.back()) != 0)) {
      files.push_back(line.substr(path));
    }
  }
  return file.bad() || !file.eof() ? std::nullopt : std::optional(std::move(files));
}

std::vector<ListedProcess> list_processes(const std::vector<std::string>& prefixes, const fs::path& root) {
  std::vector<ListedProcess> all;
  std::error_code error;
  fs::directory_iterator it(root / "proc", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().native();
    int pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed == std::errc() && end == name.data() + name.size()) {
      if (auto listed = read_process(pid, prefixes, root)) {
        all.push_back(std::move(*listed));
      }
    }
  }
  std::ranges::sort(all, {}, &ListedProcess::pid);
  return all;
}

}  // namespace stoker::observe
