// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/patch.h"

#include <nlohmann/json.hpp>

#include "stoker/observe/profile/command_lines.h"
#include "stoker/observe/script/shim.h"
#include "stoker/study/doctor/scratch.h"

namespace stoker::study {
namespace {

constexpr double kSeconds = 30;

}  // namespace

std::string patch_of(std::span<const Cure> changes, const observe::doctor::Facts& facts) {
  using Json = nlohmann::json;
  Json list = Json::array();
  for (const Cure& each : changes) {
    list.push_back({{"option", each.option}, {"where", each.where}});
  }
  if (list.empty()) {
    return "";
  }
  const std::string python(facts.word("switch.python"));
  const Scratch scratch;
  observe::script::write_shim(scratch.path());
  std::string text;
  for (const std::string& line :
       observe::profile::command_lines({python, "-I", (scratch.path() / "write_patch.py").native(),
                                        list.dump(-1, ' ', false, Json::error_handler_t::replace)},
                                       kSeconds)) {
    text += line + "\n";
  }
  return text;
}

}  // namespace stoker::study
