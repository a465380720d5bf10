// SPDX-License-Identifier: Apache-2.0
// Images in .npy files. Files written by numpy are decoded; webp_decode_test.cpp compares their pixels with
// formats.tsv. Arrays that are not images are refused, and the error says what to do.
#include "stoker/data/decode/npy_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "stoker/base/error.h"
#include "stoker/data/decode/image_decode.h"
#include "support/decode_checks.h"
#include "support/images.h"

namespace stoker::data {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// A file of version 1 as numpy writes it, but without the padding of the header.
std::string npy(const std::string& header, std::size_t bytes) {
  std::string file = "\x93NUMPY\x01";
  file += '\0';
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  return file + header + std::string(bytes, 'x');
}

std::string array(const std::string& type, const std::string& shape, std::size_t bytes, const char* fortran = "False") {
  return npy("{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n", bytes);
}

std::string error_of(std::string_view file, const DecodeLimits& limits = {}) {
  augment::Image out;
  try {
    decode_image(as_bytes(file), 3, limits, out, "x.npy");
  } catch (const DataError& error) {
    return error.what();
  }
  return "decoded";
}

TEST(NpyDecode, APartIsThatPartOfTheWhole) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::source_folder() / "tests/data/formats")) {
    if (entry.path().extension() == ".npy") {
      testing::expect_parts_of(entry.path(), 3, 40);
      testing::expect_parts_of(entry.path(), 1, 40);
      ++files;
    }
  }
  EXPECT_EQ(files, 8);
}

TEST(NpyDecode, ArraysThatAreNoImagesAreRefusedWithWhatToDo) {
  EXPECT_EQ(error_of(array("|u1", "(4, 5, 3)", 60)), "decoded");
  EXPECT_THAT(error_of(array("<f4", "(4, 5)", 80)),
              AllOf(HasSubstr("x.npy"), HasSubstr("<f4"), HasSubstr("numpy.uint8")));
  EXPECT_THAT(error_of(array("|b1", "(4, 5)", 20)), HasSubstr("numpy.uint8"));
  EXPECT_THAT(error_of(array("|u1", "(3, 4, 5)", 60)), AllOf(HasSubstr("[3, 4, 5]"), HasSubstr("transpose(1, 2, 0)")));
  EXPECT_THAT(error_of(array("|u1", "(9, 4, 5, 3)", 540)), HasSubstr("one image per file"));
  EXPECT_THAT(error_of(array("|u1", "(9,)", 9)), HasSubstr("the shape is [9]"));
  EXPECT_THAT(error_of(array("|u1", "()", 1)), HasSubstr("the shape is []"));
  EXPECT_THAT(error_of(array("|u1", "(4, 5, 2)", 40)), HasSubstr("[4, 5, 2]"));
  EXPECT_THAT(error_of(array("|u1", "(4, 5)", 20, "True")), HasSubstr("numpy.ascontiguousarray"));
  EXPECT_THAT(error_of(array("|u1", "(0, 5)", 0)), HasSubstr("5 x 0 pixels"));
}

TEST(NpyDecode, WhatTheHeaderClaimsIsChecked) {
  EXPECT_THAT(error_of(array("|u1", "(4, 5)", 19)), HasSubstr("has 19 bytes of values, but the shape [4, 5] needs 20"));
  EXPECT_THAT(error_of(array("|u1", "(4, 5)", 21)), HasSubstr("has 21 bytes of values"));
  EXPECT_THAT(error_of(array("|u1", "(4, 5)", 20), {.max_pixels = 19}), HasSubstr("the limit is 19 pixels"));
  EXPECT_THAT(error_of(array("|u1", "(99999999999, 5)", 20)), HasSubstr("too large for an image"));
  EXPECT_THAT(error_of(array("|u1", "(1073741824, 1073741824, 4)", 20)), HasSubstr("needs 4611686018427387904"));
  EXPECT_THAT(error_of(array("|u1", "(99999999999999999999, 5)", 20)), HasSubstr("the header is"));
  EXPECT_THAT(error_of(array("|u1", "(-4, 5)", 20)), HasSubstr("the header is"));
  for (const char* header :
       {"", "{", "}", "{}", "{'descr': '|u1'}", "{'descr': [('r', '|u1')], 'fortran_order': False, 'shape': (4, 5)}",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (4, 5)}", "{'descr': '|u1', 'fortran_order': False, 'shape': 4}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 5), 'shape': (4, 5)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 5)} x",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (4 5)}", "{'descr: |u1"}) {
    EXPECT_THAT(error_of(npy(header, 20)), HasSubstr("x.npy: damaged or unsupported .npy: the header is")) << header;
  }
  std::string later = array("|u1", "(4, 5)", 20);
  later[6] = 4;
  EXPECT_THAT(error_of(later), HasSubstr("the version is 4"));
}

TEST(NpyDecode, EveryTruncationIsSeenAndFlippedBytesEndWell) {
  const std::string good = array("|u1", "(4, 5, 3)", 60);
  for (std::size_t size = 6; size < good.size(); ++size) {
    EXPECT_THAT(error_of(std::string_view(good).substr(0, size)), HasSubstr("x.npy: ")) << size;
  }
  std::mt19937 random(9);
  for (int i = 0; i < 5000; ++i) {
    std::string bad = good;
    bad[6 + random() % (good.size() - 66)] = static_cast<char>(random() & 0xFF);
    EXPECT_THAT(error_of(bad), AnyOf("decoded", HasSubstr("x.npy: ")));
  }
}

}  // namespace
}  // namespace stoker::data
