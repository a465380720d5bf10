// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/folder/labels_table.h"

#include <algorithm>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/table/csv.h"

namespace stoker::data {
namespace {

struct SplitName {
  std::string_view name;
  int split;
};
constexpr std::array<SplitName, 10> kSplitNames = {{{"train", 0},
                                                    {"training", 0},
                                                    {"val", 1},
                                                    {"valid", 1},
                                                    {"validation", 1},
                                                    {"eval", 1},
                                                    {"evaluation", 1},
                                                    {"dev", 1},
                                                    {"test", 2},
                                                    {"testing", 2}}};
constexpr std::array<std::string_view, 3> kColumns = {"filename", "label", "split"};

// The field of a row for each of kColumns; -1: the table has no such column.
using Columns = std::array<int, 3>;

Columns read_header(const std::vector<std::string>& header, const std::string& name) {
  Columns columns = {-1, -1, -1};
  for (std::size_t i = 0; i < header.size(); ++i) {
    const auto found = std::ranges::find(kColumns, header[i]);
    if (found == kColumns.end()) {
      fail<DataError>("data.labels", "{}, line 1: unknown column \"{}\"; expected filename, label and optionally split",
                      name, printable(header[i]));
    }
    int& column = columns[static_cast<std::size_t>(found - kColumns.begin())];
    if (column >= 0) {
      fail<DataError>("data.labels", "{}, line 1: column \"{}\" occurs twice; keep one", name, *found);
    }
    column = static_cast<int>(i);
  }
  for (int c = 0; c < 2; ++c) {
    if (columns[static_cast<std::size_t>(c)] < 0) {
      fail<DataError>("data.labels",
                      "{}, line 1: column \"{}\" is missing; the first line must be filename,label[,split]", name,
                      kColumns[static_cast<std::size_t>(c)]);
    }
  }
  return columns;
}

// The place of the image in scan.images.
std::size_t find_image(const FolderScan& scan, std::string_view path, const std::string& name, std::int64_t line) {
  while (path.starts_with("./")) {
    path.remove_prefix(2);
  }
  const auto found = std::ranges::lower_bound(scan.images, path, {},
                                              [](const ScannedFile& file) { return std::string_view(file.path); });
  if (found == scan.images.end() || found->path != path) {
    fail<DataError>("data.labels", "{}, line {}: \"{}\" is not one of the {} images beside the table", name, line,
                    printable(path), scan.images.size());
  }
  return static_cast<std::size_t>(found - scan.images.begin());
}

std::string read_table(const FolderScan& scan) {
  if (scan.shards.empty()) {
    return read_text(scan.root / scan.labels.path);
  }
  std::vector<std::byte> bytes;
  scan.shards[static_cast<std::size_t>(scan.labels.shard)]->read(scan.labels.offset, scan.labels.size, bytes);
  return std::string(as_text(bytes));
}

int split_of_row(const std::string& text, const std::string& name, std::int64_t line) {
  const std::optional<int> split = split_of_name(text);
  if (!split) {
    fail<DataError>("data.labels", "{}, line {}: unknown split \"{}\"; expected train, val or test", name, line,
                    printable(text));
  }
  return *split;
}

}  // namespace

std::optional<int> split_of_name(std::string_view name) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
  for (const SplitName& each : kSplitNames) {
    if (std::ranges::equal(name, each.name, same)) {
      return each.split;
    }
  }
  return std::nullopt;
}

std::array<SplitDraft, 3> read_labels(const FolderScan& scan, std::vector<std::string>& findings) {
  const std::string name = printable((scan.root / scan.labels.path).native());
  const std::string text = read_table(scan);
  CsvReader rows(text, name);
  std::vector<std::string> row;
  if (!rows.next(row)) {
    fail<DataError>("data.labels", "{} is empty; the first line must be filename,label[,split]", name);
  }
  const Columns columns = read_header(row, name);
  const std::size_t width = row.size();
  std::array<SplitDraft, 3> drafts;
  std::vector<std::int64_t> named_at(scan.images.size(), 0);  // line
  while (rows.next(row)) {
    if (row.size() != width) {
      fail<DataError>("data.labels", "{}, line {}: {} field{}, but the first line has {}", name, rows.line(),
                      row.size(), row.size() == 1 ? "" : "s", width);
    }
    const std::size_t image = find_image(scan, row[static_cast<std::size_t>(columns[0])], name, rows.line());
    if (named_at[image] != 0) {
      fail<DataError>("data.labels", "{}, line {}: \"{}\" already has a label in line {}", name, rows.line(),
                      printable(scan.images[image].path), named_at[image]);
    }
    named_at[image] = rows.line();
    std::string& label = row[static_cast<std::size_t>(columns[1])];
    if (label.empty()) {
      fail<DataError>("data.labels", "{}, line {}: the label is empty", name, rows.line());
    }
    const int split = columns[2] < 0 ? 0 : split_of_row(row[static_cast<std::size_t>(columns[2])], name, rows.line());
    const ScannedFile& file = scan.images[image];
    drafts[static_cast<std::size_t>(split)].files.push_back({{file.path, file.shard, file.offset, file.size}, label});
    drafts[static_cast<std::size_t>(split)].given = true;
  }
  const auto unnamed = std::ranges::count(named_at, 0);
  if (unnamed > 0) {
    findings.push_back(fmt::format(
        "images without a line in labels.csv ignored: {}, for example {}", unnamed,
        printable(scan.images[static_cast<std::size_t>(std::ranges::find(named_at, 0) - named_at.begin())].path)));
  }
  for (SplitDraft& draft : drafts) {
    draft.root = scan.root;
    draft.shards = scan.shards;
  }
  return drafts;
}

}  // namespace stoker::data
