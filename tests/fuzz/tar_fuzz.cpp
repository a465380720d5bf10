// SPDX-License-Identifier: Apache-2.0
// Any bytes give a DataError or an index of members that are in the file, one after the other, with paths that stay in
// their folder.
#include <algorithm>

#include "fuzz_target.h"
#include "stoker/base/error.h"
#include "stoker/data/folder/tar.h"

namespace stoker::fuzz {
namespace {

bool stays_inside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.back() == '/') {
    return false;
  }
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, end - begin) == "..") {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

void check_members(const data::TarFile& tar, Bytes file) {
  std::vector<std::byte> content;
  std::int64_t end_before = 0;  // of the previous member
  for (const data::TarMember& member : tar.members()) {
    expect(member.size >= 0 && member.offset >= end_before + 512, "a header is between two members");
    expect(member.offset % 512 == 0, "members begin at blocks");
    expect(member.offset <= std::ssize(file) && member.size <= std::ssize(file) - member.offset,
           "members are inside the file");
    expect(stays_inside(member.path), "paths stay in their folder");
    tar.read(member.offset, member.size, content);
    const Bytes expected = file.subspan(static_cast<std::size_t>(member.offset), static_cast<std::size_t>(member.size));
    expect(std::ranges::equal(content, expected), "a member is read as it is in the file");
    end_before = member.offset + member.size;
  }
}

}  // namespace
}  // namespace stoker::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  static fuzz::MemoryFile memory;
  const Bytes file = std::as_bytes(std::span(data, size));
  try {
    const data::TarFile tar(memory.hold(file));
    fuzz::check_members(tar, file);
  } catch (const DataError&) {
  }
  return 0;
}
