// SPDX-License-Identifier: Apache-2.0
// What a person asked of a run: data, options from a TOML file and from key=value words, where the run goes.
// Made by the command line or a C++ program, read by Job. A value.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stoker/core/communicator.h"
#include "stoker/tasks/registry.h"
#include "stoker/train/options.h"

namespace stoker::job {

struct Request {
  std::filesystem::path data;       // folder or tar file
  std::string run;                  // name (a folder under runs/) or path; empty: named after model and data
  std::filesystem::path plan_file;  // plan.json of another run to repeat; empty: none
  train::Options options = train::Options(tasks::all_task_options());
  std::shared_ptr<core::Communicator> ranks;  // of the processes that train together; null: this one alone
};

// Told in words what was found, and progress of what takes long. Any thread.
using Say = std::function<void(const std::string&)>;

// Words of the form key=value over a TOML file (empty path: none). Besides the options: data, run, plan.
// In TOML a table [optimizer] names its optimizer with `name`, and a path that is no UTF-8 stands as "hex:...".
// ConfigError for an unknown key, a bad value, or a file that is no TOML; it names the line.
[[nodiscard]] Request make_request(const std::filesystem::path& config, const std::vector<std::string>& assignments);

// Of words that a person typed: ConfigError where a key comes twice, since which of them is meant? make_request() lets
// the later one win.
void check_given_once(const std::vector<std::string>& assignments);

// The same with whole paths in place of relative ones in its options: from the current folder, or, where nothing of
// that name is there, beside the data. So a plan means the same from every folder.
[[nodiscard]] Request with_whole_paths(Request request);

// The request as TOML that make_request() takes back.
[[nodiscard]] std::string request_to_toml(const Request& request);

}  // namespace stoker::job
