// SPDX-License-Identifier: Apache-2.0
// Loads images and writes one line per batch, each with a single write(). Tests kill this program while it runs.
//     batch_writer DATA CACHE CALLS EPOCH STEP THREADS RANKS PLAIN
// DATA: a folder or a tar file. CACHE: a folder for the index, the list of bad images and the rows of JPEGs, which is
// written all the time. CALLS: number of lines to write. EPOCH and STEP: the first batch. PLAIN: 1 for no vector
// instructions, else 0.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>

#include "support/later_clock.h"
#include "support/matrix_batches.h"

namespace stoker::testing {
namespace {

int run(char** words) {
  const std::filesystem::path data = words[1], cache = words[2];
  const auto number = [&](int word) { return std::atoi(words[word]); };
  const MatrixWay way{.threads = number(6), .ranks = number(7), .plain = number(8) != 0};
  const data::IndexOptions index{.cache = cache, .from_files = 1, .clock = later_clock};
  data::ImageLoaderOptions options = matrix_options(data::open_image_folder(data, {.val = 0}, {}, index).train, way);
  options.known_bad = std::make_shared<data::KnownBad>(options.split.source,
                                                       data::KnownBadOptions{.cache = cache, .clock = later_clock});
  options.rows = std::make_shared<data::RowIndex>(
      *options.split.source,
      data::RowIndexOptions{.cache = cache, .from_samples = 1, .write_every = std::chrono::milliseconds(1)});
  MatrixLoaders loaders(options, {number(4), number(5)});
  for (int call = 0; call < number(3); ++call) {
    const std::string line = loaders.next() + "\n";
    if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      return 74;
    }
  }
  return 0;
}

}  // namespace
}  // namespace stoker::testing

int main(int count, char** words) {
  if (count != 9) {
    fmt::print(stderr, "batch_writer DATA CACHE CALLS EPOCH STEP THREADS RANKS PLAIN\n");
    return 2;
  }
  try {
    return stoker::testing::run(words);
  } catch (const std::exception& error) {
    fmt::print(stderr, "batch_writer: {}\n", error.what());
    return 1;
  }
}
