// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/quarantine.h"

#include <fstream>
#include <vector>

#include "stoker/base/csv_cell.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/data/csv.h"

namespace stoker::job {

namespace {

// A run that goes on may name the data by another path than before: "data/a.jpg", "/home/me/data/a.jpg".
std::string one_name(const std::string& name) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(name, error);
  return error ? name : path.lexically_normal().native();
}

}  // namespace

Quarantine::Quarantine(const std::filesystem::path& run) : path_(run / "quarantine.csv") {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) {
    return;
  }
  std::vector<std::byte> bytes;
  read_file(path_, bytes);
  data::CsvReader reader(as_text(bytes), path_.native());
  std::vector<std::string> fields;
  while (reader.next(fields)) {
    names_.insert(one_name(fields.front()));
  }
}

bool Quarantine::add(const core::BadSample& bad) {
  const std::lock_guard lock(mutex_);
  if (!names_.insert(one_name(bad.name)).second) {
    return false;
  }
  std::ofstream file(path_, std::ios::app);
  if (file.tellp() == 0) {
    file << "sample,reason,replaced_by,epoch,step\n";
  }
  file << fmt::format("{},{},{},{},{}\n", csv_cell(bad.name), csv_cell(bad.reason), csv_cell(bad.replaced_by),
                      bad.epoch, bad.step);
  file.close();
  if (!file) {
    fail<IoError>("job.quarantine", "cannot write {}; is the disk full?", printable(path_.native()));
  }
  return true;
}

}  // namespace stoker::job
