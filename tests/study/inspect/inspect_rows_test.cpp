// SPDX-License-Identifier: Apache-2.0
// An inspection leaves the rows of all JPEGs to later trainings.
#include <gtest/gtest.h>

#include "stoker/data/folder/cache_folder.h"
#include "stoker/data/load/row_index.h"
#include "stoker/study/inspect/inspect.h"
#include "support/many_photographs.h"

namespace stoker::study {
namespace {

TEST(Inspect, LeavesTheRowsOfJpegsToTrainings) {
  const stoker::testing::TempFolder folder;
  stoker::testing::write_many_photographs(folder);
  (void)inspect_images(folder.path(), {.threads = 2});
  const auto source = data::open_image_folder(folder.path()).train.source;
  const data::RowIndex index(*source, {.cache = data::cache_folder()});
  for (const char* name : {"one/0.jpg", "two/0.jpg"}) {
    data::JpegRows rows, found;
    data::ImageDecoder decoder;
    const std::string file = read_text(folder / name);
    const auto size = decoder.open(as_bytes(file), 3, {}, name);
    (void)decoder.decode({0, 0, size.width, size.height}, name, 1, &rows);
    index.find(data::content_key(as_bytes(file)), found);
    EXPECT_EQ(found, rows) << name;
  }
}

}  // namespace
}  // namespace stoker::study
