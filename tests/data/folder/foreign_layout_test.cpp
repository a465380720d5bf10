// SPDX-License-Identifier: Apache-2.0
// Data for segmentation, detection and audio is refused with a reason, in the layouts of common downloads. Classes that
// only have similar names are accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/data/decode/jpeg_encode.h"
#include "stoker/data/folder/image_folder.h"
#include "support/images.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_png;
using testing::TempFolder;
namespace fs = std::filesystem;

constexpr int kImages = 6;
constexpr int kWidth = 24, kHeight = 16;

std::string image(int number, int width = kWidth) { return small_png(number, width, kHeight); }

// A disc of value `inside` on 0, like a mask of a single object.
augment::Image disc(int number, int channels, std::uint8_t inside) {
  augment::Image image;
  image.reshape(kWidth, kHeight, channels);
  std::uint8_t* out = image.pixels.data();
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const int dx = x - 8 - number, dy = y - 8;
      out = std::fill_n(out, channels, dx * dx + dy * dy < 25 ? inside : std::uint8_t{0});
    }
  }
  return image;
}

std::string mask(int number) { return testing::png_of(disc(number, 1, 1)); }

// Writes kImages files; pattern: their name, with {} for the number.
template <typename Content>
void write_all(const TempFolder& folder, const std::string& pattern, const Content& content) {
  for (int i = 0; i < kImages; ++i) {
    folder.write(fmt::format(fmt::runtime(pattern), i), content(i));
  }
}

const auto any_image = [](int i) { return image(i); };

std::string error_of(const fs::path& path, const SplitOptions& options = {}, const IndexOptions& index = {}) {
  try {
    (void)open_image_folder(path, options, {}, index);
  } catch (const DataError& error) {
    return error.what();
  }
  return "read";
}

struct Layout {
  const char* images;
  const char* masks;
};

class Segmentation : public ::testing::TestWithParam<Layout> {};

TEST_P(Segmentation, IsRefusedAndCanBeForced) {
  const TempFolder folder;
  write_all(folder, GetParam().images, any_image);
  write_all(folder, GetParam().masks, mask);
  EXPECT_THAT(error_of(folder.path()),
              AllOf(HasSubstr(folder.path().native()), HasSubstr("looks like data for segmentation"),
                    HasSubstr("set task=image_classification"), HasSubstr("6 images are paired by name")));
  // With classes_meant, only an error about something else may remain.
  EXPECT_THAT(error_of(folder.path(), {.classes_meant = true}), Not(HasSubstr("which Stoker does not support yet")));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Segmentation,
                         ::testing::Values(Layout{"images/{}.png", "masks/{}.png"},
                                           Layout{"imgs/{}.png", "labels/{}.png"},
                                           Layout{"Images/case {}.png", "Ground_Truth/case {}_Segmentation.png"},
                                           Layout{"train/images/{}.png", "train/masks/{}_mask.png"},
                                           Layout{"images/training/{}.png", "annotations/training/{}.png"},
                                           Layout{"train/{}.png", "trainannot/{}.png"},
                                           Layout{"train_images/{}.png", "train_masks/{}.png"},
                                           Layout{"images/{}.png", "annotations/trimaps/{}.png"},
                                           Layout{"benign/b ({}).png", "benign/b ({})_mask.png"},
                                           Layout{"leftImg8bit/train/ulm/u_{}_leftImg8bit.png",
                                                  "gtFine/train/ulm/u_{}_gtFine_labelIds.png"}));

TEST(ForeignLayout, AForcedFolderIsReadAndItsIndexForgetsNothing) {
  const TempFolder folder, cache;
  write_all(folder, "images/{}.png", any_image);
  write_all(folder, "masks/{}.png", mask);
  const IndexOptions index{.cache = cache.path(), .from_files = 0, .clock = &file_clock};
  const ImageFolder forced = open_image_folder(folder.path(), {.val = 0, .classes_meant = true}, {}, index);
  EXPECT_EQ(forced.classes, (std::vector<std::string>{"images", "masks"}));
  EXPECT_THAT(forced.findings, Contains(AllOf(HasSubstr("looks like data for segmentation"),
                                              HasSubstr("used as classes as requested"))));
  EXPECT_THAT(error_of(folder.path(), {}, index), HasSubstr("looks like data for segmentation"));
  // `stoker inspect` accepts images for any task.
  EXPECT_THAT(open_image_folder(folder.path(), {.for_training = false}).findings,
              Contains(HasSubstr("looks like data for segmentation")));
}

TEST(ForeignLayout, MasksMayBeJpegs) {
  const TempFolder folder;
  write_all(folder, "images/{}.jpg", any_image);
  write_all(folder, "masks/{}.jpg",
            [](int i) { return std::string(as_text(encode_jpeg(disc(i, 3, 255).view(), 90))); });
  EXPECT_THAT(error_of(folder.path()), HasSubstr("looks like data for segmentation"));
}

TEST(ForeignLayout, LooksIntoTarFiles) {
  const TempFolder folder;
  testing::TarBuilder tar;
  for (int i = 0; i < kImages; ++i) {
    tar.add(fmt::format("set/images/{}.png", i), image(i)).add(fmt::format("set/masks/{}.png", i), mask(i));
  }
  folder.write("set.tar", tar.done());
  folder.write("shards/train-0.tar", tar.done());
  EXPECT_THAT(error_of(folder / "set.tar"), HasSubstr("looks like data for segmentation"));
  EXPECT_THAT(error_of(folder / "shards"), HasSubstr("looks like data for segmentation"));
}

constexpr const char* kVoc =
    "<annotation>\n\t<filename>0.jpg</filename>\n\t<object>\n\t\t<name>dog</name>\n\t\t<bndbox><xmin>1</xmin>"
    "<ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>\n\t</object>\n</annotation>\n";

TEST(ForeignLayout, RefusesPascalVoc) {
  const TempFolder folder;
  write_all(folder, "VOCdevkit/VOC2007/JPEGImages/{}.png", any_image);
  write_all(folder, "VOCdevkit/VOC2007/Annotations/{}.xml", [](int) { return kVoc; });
  write_all(folder, "VOCdevkit/VOC2012/JPEGImages/{}.png", any_image);
  folder.write("VOCdevkit/VOC2007/ImageSets/Main/train.txt", "0\n1\n");
  EXPECT_THAT(error_of(folder.path()), AllOf(HasSubstr("looks like data for detection"), HasSubstr("Pascal VOC format"),
                                             HasSubstr("set task=image_classification")));
}

TEST(ForeignLayout, RefusesCoco) {
  const TempFolder folder;
  write_all(folder, "train2017/{:012}.png", any_image);
  write_all(folder, "val2017/{:012}.png", any_image);
  folder.write("annotations/captions_val2017.json", R"({"images": [{"file_name": "0.png"}], "annotations": []})");
  // As long as a real file: the evidence is at its start and its end.
  std::string images;
  for (int i = 0; i < 40'000; ++i) {
    images += fmt::format("{}{{\"id\": {}, \"file_name\": \"{:012}.png\", \"width\": 24, \"height\": 16}}",
                          i == 0 ? "" : ", ", i, i);
  }
  folder.write("annotations/instances_train2017.json",
               "{\"info\": {}, \"images\": [" + images + "], \"annotations\": [{\"image_id\": 0, \"category_id\": 1, " +
                   "\"bbox\": [1, 2, 3, 4]}], \"categories\": [{\"id\": 1, \"name\": \"dog\"}]}");
  EXPECT_THAT(error_of(folder.path()), AllOf(HasSubstr("looks like data for detection"), HasSubstr("COCO format"),
                                             HasSubstr("annotations/instances_train2017.json")));
}

TEST(ForeignLayout, RefusesYolo) {
  const TempFolder folder, roboflow;
  for (const char* split : {"train", "val"}) {
    write_all(folder, fmt::format("images/{}/{{}}.png", split), any_image);
    write_all(folder, fmt::format("labels/{}/{{}}.txt", split), [](int i) {
      return i == 0 ? "" : i == 1 ? "0 0.1 0.1 0.9 0.1 0.9 0.9 0.1 0.9\n" : "0 0.5 0.5 0.25 0.25\n12 1 1 0.1 0.1\n";
    });
  }
  folder.write("data.yaml", "train: images/train\nval: images/val\nnames: [dog]\n");
  EXPECT_THAT(error_of(folder.path()), AllOf(HasSubstr("looks like data for detection"), HasSubstr("YOLO format")));
  write_all(roboflow, "train/images/{}.png", any_image);
  write_all(roboflow, "train/labels/{}.txt", [](int) { return "3 0.5 0.5 0.25 0.25"; });
  EXPECT_THAT(error_of(roboflow.path()), HasSubstr("looks like data for detection"));
}

TEST(ForeignLayout, RefusesSound) {
  const TempFolder folder;
  for (const char* name : {"blues/1.wav", "blues/2.WAV", "rock/1.flac", "rock/2.mp3", "rock/3.ogg"}) {
    folder.write(name, "RIFF");
  }
  EXPECT_THAT(error_of(folder.path()), AllOf(HasSubstr("looks like data for audio"), HasSubstr("5 sound files"),
                                             HasSubstr("blues/1.wav"), HasSubstr("0 images")));
}

TEST(ForeignLayout, ClassesMayBeCalledImagesAndMasks) {
  // Photographs of printed images and of carnival masks, with the same numbers in both classes.
  const TempFolder photos, worn, drawn, sizes, table;
  write_all(photos, "images/{}.png", any_image);
  write_all(photos, "masks/{}.png", [](int i) { return image(i + 50); });
  EXPECT_EQ(open_image_folder(photos.path()).classes, (std::vector<std::string>{"images", "masks"}));
  write_all(worn, "with_mask/{}.png", any_image);
  write_all(worn, "without_mask/{}.png", mask);
  EXPECT_EQ(error_of(worn.path()), "read");
  // In drawings, the images also have few values.
  write_all(drawn, "images/{}.png", [](int i) { return testing::png_of(disc(i, 1, 200)); });
  write_all(drawn, "masks/{}.png", mask);
  EXPECT_EQ(error_of(drawn.path()), "read");
  write_all(sizes, "images/{}.png", [](int i) { return image(i, 31); });
  write_all(sizes, "masks/{}.png", mask);
  EXPECT_EQ(error_of(sizes.path()), "read");
  write_all(table, "images/{}.png", any_image);
  write_all(table, "masks/{}.png", mask);
  table.write("labels.csv", "filename,label\nimages/0.png,cat\nimages/1.png,cat\nimages/2.png,dog\nimages/3.png,dog\n");
  EXPECT_EQ(error_of(table.path()), "read");
}

TEST(ForeignLayout, ClassFoldersMayComeWithBoxesAndTexts) {
  const TempFolder folder, captions, covers;
  for (const char* breed : {"beagle", "poodle"}) {
    write_all(folder, fmt::format("images/{}/{{}}.png", breed), any_image);
    write_all(folder, fmt::format("annotations/{}/{{}}.xml", breed), [](int) { return kVoc; });
    write_all(captions, fmt::format("{}/{{}}.png", breed), any_image);
    write_all(captions, fmt::format("{}/{{}}.txt", breed), [](int i) { return fmt::format("{} dogs", i); });
    write_all(covers, fmt::format("{}/{{}}.png", breed), any_image);
    write_all(covers, fmt::format("{}/{{}}.wav", breed), [](int) { return "RIFF"; });
  }
  EXPECT_EQ(error_of(folder.path()), "read");
  EXPECT_EQ(error_of(captions.path()), "read");
  EXPECT_EQ(error_of(covers.path()), "read");
}

}  // namespace
}  // namespace stoker::data
