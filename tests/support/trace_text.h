// SPDX-License-Identifier: Apache-2.0
// Makes small traces in the format of torch.profiler, for tests. Times in microseconds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stoker/base/fmt.h"
#include "stoker/observe/trace/facts/facts.h"
#include "stoker/observe/trace/read_trace.h"
#include "support/temp_folder.h"

namespace stoker::testing {

class TraceText {
 public:
  // An event as it stands in the file.
  TraceText& raw(const std::string& event) {
    events_.push_back(event);
    return *this;
  }
  TraceText& host(const std::string& category, const std::string& name, double begin, double length, int thread = 1,
                  const std::string& args = "{}") {
    return raw(fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":10,"tid":{},"ts":{},"dur":{},"args":{}}})",
                           category, name, thread, begin, length, args));
  }
  TraceText& op(const std::string& name, double begin, double length, int thread = 1) {
    return host("cpu_op", name, begin, length, thread);
  }
  TraceText& step(int number, double begin, double length) {
    return host("user_annotation", fmt::format("ProfilerStep#{}", number), begin, length);
  }
  TraceText& call(const std::string& name, double begin, double length, int correlation, int thread = 1) {
    return host("cuda_runtime", name, begin, length, thread, fmt::format(R"({{"correlation":{}}})", correlation));
  }
  TraceText& kernel(const std::string& name, double begin, double length, int correlation, int stream = 7,
                    int device = 0) {
    return work("kernel", name, begin, length, correlation, stream, device);
  }
  TraceText& work(const std::string& category, const std::string& name, double begin, double length, int correlation,
                  int stream = 7, int device = 0) {
    return raw(fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"device":{},"stream":{},"correlation":{}}}}})",
        category, name, device, stream, begin, length, device, stream, correlation));
  }
  // A launch and its kernel, which begins 5 us after the launch.
  TraceText& launched(const std::string& name, double launch, double length, int correlation, int stream = 7) {
    return call("cudaLaunchKernel", launch, 3, correlation).kernel(name, launch + 5, length, correlation, stream);
  }
  // Beside the events: "\"distributedInfo\":{\"rank\":1,\"world_size\":4}".
  TraceText& beside(const std::string& text) {
    beside_ = text + ",";
    return *this;
  }

  [[nodiscard]] std::string text() const {
    return fmt::format("{{{}\"traceEvents\":[\n{}\n]}}", beside_, fmt::join(events_, ",\n"));
  }

 private:
  std::vector<std::string> events_;
  std::string beside_;
};

// The one trace in a file with that content.
inline observe::trace::Trace read_text(const std::string& text, const std::string& name = "trace.json") {
  const TempFolder folder;
  folder.write(name, text);
  return std::move(observe::trace::read_traces(folder / name).at(0));
}

inline std::unique_ptr<observe::trace::TraceFacts> facts_of(const TraceText& trace) {
  return std::make_unique<observe::trace::TraceFacts>(read_text(trace.text()));
}

}  // namespace stoker::testing
