// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/rank_places.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <vector>

#include "stoker/base/counted.h"
#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/device/kernel_file.h"
#include "stoker/job/opened_data.h"
#include "stoker/parallel/member.h"

namespace stoker::job {
namespace {

constexpr std::array<const char*, 8> kHeadings{"rank",        "node",       "device",   "may run on",
                                               "device near", "plans with", "intra_op", "loader threads"};
constexpr std::size_t kNear = 4;  // the column of the cores that a GPU is connected to
using Row = std::vector<std::string>;

// "0-31": the cores of the device's memory node; "-": it has none, or the kernel does not tell.
std::string cores_near(c10::Device device) {
  std::string place = device::backend_for(device).bus_id(device);
  std::ranges::transform(place, place.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string list = place.empty() ? "" : device::read_kernel_file("/sys/bus/pci/devices/" + place + "/local_cpulist");
  list.erase(std::min(list.find('\n'), list.size()));
  return list.empty() ? "-" : list;
}

Row own_row(const Setup& setup) {
  const std::string status = device::read_kernel_file("/proc/self/status");
  const std::string_view cores = device::kernel_field(status, "Cpus_allowed_list");
  return {std::to_string(setup.ranks->rank()),
          printable(parallel::this_process().host),
          setup.device.str(),
          fmt::format("core{} {}", cores.find_first_of("-,") == cores.npos ? "" : "s", cores.empty() ? "-" : cores),
          cores_near(setup.device),
          counted(own_cores(setup.ranks->size_here()), "core"),
          std::to_string(setup.plan.intra_op),
          std::to_string(setup.plan.threads)};
}

std::string line_of(const Row& row, const std::array<std::size_t, kHeadings.size()>& widths) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (widths[i] > 0) {
      line += fmt::format("  {:<{}}", row[i], widths[i]);
    }
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string rank_places(const Setup& setup) {
  if (setup.ranks->size() == 1) {
    return "";
  }
  std::vector<Row> rows{Row(kHeadings.begin(), kHeadings.end())};
  for (const std::string& text :
       core::texts_of_ranks(*setup.ranks, fmt::format("{}", fmt::join(own_row(setup), "\n")))) {
    std::istringstream lines(text);
    Row& row = rows.emplace_back();
    for (std::string cell; std::getline(lines, cell);) {
      row.push_back(cell);
    }
  }
  std::array<std::size_t, kHeadings.size()> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  if (std::ranges::all_of(rows.begin() + 1, rows.end(), [](const Row& row) { return row[kNear] == "-"; })) {
    widths[kNear] = 0;
  }
  std::string text;
  for (const Row& row : rows) {
    text += line_of(row, widths);
  }
  return text;
}

}  // namespace stoker::job
