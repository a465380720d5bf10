// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/code_places.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <vector>

#include "stoker/base/fmt.h"

namespace stoker::observe::profile {
namespace {

namespace fs = std::filesystem;

struct Module {
  std::string path;
  std::uintptr_t base = 0;
  std::vector<std::uintptr_t> addresses;
};

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

bool is_own(const std::string& path) {
  const std::string name = fs::path(path).filename();
  for (const std::string_view torch : {"libtorch", "libc10", "libgomp", "libcu", "libnv", "libmkl", "libstoker_cuda"}) {
    if (name.starts_with(torch)) {
      return false;
    }
  }
  return !path.starts_with("/lib") && !path.starts_with("/usr/lib") && !path.empty();
}

std::string shell_word(const std::string& path) {
  std::string text = "'";
  for (const char each : path) {
    text += each == '\'' ? std::string("'\\''") : std::string(1, each);
  }
  return text + "'";
}

// The lines that a command prints; none if it is missing or fails.
std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  if (pipe == nullptr) {
    return lines;
  }
  std::array<char, 4096> part{};
  std::string line;
  while (std::fgets(part.data(), static_cast<int>(part.size()), pipe.get()) != nullptr) {
    line += part.data();
    if (line.ends_with('\n')) {
      line.pop_back();
      lines.push_back(std::exchange(line, {}));
    }
  }
  return lines;
}

// addr2line prints two lines for each address: the function, and "file:line" or "file:line (discriminator 3)".
void name_by_addr2line(const Module& module, std::map<std::uintptr_t, CodePlace>& places) {
  std::string list = fs::temp_directory_path() / "stoker-addresses-XXXXXX";
  const int file = ::mkstemp(list.data());
  if (file < 0) {
    return;
  }
  ::close(file);
  std::ofstream out(list);
  for (const std::uintptr_t address : module.addresses) {
    out << fmt::format("{:#x}\n", address - module.base);
  }
  out.close();
  const auto lines =
      lines_of(fmt::format("addr2line -f -C -e {} @{} 2>/dev/null", shell_word(module.path), shell_word(list)));
  std::error_code ignored;
  fs::remove(list, ignored);
  for (std::size_t i = 0; 2 * i + 1 < lines.size() && i < module.addresses.size(); ++i) {
    CodePlace& place = places[module.addresses[i]];
    if (const std::string& function = lines[2 * i]; function != "??") {
      place.function = function;
    }
    const std::string& where = lines[2 * i + 1];
    const auto colon = where.rfind(':');
    if (const int line = colon == where.npos ? 0 : std::atoi(where.c_str() + colon + 1); line > 0) {
      place.file = where.substr(0, colon);
      place.line = line;
    }
  }
}

}  // namespace

std::map<std::uintptr_t, CodePlace> code_places(std::span<const std::uintptr_t> addresses) {
  std::map<std::uintptr_t, CodePlace> places;
  std::map<std::string, Module> own;
  for (const std::uintptr_t address : addresses) {
    const auto [place, added] = places.try_emplace(address);
    Dl_info info{};
    const ElfW(Sym)* symbol = nullptr;
    if (!added) {
      continue;
    }
    if (::dladdr1(reinterpret_cast<void*>(address), &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
                  RTLD_DL_SYMENT) == 0) {
      place->second.function = "(generated code)";
      continue;
    }
    // The program itself is known by the word with which it was started.
    std::string path = info.dli_fname != nullptr ? info.dli_fname : "";
    if (std::error_code error; path.find('/') == path.npos || !fs::exists(path, error)) {
      path = fs::read_symlink("/proc/self/exe", error);
    }
    place->second.module = fs::path(path).filename();
    place->second.own = is_own(path);
    place->second.function = fmt::format("({})", place->second.module);
    if (info.dli_sname != nullptr && symbol != nullptr &&
        address < reinterpret_cast<std::uintptr_t>(info.dli_saddr) + symbol->st_size) {
      place->second.function = demangled(info.dli_sname);
    }
    if (place->second.own) {
      Module& module = own[path];
      module.path = path;
      module.base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
      module.addresses.push_back(address);
    }
  }
  for (const auto& [path, module] : own) {
    name_by_addr2line(module, places);
  }
  return places;
}

}  // namespace stoker::observe::profile
