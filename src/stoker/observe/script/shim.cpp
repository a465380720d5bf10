// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/script/shim.h"

#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/observe/script/shim_files.h"

namespace stoker::observe::script {
namespace {

constexpr std::string_view kPath = "PYTHONPATH=", kRecords = "STOKER_DOCTOR_RECORDS=";

}  // namespace

void write_shim(const std::filesystem::path& folder) {
  using namespace shim_files;
  const std::array<std::pair<const char*, std::string_view>, 21> files = {{
      {"sitecustomize.py", kSitecustomize},
      {"stoker_shim/__init__.py", kInit},
      {"stoker_shim/burst.py", kBurst},
      {"stoker_shim/calls.py", kCalls},
      {"stoker_shim/history.py", kHistory},
      {"stoker_shim/imports.py", kImports},
      {"stoker_shim/ledger.py", kLedger},
      {"stoker_shim/loader.py", kLoader},
      {"stoker_shim/memory.py", kMemory},
      {"stoker_shim/numerics.py", kNumerics},
      {"stoker_shim/page_faults.py", kPageFaults},
      {"stoker_shim/pauses.py", kPauses},
      {"stoker_shim/ranks.py", kRanks},
      {"stoker_shim/record.py", kRecord},
      {"stoker_shim/stacks.py", kStacks},
      {"stoker_shim/steps.py", kSteps},
      {"stoker_shim/stillness.py", kStillness},
      {"stoker_shim/switches.py", kSwitches},
      {"stoker_shim/trial.py", kTrial},
      {"stoker_shim/waits.py", kWaits},
      {"write_patch.py", kWritePatch},
  }};
  std::error_code error;
  std::filesystem::create_directories(folder / "stoker_shim", error);
  if (error) {
    fail<IoError>("stoker.doctor", "{}: cannot be made: {}", printable(folder.native()), error.message());
  }
  for (const auto& [name, text] : files) {
    write_file_atomically(folder / name, text);
  }
}

std::vector<std::string> with_shim(std::vector<std::string> environment, const std::filesystem::path& folder,
                                   const std::filesystem::path& records) {
  std::string path = std::string(kPath) + folder.native();
  std::erase_if(environment, [&](const std::string& each) {
    if (each.starts_with(kPath) && each.size() > kPath.size()) {
      path += ":" + each.substr(kPath.size());
    }
    return each.starts_with(kPath) || each.starts_with(kRecords);
  });
  environment.push_back(std::move(path));
  environment.push_back(std::string(kRecords) + records.native());
  return environment;
}

}  // namespace stoker::observe::script
