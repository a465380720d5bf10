// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/quarantine.h"

#include <fstream>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/base/csv_cell.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/table/csv.h"

namespace stoker::job {

namespace {

constexpr const char* kHeader = "sample,reason,replaced_by,epoch,step\n";

// A resumed run may use another path for the data than before: "data/a.jpg", "/home/me/data/a.jpg".
std::string one_name(const std::string& name) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(name, error);
  return error ? name : path.lexically_normal().native();
}

// Bytes of text up to the end of its last complete row. A line end within quotes does not end a row.
std::size_t whole_rows(std::string_view text) {
  std::size_t end = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    quoted ^= text[i] == '"';
    if (text[i] == '\n' && !quoted) {
      end = i + 1;
    }
  }
  return end;
}

}  // namespace

Quarantine::Quarantine(const std::filesystem::path& run, Say say)
    : path_(run / "quarantine.csv"), say_(std::move(say)) {
  std::error_code error;
  if (std::filesystem::exists(path_, error)) {
    read();
  }
}

void Quarantine::read() {
  std::error_code error;
  whole_ = std::filesystem::file_size(path_, error);  // if it cannot be read, nothing is cut off
  try {
    const std::string text = read_text(path_, std::numeric_limits<std::size_t>::max());
    whole_ = whole_rows(text);
    data::CsvReader reader(std::string_view(text).substr(0, whole_), printable(path_.native()));
    std::vector<std::string> fields;
    while (reader.next(fields)) {
      names_.insert(one_name(fields.front()));
    }
  } catch (const DataError& unreadable) {
    say_(fmt::format("samples that are already listed may be listed again: {}", unreadable.what()));
  }
}

bool Quarantine::add(const core::BadSample& bad) {
  const std::lock_guard lock(mutex_);
  if (!names_.insert(one_name(bad.name)).second) {
    return false;
  }
  append(fmt::format("{},{},{},{},{}\n", csv_cell(bad.name), csv_cell(bad.reason), csv_cell(bad.replaced_by), bad.epoch,
                     bad.step));
  return true;
}

void Quarantine::append(const std::string& row) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  if (error || size < whole_) {  // rows or the whole file were removed
    whole_ = error ? 0 : size;
  } else if (size > whole_) {  // half a row, left by a full disk or a killed run
    std::filesystem::resize_file(path_, whole_, error);
  }
  std::ofstream file(path_, std::ios::app);
  const std::string text = whole_ == 0 ? kHeader + row : row;
  file << text;
  file.close();
  if (file) {
    whole_ += text.size();
  } else if (!std::exchange(refused_, true)) {
    say_(fmt::format(
        "{} cannot be written; check whether the disk is full; bad samples are reported only as events until then",
        printable(path_.native())));
  }
}

}  // namespace stoker::job
