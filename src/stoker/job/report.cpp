// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/report.h"

#include "stoker/base/file.h"
#include "stoker/io/report/report.h"

namespace stoker::job {

std::filesystem::path write_report(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out) {
  if (out.empty() && runs.size() == 1) {
    return io::write_report(runs.front());
  }
  const std::filesystem::path path = out.empty() ? "comparison.html" : out;
  write_file_atomically(path, io::report_page(runs));
  return path;
}

}  // namespace stoker::job
