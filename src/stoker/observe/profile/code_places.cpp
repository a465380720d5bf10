// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/profile/code_places.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/base/fmt.h"
#include "stoker/observe/profile/command_lines.h"

namespace stoker::observe::profile {
namespace {

namespace fs = std::filesystem;

constexpr double kBudget = 3;  // seconds of addr2line, for all files together

struct Module {
  std::string path;
  std::uintptr_t base = 0;  // what addresses in the file are counted from
  std::vector<std::uintptr_t> addresses;
};

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

// A program that is not position-independent has its real addresses in its file.
std::uintptr_t base_of(const void* header) {
  const bool fixed = static_cast<const ElfW(Ehdr)*>(header)->e_type == ET_EXEC;
  return fixed ? 0 : reinterpret_cast<std::uintptr_t>(header);
}

const void* base_of_program() {
  Dl_info info{};
  return ::dladdr(reinterpret_cast<void*>(::getauxval(AT_ENTRY)), &info) != 0 ? info.dli_fbase : nullptr;
}

// A path without a folder is of the kernel's own code in each process (linux-vdso.so.1).
bool is_own(const std::string& path) {
  const std::string name = fs::path(path).filename();
  for (const std::string_view torch : {"libtorch", "libc10", "libgomp", "libcu", "libnv", "libmkl", "libstoker_cuda"}) {
    if (name.starts_with(torch)) {
      return false;
    }
  }
  return !path.starts_with("/lib") && !path.starts_with("/usr/lib") && path.find('/') != path.npos;
}

// addr2line prints two lines for each address: the function, and "file:line" or "file:line (discriminator 3)".
void name_by_addr2line(const Module& module, double seconds, std::map<std::uintptr_t, CodePlace>& places) {
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
  const auto lines = command_lines({"addr2line", "-f", "-C", "-e", module.path, "@" + list}, seconds);
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
  const void* const program = base_of_program();
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
    std::string path = info.dli_fname != nullptr ? info.dli_fname : "";
    if (std::error_code error; info.dli_fbase == program) {  // known by the word with which it was started
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
      module.base = base_of(info.dli_fbase);
      module.addresses.push_back(address);
    }
  }
  const Stopwatch watch;  // a large debug file takes long
  for (const auto& [path, module] : own) {
    name_by_addr2line(module, kBudget - watch.seconds(), places);
  }
  return places;
}

}  // namespace stoker::observe::profile
