// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/folder_layer.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"

namespace stoker::study {
namespace {

// A path of /proc/self/mountinfo, where \040 stands for a space (proc_pid_mountinfo(5)).
std::string unescaped(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      result += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::vector<std::string> mounts_inside(const std::string& folder) {
  std::vector<std::string> found;
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped, place;
    words >> skipped >> skipped >> skipped >> skipped >> place;
    if (place = unescaped(place); place.starts_with(folder + "/")) {
      found.push_back(place);
    }
  }
  return found;
}

bool write_all(const char* path, const std::string& text) noexcept {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool done = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (file >= 0) {
    ::close(file);
  }
  errno = error;
  return done;
}

// In a process of its own, since a layer stays until a process ends.
int try_to_enter(const FolderLayer& layer) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(layer.enter());
  }
  int status = 0;
  const bool waited = child > 0 && ::waitpid(child, &status, 0) == child;
  return waited && WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
}

}  // namespace

FolderLayer::FolderLayer(const std::filesystem::path& folder, const std::filesystem::path& scratch)
    : folder_(std::filesystem::canonical(folder).native()),
      lower_((scratch / "lower").native()),
      scratch_(std::filesystem::canonical(scratch).native()),
      user_map_(fmt::format("{0} {0} 1", ::geteuid())),
      group_map_(fmt::format("{0} {0} 1", ::getegid())) {
  if ((scratch_ + "/").starts_with(folder_ == "/" ? folder_ : folder_ + "/")) {
    fail<ConfigError>("stoker.doctor", "{}: holds the folder for temporary files; start in the folder of the script",
                      printable(folder_));
  }
  if (scratch_.find_first_of(",:\\") != std::string::npos) {  // they separate options of a mount
    fail<ConfigError>("stoker.doctor", "{}: set TMPDIR to a folder without comma, colon and backslash in its name",
                      printable(scratch_));
  }
  std::filesystem::create_directories(lower_);
  overlays_.push_back(overlay_at(folder_, lower_, 0));
  for (const std::string& place : mounts_inside(folder_)) {
    overlays_.push_back(overlay_at(place, lower_ + place.substr(folder_.size()), static_cast<int>(overlays_.size())));
  }
  if (const int error = try_to_enter(*this); error != 0) {
    fail<ConfigError>(
        "stoker.doctor",
        "{}: what the script writes there cannot be kept apart: {}. Another TMPDIR may help ({} is used). "
        "Or copy the folder, start in the copy, and give --in-place",
        printable(folder_), std::strerror(error), printable(scratch_));
  }
}

FolderLayer::Overlay FolderLayer::overlay_at(const std::string& place, const std::string& lower, int number) const {
  const std::string upper = fmt::format("{}/upper{}", scratch_, number),
                    work = fmt::format("{}/work{}", scratch_, number);
  std::filesystem::create_directories(upper);
  std::filesystem::create_directories(work);
  // A path that a user chose may hold what separates options; only the layer of its file system needs it.
  std::string escaped;
  for (const char each : lower) {
    escaped += each == ',' || each == ':' || each == '\\' ? std::string("\\") + each : std::string(1, each);
  }
  const std::string options = fmt::format("lowerdir={},upperdir={},workdir={}", escaped, upper, work);
  return {place, lower, work, options + ",redirect_dir=on", options + ",userxattr"};
}

// The kernel leaves a folder there that even its owner may not open.
FolderLayer::~FolderLayer() {
  for (const Overlay& each : overlays_) {
    ::chmod((each.work + "/work").c_str(), 0700);
  }
}

int FolderLayer::enter() const noexcept {
  const bool user = ::unshare(CLONE_NEWNS) != 0;  // without the right to, a user namespace gives it
  if (user && (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !write_all("/proc/self/setgroups", "deny") ||
               !write_all("/proc/self/uid_map", user_map_) || !write_all("/proc/self/gid_map", group_map_))) {
    return errno;
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount(folder_.c_str(), lower_.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return errno;
  }
  for (const Overlay& each : overlays_) {
    const std::string& options = user ? each.user_options : each.options;
    if (::mount("overlay", each.place.c_str(), "overlay", 0, options.c_str()) == 0) {
      continue;
    }
    // Not every file system can lie below; then it is shown as it is, and cannot be written to.
    if (&each == &overlays_.front() ||
        ::mount(each.lower.c_str(), each.place.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0 ||
        ::mount(nullptr, each.place.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
      return errno;
    }
  }
  return ::chdir(folder_.c_str()) == 0 ? 0 : errno;
}

}  // namespace stoker::study
