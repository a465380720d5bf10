// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "support/temp_folder.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TempFolder;
using Tensors = std::map<std::string, at::Tensor>;

// ctest sets both variables; without them, run from the root of the source.
fs::path place(const char* variable, const char* fallback) {
  const char* value = std::getenv(variable);
  return value == nullptr ? fallback : value;
}
fs::path committed() { return place("STOKER_SOURCE", ".") / "tests/data/safetensors"; }

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// The error of reading the file, or "".
std::string verdict(const fs::path& path) {
  try {
    (void)read_safetensors(path);
    return "";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path.filename().native()));
    return error.what();
  }
}

// The tensors of tests/data/safetensors/make_golden.py, built here.
Tensors golden() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto tensor = [](std::vector<double> values, at::ScalarType dtype) {
    return at::tensor(values, at::TensorOptions().dtype(at::kDouble)).to(dtype);
  };
  return {{"f64", at::arange(6, at::kDouble).reshape({2, 3}).div(4)},
          {"scalar", at::full({}, -2.5F, at::kFloat)},
          {"f32.b", at::tensor(std::vector<float>{std::numeric_limits<float>::quiet_NaN(), kInfinity, -0.0F})},
          {"f16", tensor({1, 65504}, at::kHalf)},
          {"bf16", tensor({1, 2, -3}, at::kBFloat16)},
          {"e4m3", tensor({1, -2}, at::kFloat8_e4m3fn)},
          {"e5m2", tensor({0.5}, at::kFloat8_e5m2)},
          {"i64", at::tensor(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(),
                                                       std::numeric_limits<std::int64_t>::max()})},
          {"i32 \"ü\"\n", tensor({1, -2}, at::kInt).reshape({2, 1})},
          {"i16", tensor({-300}, at::kShort)},
          {"i8", tensor({-128, 127}, at::kChar)},
          {"u8", tensor({0, 255}, at::kByte)},
          {"u16", tensor({65535}, at::kUInt16)},
          {"u32", tensor({7}, at::kUInt32)},
          {"u64", tensor({9}, at::kUInt64)},
          {"bool", tensor({1, 0, 1}, at::kBool)},
          {"empty", at::zeros({0, 3})},
          {"complex", at::complex(at::full({1}, 1.0F), at::full({1}, 2.0F))}};
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         (a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

TEST(Safetensors, WritesTheBytesOfTheReferenceImplementation) {
  const TempFolder temp;
  write_safetensors(temp / "ours.safetensors", golden(), {{"format", "pt"}});
  EXPECT_EQ(read_text(temp / "ours.safetensors"), read_text(committed() / "golden.safetensors"));
}

TEST(Safetensors, ReadsWhatTheReferenceImplementationWrote) {
  const Safetensors read = read_safetensors(committed() / "golden.safetensors");
  const Tensors expected = golden();
  ASSERT_EQ(read.tensors.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(read.tensors.contains(name)) << name;
    EXPECT_TRUE(same_bytes(read.tensors.at(name), tensor)) << name;
  }
  EXPECT_EQ(read.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
}

TEST(Safetensors, PeekTellsTheHeaderAlone) {
  const SafetensorsHeader header = peek_safetensors(committed() / "golden.safetensors");
  ASSERT_EQ(header.entries.size(), golden().size());
  EXPECT_EQ(header.entries[0].name, "u64");  // the widest dtype of all
  EXPECT_EQ(header.entries[0].dtype, "U64");
  EXPECT_EQ(header.entries.back().name, "bool");
  EXPECT_EQ(header.data_start % 8, 0U);
  EXPECT_EQ(header.file_bytes, fs::file_size(committed() / "golden.safetensors"));
}

TEST(Safetensors, StridesAndViewsDoNotShowInTheFile) {
  const TempFolder temp;
  const at::Tensor matrix = at::arange(12, at::kFloat).reshape({3, 4});
  const at::Tensor number = at::complex(at::full({2}, 1.0F), at::full({2}, 2.0F));
  write_safetensors(temp / "views", {{"t", matrix.t()}, {"s", matrix.slice(1, 1, 3)}, {"c", number.conj()}});
  write_safetensors(
      temp / "plain",
      {{"t", matrix.t().contiguous()}, {"s", matrix.slice(1, 1, 3).contiguous()}, {"c", number.conj().resolve_conj()}});
  EXPECT_EQ(read_text(temp / "views"), read_text(temp / "plain"));
  EXPECT_TRUE(at::equal(read_safetensors(temp / "views").tensors.at("t"), matrix.t()));
}

TEST(Safetensors, RefusesTensorsThatTheFormatCannotHold) {
  const TempFolder temp;
  const at::Tensor plain = at::zeros({2, 2});
  for (const at::Tensor& tensor :
       {plain.to_sparse(), plain.to(at::kComplexDouble), plain.to(at::kMeta), at::Tensor()}) {
    EXPECT_THROW(write_safetensors(temp / "x", {{"name", tensor}}), CheckpointError);
  }
  EXPECT_THROW(write_safetensors(temp / "x", {{"__metadata__", plain}}), CheckpointError);
  EXPECT_THROW(write_safetensors(temp / "x", {{"\xff", plain}}), CheckpointError);
  EXPECT_TRUE(fs::is_empty(temp.path()));
  EXPECT_THROW(write_safetensors(temp / "no such folder/x", {{"name", plain}}), IoError);
}

TEST(Safetensors, AcceptsAndRefusesAsTheReferenceImplementationDoes) {
  for (const fs::path& path : files_of(committed() / "accept")) {
    EXPECT_EQ(verdict(path), "") << path;
  }
  for (const fs::path& path : files_of(committed() / "refuse")) {
    EXPECT_NE(verdict(path), "") << path;
  }
}

TEST(Safetensors, RefusesEveryTruncation) {
  const TempFolder temp;
  const std::string whole = read_text(committed() / "golden.safetensors");
  temp.write("cut", whole);
  for (std::size_t length = whole.size(); length-- > 0;) {
    fs::resize_file(temp / "cut", length);
    EXPECT_NE(verdict(temp / "cut"), "") << length;
  }
  temp.write("long", whole + '\0');
  EXPECT_NE(verdict(temp / "long"), "");
}

// A file with this header and this many bytes of data.
std::string file_of(const std::string& header, std::size_t bytes) {
  const std::uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), sizeof(length));
  return text + header + std::string(bytes, '\1');
}

TEST(Safetensors, RefusesHeadersThatHideSomething) {
  const TempFolder temp;
  const std::string fine = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  temp.write("fine", file_of(fine, 2));
  EXPECT_EQ(verdict(temp / "fine"), "");
  const std::vector<std::pair<std::string, const char*>> bad = {
      {fine + std::string(1, '\0'), "NUL"},
      {"\xEF\xBB\xBF" + fine, "byte order mark"},
      {fine + "{}", "JSON"},
      {R"({"__metadata__":{"k":"1","k":"2"},)" + fine.substr(1), "twice"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"dtype":"I8"}})", "twice"},
      {R"({"a":{"dtype":"U8","shape":[2]}})", "has no dtype, shape or data_offsets"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0]}})", "two data_offsets"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2,2]}})", "is not allowed"},
      {R"({"a":{"dtype":"u8","shape":[2],"data_offsets":[0,2]}})", "unknown dtype"},
      {R"({"a":{"dtype":"U8","shape":[1,[2]],"data_offsets":[0,2]}})", "is not allowed"},
      {R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})", "does not support"},
      {R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "whole number of bytes"},
      {R"({"a":{"dtype":"U8","shape":[0,9223372036854775807,9],"data_offsets":[0,0]}})", "whole number of bytes"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,2]}})", "is not allowed"},
      {R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       "but the previous one ends at"}};
  for (const auto& [header, reason] : bad) {
    temp.write("bad", file_of(header, 2));
    EXPECT_THAT(verdict(temp / "bad"), HasSubstr(reason)) << header;
  }
  std::string not_bool = file_of(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  not_bool.back() = '\2';
  temp.write("bool", not_bool);
  EXPECT_THAT(verdict(temp / "bool"), HasSubstr("BOOL"));
}

TEST(Safetensors, RefusesWhatIsNotAFile) {
  const TempFolder temp;
  EXPECT_THAT(verdict(temp / "missing"), HasSubstr("cannot be opened"));
  EXPECT_THAT(verdict(temp.path()), HasSubstr("regular file"));
}

// Every file of the large collection, as its manifest expects. For files that the manifest does not list, the folder
// and the extension tell what to expect.
TEST(Safetensors, TheWholeCollection) {
  const fs::path root = place("STOKER_DATA", "../shared/data") / "safetensors";
  std::ifstream manifest(root / "MANIFEST.tsv");
  if (!manifest) {
    GTEST_SKIP() << "no " << root << ": set STOKER_DATA";
  }
  int checked = 0;
  std::string line;
  std::getline(manifest, line);  // the header of the table
  while (std::getline(manifest, line)) {
    const fs::path path = root / line.substr(0, line.find('\t'));
    const std::string expected = line.substr(line.rfind('\t') + 1);
    EXPECT_EQ(verdict(path) == "", expected.starts_with("ok")) << line << ": " << verdict(path);
    ++checked;
  }
  for (const char* folder : {"real", "valid_small", "pt_small"}) {
    for (const fs::path& path : files_of(root / folder)) {
      if (!path.filename().native().starts_with("LICENSE")) {
        EXPECT_EQ(verdict(path) == "", path.extension() == ".safetensors") << path << ": " << verdict(path);
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 51);
}

}  // namespace
}  // namespace stoker::io
