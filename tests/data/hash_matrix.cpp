// SPDX-License-Identifier: Apache-2.0
// The full hash matrix: the batches of two epochs have the same SHA-256 for threads {1, 2, 4} x ranks {1, 2, 4} (slices
// joined) x {files, a tar} x {straight, restarted at 20 random steps, killed and resumed} x {vector, plain}, with an
// index of the rows of JPEGs and without in turns, and for PNG files of the pixels that libjpeg-turbo decodes. Runs on
// the embedded sample and on photographs, with every augmentation, an uneven tail and a damaged image. Takes minutes,
// so it is a test of `make test-long`; image_loader_hash_test.cpp is the short form.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "support/images.h"
#include "support/killed_writer.h"
#include "support/library_pixels.h"
#include "support/shared_data.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::testing {
namespace {

using Lines = std::vector<std::string>;
using Random = std::mt19937;

enum class Manner { kStraight, kRestarted, kKilled };
constexpr const char* kManners[] = {"straight", "restarted", "killed"};

// The same images as files, as a tar, and as PNG files of libjpeg-turbo's pixels; one image is damaged.
class Images {
 public:
  explicit Images(const std::filesystem::path& from) {
    const std::vector<std::filesystem::path> files = files_below(from);
    TarBuilder tar;
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string key = files[i].lexically_relative(from).native(), bytes = read_text(files[i]);
      const std::string kept = i == files.size() / 2 ? bytes.substr(0, 60) : bytes;
      folder_.write("set/" + key, kept);
      folder_.write("library/" + key, with_library_pixels(kept));
      tar.add(key, kept);
    }
    folder_.write("set.tar", tar.done());
  }

  [[nodiscard]] std::filesystem::path path(bool tar) const { return folder_ / (tar ? "set.tar" : "set"); }
  [[nodiscard]] std::filesystem::path library() const { return folder_ / "library"; }
  [[nodiscard]] std::filesystem::path cache() const { return folder_ / "cache"; }

 private:
  TempFolder folder_;
};

class Matrix {
 public:
  explicit Matrix(const std::filesystem::path& from)
      : images_(from), splits_{open(images_.path(false)), open(images_.path(true))} {}

  void run() {
    const Lines expected = reference();
    int ways = 0;
    for (const int threads : {1, 2, 4}) {
      for (const int ranks : {1, 2, 4}) {
        for (int switches = 0; switches < 4; ++switches) {
          for (const Manner manner : {Manner::kStraight, Manner::kRestarted, Manner::kKilled}) {
            const MatrixWay way{.threads = threads, .ranks = ranks, .plain = (switches & 1) != 0};
            const bool tar = (switches & 2) != 0, rows = (ways + switches / 2) % 2 != 0;
            SCOPED_TRACE(fmt::format("{} threads, {} ranks, {}, {}, {}, {}", threads, ranks,
                                     way.plain ? "plain" : "vector", rows ? "rows" : "no rows", tar ? "tar" : "files",
                                     kManners[static_cast<int>(manner)]));
            ASSERT_NO_FATAL_FAILURE(expect_same(walk(way, tar, rows, manner), expected));
            ++ways;
          }
        }
      }
    }
    EXPECT_GE(killed_, ways / 3 - 5) << "the writers ended before they were killed";
    Sha256 all;
    for (const std::string& line : expected) {
      all.add({reinterpret_cast<const std::uint8_t*>(line.data()), line.size()});
    }
    fmt::print("{} images, {} lines, {} ways, {} of them killed; {}\n", splits_[0].size(), expected.size(), ways,
               killed_, all.done());
  }

 private:
  static data::ImageSplit open(const std::filesystem::path& path) {
    return data::open_image_folder(path, {.val = 0}, {}, {}).train;
  }

  // The expected lines, loaded by the caller's thread alone, from libjpeg-turbo's pixels. Also checks that the matrix
  // can find errors: the tail is uneven, both epochs have the bad image, and no two lines are equal.
  Lines reference() {
    data::ImageLoaderOptions options = matrix_options(open(images_.library()), {});
    std::set<std::int64_t> epochs_with_bad;
    options.bad.listener = [&](const core::BadSample& bad) { epochs_with_bad.insert(bad.epoch); };
    MatrixLoaders loaders(options, {});
    const std::int64_t steps = (splits_[0].size() + options.batch - 1) / options.batch;
    EXPECT_NE(splits_[0].size() % options.batch, 0);
    calls_ = static_cast<int>(2 * (steps + 1));
    Lines lines;
    for (int call = 0; call < calls_; ++call) {
      lines.push_back(loaders.next());
    }
    EXPECT_EQ(epochs_with_bad, (std::set<std::int64_t>{0, 1}));
    EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), lines.size());
    return lines;
  }

  Lines walk(const MatrixWay& way, bool tar, bool rows, Manner manner) {
    Lines lines = manner == Manner::kKilled ? killed(way, tar) : Lines();
    std::set<std::size_t> restarts;
    while (manner == Manner::kRestarted && restarts.size() < 20) {
      restarts.insert(random_() % static_cast<std::size_t>(calls_));
    }
    data::ImageLoaderOptions options = matrix_options(splits_[tar ? 1 : 0], way);
    if (rows) {  // in the list that the killed writers began
      options.rows = std::make_shared<data::RowIndex>(
          *options.split.source, data::RowIndexOptions{.cache = images_.cache(), .from_samples = 1});
    }
    auto loaders = std::make_unique<MatrixLoaders>(options, after(lines));
    while (lines.size() < static_cast<std::size_t>(calls_)) {
      if (restarts.contains(lines.size())) {
        const core::Position at = loaders->position();
        loaders.reset();
        loaders = std::make_unique<MatrixLoaders>(options, at);
      }
      lines.push_back(loaders->next());
    }
    return lines;
  }

  // The lines that a program wrote until it was killed at a random place in the two epochs.
  Lines killed(const MatrixWay& way, bool tar) {
    const WriterTask task{.data = images_.path(tar), .cache = images_.cache(), .calls = calls_, .way = way};
    StokerProcess writer(task.words(), "/", {}, batch_writer());
    EXPECT_TRUE(writer.wait_for("\n", 1 + static_cast<int>(random_() % static_cast<unsigned>(calls_ - 2))))
        << writer.err();
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 3000));
    writer.signal(SIGKILL);
    const Finished finished = writer.finish();
    killed_ += finished.code == 128 + SIGKILL ? 1 : 0;
    return whole_lines(finished.out);
  }

  static void expect_same(const Lines& lines, const Lines& expected) {
    ASSERT_EQ(lines.size(), expected.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ASSERT_EQ(lines[i], expected[i]);
    }
  }

  Images images_;
  data::ImageSplit splits_[2];  // from the files and from the tar
  Random random_{7};
  int calls_ = 0, killed_ = 0;
};

TEST(WholeHashMatrix, Sha256IsTheStandards) {  // examples from FIPS 180-4
  Sha256 empty, abc;
  abc.add(std::array<std::uint8_t, 3>{'a', 'b', 'c'});
  EXPECT_EQ(empty.done(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(abc.done(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(WholeHashMatrix, OfTheEmbeddedSample) {
  const TempFolder folder;
  const std::string command =
      "'" + (source_folder() / "tools/demo_data").native() + "' '" + (folder / "sample").native() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  Matrix(folder / "sample").run();
}

TEST(WholeHashMatrix, OfPhotographs) {
  const std::filesystem::path photographs = shared_data("imagenet-sample");
  if (photographs.empty()) {
    GTEST_SKIP() << "needs imagenet-sample/ in STOKER_DATA";
  }
  Matrix(photographs).run();
}

}  // namespace
}  // namespace stoker::testing
