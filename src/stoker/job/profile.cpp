// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/profile.h"

#include <optional>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/job/job.h"
#include "stoker/job/run_folder.h"
#include "stoker/job/run_socket.h"

namespace stoker::job {
namespace {

namespace fs = std::filesystem;

// A name that no file has: an earlier trace is never replaced.
fs::path trace_file(const ProfileWish& wish) {
  if (!wish.trace.empty()) {
    return wish.trace;
  }
  for (int number = 1;; ++number) {
    fs::path file = number == 1 ? "profile.pt.trace.json.gz" : fmt::format("profile-{}.pt.trace.json.gz", number);
    if (std::error_code error; !fs::exists(fs::symlink_status(file, error))) {
      return file;
    }
  }
}

}  // namespace

std::string profile_run(const fs::path& run, const ProfileWish& wish, const Say& say) {
  const RunFolder folder = RunFolder::open(run);
  const std::optional<fs::path> record = ask_run(folder.path(), wish.steps, say);
  if (record) {
    if (!wish.trace.empty()) {
      say(fmt::format("the run trains, so the trace is in its folder and not in {}", printable(wish.trace.native())));
    }
    return read_text(*record);
  }
  say("the run does not train now: steps from its last checkpoint are profiled, and not kept");
  return Job::resume(run, {}, [](const std::string&) {}).profile(wish.steps, trace_file(wish), say);
}

std::string profile_data(const Request& request, const ProfileWish& wish, const Say& say) {
  return Job::prepare(request, say).profile(wish.steps, trace_file(wish), say);
}

}  // namespace stoker::job
