// SPDX-License-Identifier: Apache-2.0
// Every common layout gives the same classes, labels and order. The validation split is taken from train as documented.
#include "stoker/data/folder/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "support/images.h"
#include "support/shared_data.h"
#include "support/tar_builder.h"
#include "support/temp_folder.h"

namespace stoker::data {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::small_png;
using testing::TarBuilder;
using testing::TempFolder;
using Strings = std::vector<std::string>;

// `count` different images for each class, with names such as "b/3.png".
std::map<std::string, std::string> images(const Strings& classes, int count, int first = 0) {
  std::map<std::string, std::string> files;
  for (const std::string& name : classes) {
    for (int i = 0; i < count; ++i) {
      files[name + "/" + std::to_string(i) + ".png"] = small_png(first++);
    }
  }
  return files;
}

void write(const TempFolder& folder, const std::string& prefix, const std::map<std::string, std::string>& files) {
  for (const auto& [name, bytes] : files) {
    folder.write(prefix + name, bytes);
  }
}

std::string tar_of(const std::string& prefix, const std::map<std::string, std::string>& files) {
  TarBuilder tar;
  for (auto it = files.rbegin(); it != files.rend(); ++it) {  // members of a tar file may have any order
    tar.add(prefix + it->first, it->second);
  }
  return tar.done();
}

std::vector<std::int64_t> labels_of(const ImageSplit& split) { return {split.labels.begin(), split.labels.end()}; }

Strings keys_of(const ImageSplit& split) {
  Strings keys;
  for (const std::int64_t sample : split.samples) {
    keys.emplace_back(split.source->key(sample));
  }
  return keys;
}

// Checks that samples, labels and bytes are those of `files`, in bytewise order of their paths.
void expect_is(const ImageSplit& split, const Strings& classes, const std::map<std::string, std::string>& files) {
  ASSERT_EQ(split.size(), static_cast<std::int64_t>(files.size()));
  std::size_t i = 0;
  std::vector<std::byte> bytes;
  for (const auto& [name, content] : files) {
    EXPECT_EQ(split.source->key(split.samples[i]), name);
    EXPECT_EQ(classes[static_cast<std::size_t>(split.labels[i])], name.substr(0, name.find('/')));
    split.source->read(split.samples[i], bytes);
    EXPECT_EQ(as_text(bytes), content) << name;
    ++i;
  }
}

TEST(ImageFolder, EveryLayoutGivesTheSame) {
  const auto train = images({"b", "a", "C c"}, 4), val = images({"a", "b", "C c"}, 2, 100),
             test = images({"b"}, 1, 200);
  const Strings classes = {"C c", "a", "b"};
  const TempFolder folders, synonyms, shards, tar, wrapped;
  write(folders, "train/", train);
  write(folders, "val/", val);
  write(folders, "test/", test);
  write(synonyms, "Training/", train);
  write(synonyms, "VALIDATION/", val);
  write(synonyms, "testing/", test);
  auto second = train;
  const auto node = second.extract("a/1.png");
  shards.write("train-00000.tar", tar_of("", second));
  shards.write("train-00001.tar", tar_of("", {{node.key(), node.mapped()}}));
  shards.write("val.tar", tar_of("", val));
  shards.write("test-0.tar", tar_of("./", test));
  std::string all = tar_of("./train/", train);
  all.resize(all.size() - 1024);
  std::string rest = tar_of("valid/", val);
  rest.resize(rest.size() - 1024);
  tar.write("data.tar", all + rest + tar_of("test/", test));
  write(wrapped, "pets/train/", train);
  write(wrapped, "pets/dev/", val);
  write(wrapped, "pets/test/", test);

  const std::vector<std::pair<std::filesystem::path, std::string>> layouts = {
      {folders.path(), "split folders"}, {synonyms.path(), "split folders"}, {shards.path(), "tar shards"},
      {tar / "data.tar", "tar file"},    {tar.path(), "tar file"},           {wrapped.path(), "split folders"}};
  for (const auto& [path, layout] : layouts) {
    SCOPED_TRACE(path);
    const ImageFolder found = open_image_folder(path);
    EXPECT_EQ(found.layout, layout);
    EXPECT_EQ(found.classes, classes);
    expect_is(found.train, classes, train);
    expect_is(found.val, classes, val);
    expect_is(found.test, classes, test);
    EXPECT_THAT(found.findings,
                Contains(HasSubstr("the test split has no images of 2 of the 3 classes, for example \"C c\"")));
  }
}

TEST(ImageFolder, CarvesABalancedValidationSplitByIndex) {
  const TempFolder folder;
  write(folder, "", images({"a", "b"}, 30));
  write(folder, "", images({"few"}, 2, 80));
  write(folder, "", images({"one"}, 1, 90));
  const ImageFolder found = open_image_folder(folder.path(), {.val = 0.1, .seed = 1});
  EXPECT_EQ(found.layout, "class folders");
  EXPECT_EQ(found.val.size(), 3 + 3 + 1);
  EXPECT_EQ(found.train.size(), 63 - 7);
  EXPECT_EQ(found.train.source, found.val.source);
  EXPECT_THAT(found.findings, Contains("validation: 7 of the 63 training samples, balanced by class, seed 1"));
  EXPECT_THAT(found.findings, Contains("class \"one\" has only one sample, which stays in train"));
  std::vector<int> per_class(4);
  for (const std::int64_t label : found.val.labels) {
    ++per_class[static_cast<std::size_t>(label)];
  }
  EXPECT_EQ(per_class, (std::vector<int>{3, 3, 1, 0}));
  Strings all = keys_of(found.train), val = keys_of(found.val);
  EXPECT_TRUE(std::ranges::is_sorted(all));
  all.insert(all.end(), val.begin(), val.end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::unique(all).size(), 0u);
  EXPECT_EQ(all.size(), 63u);

  EXPECT_EQ(keys_of(open_image_folder(folder.path(), {.val = 0.1, .seed = 1}).val), val);
  EXPECT_NE(keys_of(open_image_folder(folder.path(), {.val = 0.1, .seed = 2}).val), val);
  EXPECT_EQ(open_image_folder(folder.path(), {.val = 0}).val.size(), 0);
  EXPECT_EQ(open_image_folder(folder.path(), {.val = 0}).train.size(), 63);
  for (const double share : {-0.1, 1.0, 7.0, std::nan("")}) {
    EXPECT_THROW((void)open_image_folder(folder.path(), {.val = share}), ConfigError) << share;
  }
  // The same images in a tar file: the same split.
  const TempFolder tars;
  auto files = images({"a", "b"}, 30);
  files.merge(images({"few"}, 2, 80));
  files.merge(images({"one"}, 1, 90));
  tars.write("train-0.tar", tar_of("", files));
  EXPECT_EQ(keys_of(open_image_folder(tars.path(), {.val = 0.1, .seed = 1}).val), val);
}

TEST(ImageFolder, ReadsALabelsTable) {
  const TempFolder folder;
  for (int i = 0; i < 6; ++i) {
    folder.write("p " + std::to_string(i) + ".png", small_png(i));
  }
  folder.write("labels.csv",
               "\xEF\xBB\xBFlabel,filename,split\r\ncat,p 0.png,train\r\n\"dog, big\",./p 1.png,Training\r\n"
               "cat,p 2.png,valid\r\ncat,p 3.png,test\r\ncat,p 5.png,train\r\n");
  const ImageFolder found = open_image_folder(folder.path());
  EXPECT_EQ(found.layout, "labels.csv");
  EXPECT_EQ(found.classes, (Strings{"cat", "dog, big"}));
  EXPECT_EQ(keys_of(found.train), (Strings{"p 0.png", "p 1.png", "p 5.png"}));
  EXPECT_EQ(labels_of(found.train), (std::vector<std::int64_t>{0, 1, 0}));
  EXPECT_EQ(keys_of(found.val), Strings{"p 2.png"});
  EXPECT_EQ(keys_of(found.test), Strings{"p 3.png"});
  EXPECT_THAT(found.findings,
              Contains(HasSubstr("images without a line in labels.csv ignored: 1, for example p 4.png")));
}

// The layout that `zip` and `tar cf pets.tar pets/` produce.
TEST(ImageFolder, FindsALabelsTableOneFolderDown) {
  const TempFolder folder;
  for (int i = 0; i < 4; ++i) {
    folder.write("pets/all/" + std::to_string(i) + ".png", small_png(i));
  }
  const std::string table = "filename,label\nall/0.png,cat\nall/1.png,dog\nall/2.png,cat\nall/3.png,dog\n";
  folder.write("pets/labels.csv", table);
  const ImageFolder found = open_image_folder(folder.path(), {.val = 0});
  EXPECT_EQ(found.layout, "labels.csv");
  EXPECT_EQ(labels_of(found.train), (std::vector<std::int64_t>{0, 1, 0, 1}));
  EXPECT_THAT(found.findings, Contains("all images are in pets; it is used as the root"));

  // Now there are two top folders: they are classes, and the table is ignored.
  folder.write("other/4.png", small_png(4));
  const ImageFolder two = open_image_folder(folder.path(), {.val = 0});
  EXPECT_EQ(two.layout, "class folders");
  EXPECT_THAT(two.findings, Contains(HasSubstr("for example pets/labels.csv")));
}

TEST(ImageFolder, RefusesWrongLabelsTables) {
  const auto error_of = [](std::string_view table) -> std::string {
    const TempFolder folder;
    folder.write("1.png", small_png(1));
    folder.write("2.png", small_png(2));
    folder.write("labels.csv", table);
    try {
      (void)open_image_folder(folder.path());
    } catch (const DataError& error) {
      return error.what();
    }
    return "read";
  };
  EXPECT_EQ(error_of("filename,label\n1.png,a\n2.png,b\n"), "read");
  EXPECT_THAT(error_of("filename,label\n1.png,a\n3.png,b\n"),
              HasSubstr("line 3: \"3.png\" is not one of the 2 images"));
  EXPECT_THAT(error_of("filename,label\n1.png,a\n../2.png,b\n"), HasSubstr("is not one of"));
  EXPECT_THAT(error_of("filename,label,splt\n1.png,a,train\n"), HasSubstr("unknown column \"splt\""));
  EXPECT_THAT(error_of("filename,filename,label\n"), HasSubstr("occurs twice"));
  EXPECT_THAT(error_of("filename\n1.png\n"), HasSubstr("column \"label\" is missing"));
  EXPECT_THAT(error_of("filename,label,split\n1.png,a,trian\n"), HasSubstr("unknown split \"trian\""));
  EXPECT_THAT(error_of("filename,label\n1.png,a\n1.png,b\n"), HasSubstr("already has a label in line 2"));
  EXPECT_THAT(error_of("filename,label\n1.png,\n"), HasSubstr("the label is empty"));
  EXPECT_THAT(error_of("filename,label\n1.png\n"), HasSubstr("1 field, but the first line has 2"));
  EXPECT_THAT(error_of(""), HasSubstr("is empty"));
}

TEST(ImageFolder, SaysWhichImagesAreInTrainToo) {
  const TempFolder folder;
  write(folder, "train/", images({"a", "b"}, 3));
  write(folder, "val/", images({"a", "b"}, 3, 50));
  folder.write("val/a/copy.png", small_png(1));
  EXPECT_THAT(open_image_folder(folder.path()).findings,
              Contains(::testing::AllOf(HasSubstr("1 of the 7 images of val are also in train"),
                                        HasSubstr("val/a/copy.png = "))));
}

TEST(ImageFolder, TheSamePathInTwoShardsIsTwoSamples) {
  const TempFolder folder;
  folder.write("train-0.tar", TarBuilder().add("a/1.png", small_png(1)).add("b/1.png", small_png(2)).done());
  folder.write("train-1.tar", TarBuilder().add("a/1.png", small_png(3)).done());
  const ImageFolder found = open_image_folder(folder.path(), {.val = 0});
  EXPECT_EQ(keys_of(found.train), (Strings{"a/1.png", "a/1.png", "b/1.png"}));
  std::vector<std::byte> bytes;
  found.train.source->read(0, bytes);
  EXPECT_EQ(as_text(bytes), small_png(1));
  EXPECT_THAT(found.train.source->name(1), HasSubstr("train-1.tar: a/1.png"));
}

TEST(ImageFolder, AClassMayBeCalledTrain) {
  const TempFolder folder;
  write(folder, "", images({"car", "train"}, 2));
  EXPECT_EQ(open_image_folder(folder.path()).classes, (Strings{"car", "train"}));
}

TEST(ImageFolder, ReadsCifarAndImagenetSample) {
  const std::filesystem::path root = testing::shared_data("cifar10").parent_path();
  if (root.empty() || testing::shared_data("imagenet-sample").empty()) {
    GTEST_SKIP() << "needs cifar10/ and imagenet-sample/ in STOKER_DATA";
  }
  const TempFolder cache;
  Strings keys;
  for (const char* kept : {"", "kept", "kept"}) {  // without an index; writes an index; uses it
    const IndexOptions index{.cache = *kept != 0 ? cache / kept : ""};
    const ImageFolder cifar = open_image_folder(root / "cifar10", {.val = 0.1, .seed = 1}, {}, index);
    EXPECT_EQ(cifar.layout, "tar shards");
    EXPECT_EQ(cifar.classes.size(), 10u);
    EXPECT_EQ(cifar.train.size(), 45'000);
    EXPECT_EQ(cifar.val.size(), 5'000);
    EXPECT_EQ(cifar.test.size(), 10'000);
    keys = keys.empty() ? keys_of(cifar.val) : keys;
    EXPECT_EQ(keys_of(cifar.val), keys);
  }
  const ImageFolder imagenet = open_image_folder(root / "imagenet-sample");
  EXPECT_EQ(imagenet.classes.size(), 250u);
  EXPECT_EQ(imagenet.train.size(), 250);
  EXPECT_EQ(imagenet.val.size(), 0);
  EXPECT_THAT(imagenet.findings, Contains(HasSubstr("250 classes have only one sample")));
}

}  // namespace
}  // namespace stoker::data
