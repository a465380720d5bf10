// SPDX-License-Identifier: Apache-2.0
#include "stoker/job/source_listener.h"

#include <string>

#include "stoker/base/fmt.h"

namespace stoker::job {
namespace {

std::string text_of(const core::BadSample& bad) {
  const std::string instead = bad.replaced_by.empty() ? "skipped" : "replaced by " + bad.replaced_by;
  return fmt::format("{}: {}; {}", bad.name, bad.reason, instead);
}

}  // namespace

SourceListener::SourceListener(Setup& setup, const RunFolder& run, io::EventBus& bus, std::int64_t first_step)
    : setup_(setup),
      quarantine_(run.path(), [&bus](const std::string& words) { bus.emit(core::Finding{words}); }),
      step_(first_step) {
  setup_.bad_samples = [this, &bus](const core::BadSample& bad) {
    if (quarantine_.add(bad)) {
      bus.emit(core::FaultSurvived{step_, "bad_sample", text_of(bad)});
    }
  };
  setup_.remarks = [&bus](const std::string& remark) { bus.emit(core::Finding{remark}); };
}

SourceListener::~SourceListener() {
  setup_.bad_samples = nullptr;
  setup_.remarks = nullptr;
}

}  // namespace stoker::job
