// SPDX-License-Identifier: Apache-2.0
// The committed records of trainings that the doctor watched, for tests of its rules.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

namespace stoker::testing {

// tests/doctor/FOLDER.
inline std::filesystem::path doctor_records(const char* folder) {
  const char* source = std::getenv("STOKER_SOURCE");
  return std::filesystem::path(source == nullptr ? "." : source) / "tests" / "doctor" / folder;
}

inline std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename());
  }
  return names;
}

template <typename Cases>
std::set<std::string> names_of(const Cases& cases) {
  std::set<std::string> names;
  for (const auto& each : cases) {
    names.insert(each.name);
  }
  return names;
}

}  // namespace stoker::testing
