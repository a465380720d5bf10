// SPDX-License-Identifier: Apache-2.0
// The request for a run: data, options from a TOML file and from key=value words, the run folder. Made by the command
// line or a C++ program, read by Job. A value.
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

// Of the starter of this process: torchrun, Slurm, MPI. The default: none.
struct Start {
  bool repeats = false;   // it gives the same command again after a failure
  bool repeated = false;  // it has done so
  std::string id;         // the same each time; empty: it has none
};

struct Request {
  std::filesystem::path data;       // folder or tar file
  std::string run;                  // name (a folder under runs/) or path; empty: named after model and data
  std::filesystem::path plan_file;  // plan.json of another run to repeat; empty: none
  train::Options options = train::Options(tasks::all_task_options());
  std::shared_ptr<core::Communicator> ranks;  // of the processes that train together; null: only this one
  std::string ranks_reason;                   // who started them
  Start start;                                // with `repeats`, Job::prepare_or_resume goes on with the run that exists
};

// Receives messages about what was found, and the progress of long work. Any thread.
using Say = std::function<void(const std::string&)>;

// Words of the form key=value override a TOML file (empty path: none). Besides the options: data, run, plan. In TOML a
// table [optimizer] names its optimizer with `name`, and a path that is not UTF-8 is written as "hex:...". ConfigError
// for an unknown key, a bad value, or a file that is not TOML; it names the line.
[[nodiscard]] Request make_request(const std::filesystem::path& config, const std::vector<std::string>& assignments);

// For words that a person typed: ConfigError if a key occurs twice, since it is unclear which one is meant. In
// make_request() the later one wins.
void check_given_once(const std::vector<std::string>& assignments);

// The same with absolute instead of relative paths in its options: relative to the current folder or, if nothing exists
// there, to the folder of the data. So a plan means the same in every folder.
[[nodiscard]] Request with_whole_paths(Request request);

// The request as TOML for make_request().
[[nodiscard]] std::string request_to_toml(const Request& request);

}  // namespace stoker::job
