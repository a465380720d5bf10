// SPDX-License-Identifier: Apache-2.0
// Calls a fuzz target once with each file of the given folders: this runs the committed corpora without clang. Exit
// code 1 if a folder has no files.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>

#include "fuzz_target.h"

namespace {

int replay(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<std::byte> bytes;
  for (const std::filesystem::path& file : files) {
    std::fprintf(stderr, "%s\n", file.c_str());  // the last one printed is the one that crashes
    stoker::read_file(file, bytes);
    const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());  // so that sanitizers detect reads past its end
    std::ranges::copy(stoker::as_text(bytes), exact.get());
    (void)LLVMFuzzerTestOneInput(exact.get(), bytes.size());
  }
  std::printf("%zu inputs of %s passed\n", files.size(), folder.filename().c_str());
  return files.empty() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  int failed = argc < 2 ? 1 : 0;
  for (int i = 1; i < argc; ++i) {
    failed |= replay(argv[i]);
  }
  return failed;
}
