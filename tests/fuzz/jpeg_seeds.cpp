// SPDX-License-Identifier: Apache-2.0
// Writes small JPEGs of every kind into a folder, as seeds of the fuzz target jpeg:
//     jpeg_seeds FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "support/jpeg_kinds.h"

int main(int argc, char** argv) {
  using namespace stoker::testing;
  if (argc != 2) {
    std::fprintf(stderr, "usage: jpeg_seeds FOLDER\n");
    return 2;
  }
  std::vector<JpegKind> kinds = common_samplings();
  for (const JpegKind& kind : common_samplings()) {
    const std::vector<JpegKind> codings = codings_of(kind);
    kinds.insert(kinds.end(), codings.begin(), codings.end());
  }
  for (const std::vector<JpegKind>& others : {rare_samplings(), colour_spaces()}) {
    kinds.insert(kinds.end(), others.begin(), others.end());
  }
  QuickRandom random(1);
  int number = 0;
  std::filesystem::create_directories(argv[1]);
  for (const JpegKind& kind : kinds) {
    for (int content = 0; content < kJpegContents; ++content) {
      const int width = 8 + random.below(41), height = 8 + random.below(41), quality = 20 + random.below(70);
      const std::vector<std::byte> bytes =
          written_jpeg(kind, width, height, quality, static_cast<JpegContent>(content), random());
      std::ofstream file(std::filesystem::path(argv[1]) / (std::to_string(number++) + ".jpg"), std::ios::binary);
      file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      if (!file.flush()) {
        std::fprintf(stderr, "cannot write to %s\n", argv[1]);
        return 1;
      }
    }
  }
  std::printf("%d files\n", number);
  return 0;
}
