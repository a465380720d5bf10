// SPDX-License-Identifier: Apache-2.0
// Reports of sources reach the quarantine and the sinks, and no listener remains afterwards.
#include "stoker/job/source_listener.h"

#include <gtest/gtest.h>

#include "support/temp_folder.h"

namespace stoker::job {
namespace {

class Heard final : public core::EventSink {
 public:
  explicit Heard(std::vector<std::string>& lines) : lines_(lines) {}
  void on(const core::Event& event) override {
    if (const auto* fault = std::get_if<core::FaultSurvived>(&event)) {
      lines_.push_back(std::to_string(fault->step) + " " + fault->text);
    } else if (const auto* finding = std::get_if<core::Finding>(&event)) {
      lines_.push_back(finding->text);
    }
  }

 private:
  std::vector<std::string>& lines_;
};

TEST(SourceListener, HearsWhileItLivesAndNoLonger) {
  const testing::TempFolder folder;
  const RunFolder run = RunFolder::create((folder / "run").native());
  job::Setup setup;
  std::vector<std::string> lines;
  {
    io::EventBus bus;
    bus.add(std::make_unique<Heard>(lines));
    SourceListener listener(setup, run, bus, 3);
    core::BadSample bad;
    bad.name = "a.png";
    bad.reason = "is empty";
    setup.bad_samples(bad);
    setup.bad_samples(bad);  // reported once
    listener.at_step(4);
    bad.name = "b.png";
    bad.replaced_by = "c.png";
    setup.bad_samples(bad);
    setup.remarks("images stay on the device");
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"3 a.png: is empty; skipped", "4 b.png: is empty; replaced by c.png",
                                             "images stay on the device"}));
  EXPECT_FALSE(setup.bad_samples) << "it refers to a destroyed listener";
  EXPECT_FALSE(setup.remarks);
}

}  // namespace
}  // namespace stoker::job
