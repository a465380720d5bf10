// SPDX-License-Identifier: Apache-2.0
// The event bus and its logs on a host without memory: whichever allocation fails, the process goes on, every event
// reaches the other sinks once, and a log holds whole records up to the failure, which is reported.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>

#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/event_bus.h"
#include "stoker/io/loggers/log_file.h"
#include "stoker/io/loggers/metrics_csv.h"
#include "stoker/io/loggers/metrics_jsonl.h"
#include "stoker/io/loggers/mlflow.h"
#include "stoker/io/loggers/progress_line.h"
#include "stoker/io/loggers/prometheus.h"
#include "stoker/io/loggers/tensorboard.h"
#include "stoker/io/loggers/tfrecord.h"
#include "stoker/io/loggers/wandb.h"
#include "support/child.h"
#include "support/failing_new.h"
#include "support/no_threads.h"
#include "support/temp_folder.h"

namespace stoker::io {
namespace {

using namespace core;
using testing::at_every_new;
using testing::FailingNew;
using testing::MayAllocate;
using testing::TempFolder;
using testing::Whose;
using MakeSink = std::function<std::unique_ptr<EventSink>(const TempFolder&)>;

constexpr int kSteps = 4;

class Pending final : public PendingScalars {
 public:
  [[nodiscard]] Scalars read() const override {
    Scalars scalars;
    scalars.values[0] = 0.5F;
    scalars.count = 1;
    return scalars;
  }
};

std::vector<Event> events() {
  std::vector<Event> all;
  RunStarted start;
  start.title = "a title that is too long for the small buffer of a string";
  start.scalars = {"loss"};
  start.epochs = 1;
  start.steps_per_epoch = start.last_step = kSteps;
  all.emplace_back(start);
  for (int i = 1; i <= kSteps; ++i) {
    StepFinished step;
    step.step = i;
    step.scalars = std::make_shared<Pending>();
    all.emplace_back(step);
  }
  Evaluated evaluated;
  evaluated.step = kSteps;
  evaluated.split = "val";
  evaluated.metrics = {{"accuracy", 0.5}, {"a metric with a name that is long", 1}};
  all.emplace_back(evaluated);
  all.emplace_back(Finding{"a finding that is too long for the small buffer of a string"});
  RunFinished end;
  end.step = kSteps;
  end.outcome = "done";
  all.emplace_back(end);
  return all;
}

// What the sink beside the failing one has received. Its own thread has memory.
struct Received {
  int steps = 0, others = 0, reports = 0;
};
class Recorder final : public EventSink {
 public:
  explicit Recorder(Received& received) : received_(received) {}
  void on(const Event& event) override {
    const MayAllocate here;
    const auto* finding = std::get_if<Finding>(&event);
    if (const auto* step = std::get_if<StepFinished>(&event)) {
      received_.steps += 1 + static_cast<int>(step->merged);
    } else if (finding != nullptr && finding->text.starts_with("a log failed")) {
      ++received_.reports;
    } else {
      ++received_.others;
    }
  }

 private:
  Received& received_;
};

// Emits all events beside a log. Returns whether the thread that made the bus got std::bad_alloc, without which it
// would not know of a failure that could not be reported.
bool run(const MakeSink& make, const TempFolder& folder, Received& received) {
  const MayAllocate here;
  bool thrown = false;
  EventBus bus;
  bus.add(make(folder), /*awaited=*/true);
  bus.add(std::make_unique<Recorder>(received), /*awaited=*/true);
  for (const Event& event : events()) {
    try {
      bus.emit(event);
    } catch (const std::bad_alloc&) {  // the event was queued before
      thrown = true;
    }
  }
  for (int i = 0; i < 2; ++i) {  // the second one comes after every failure of the first one's events
    try {
      bus.flush();
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
  }
  return thrown;
}

// lines or records of all files in the folder.
using Read = std::function<std::vector<std::string>(const TempFolder&)>;

std::vector<std::string> lines_of(const TempFolder& folder) {
  std::vector<std::string> lines;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (file.is_regular_file()) {
      const std::string text = read_text(file.path());
      EXPECT_TRUE(text.empty() || text.ends_with('\n')) << "an incomplete line";
      std::istringstream stream(text);
      for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
      }
    }
  }
  return lines;
}

// Only the sizes: records hold the time.
std::vector<std::string> records_of(const TempFolder& folder) {
  std::vector<std::string> sizes;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path())) {
    const std::string text = file.is_regular_file() ? read_text(file.path()) : "";
    for (std::size_t at = 0; at < text.size();) {
      std::uint64_t size = 0;
      std::string framed;
      if (text.size() - at >= 12) {
        std::memcpy(&size, text.data() + at, sizeof size);
        append_record(framed, std::string_view(text).substr(at + 12).substr(0, size));
      }
      if (framed.empty() || text.compare(at, framed.size(), framed) != 0) {
        ADD_FAILURE() << "an incomplete record at byte " << at;
        break;
      }
      sizes.push_back(std::to_string(size));
      at += framed.size();
    }
  }
  return sizes;
}

void check(const MakeSink& make, const Read& read) {
  const TempFolder whole;
  Received all;
  run(make, whole, all);
  const std::vector<std::string> expected = read(whole);
  ASSERT_GT(expected.size(), 5U);
  for (const bool for_good : {false, true}) {
    int k = 1, failures = 0;
    for (bool failed = true; failed; ++k, failures += failed ? 1 : 0) {
      const MayAllocate here;
      SCOPED_TRACE(fmt::format("allocation {}{}", k, for_good ? " and all later ones" : ""));
      const TempFolder folder;
      Received received;
      bool thrown = false;
      {
        FailingNew failing(Whose::kOthers);
        for_good ? failing.fail_from(k) : failing.fail_at(k);
        thrown = run(make, folder, received);
        failing.stop();
        failed = failing.failed();
      }
      EXPECT_EQ(received.steps, all.steps);
      EXPECT_EQ(received.others, all.others);
      std::vector<std::string> written = read(folder);
      EXPECT_EQ(received.reports > 0 || thrown, failed) << "every failure is reported, and nothing else";
      if (failed) {
        ASSERT_LE(written.size(), expected.size());
      }
      EXPECT_TRUE(std::equal(written.begin(), written.end(), expected.begin())) << "no beginning of the whole log";
      if (!failed) {
        EXPECT_EQ(written.size(), expected.size());
      }
    }
    EXPECT_GT(failures, 5);
  }
}

TEST(EventBusMemory, TheCsvLogHasWholeRows) {
  check([](const TempFolder& folder) { return std::make_unique<MetricsCsv>(folder.path()); }, lines_of);
}

TEST(EventBusMemory, TheJsonLogHasWholeRows) {
  check([](const TempFolder& folder) { return std::make_unique<MetricsJsonl>(folder.path()); }, lines_of);
}

TEST(EventBusMemory, TensorBoardsLogHasWholeRecords) {
  check([](const TempFolder& folder) { return std::make_unique<TensorBoardLog>(folder.path()); }, records_of);
}

// It writes with a stream, which keeps its own errors, so the text is not compared.
TEST(EventBusMemory, TheProgressLineFailsAlone) {
  for (const ProgressMode mode : {ProgressMode::kPlain, ProgressMode::kTerminal, ProgressMode::kJson}) {
    const int failures = at_every_new(Whose::kOthers, [&] {
      const MayAllocate here;
      std::ofstream out("/dev/null");
      const TempFolder none;
      Received received;
      run(
          [&](const TempFolder&) {
            ProgressOptions options;
            options.mode = mode;
            options.out = &out;
            return std::make_unique<ProgressLine>(options);
          },
          none, received);
      EXPECT_EQ(received.steps, kSteps);
    });
    EXPECT_GT(failures, 3);
  }
}

// Their text has times and cannot be compared; MLflow's server is down.
TEST(EventBusMemory, LogsForOtherToolsFailAlone) {
  class Nowhere final : public EventEmitter {
   public:
    void emit(Event) override {}
  };
  Nowhere nowhere;
  const std::vector<MakeSink> sinks = {
      [&](const TempFolder& folder) { return std::make_unique<WandbLog>(folder.path(), nowhere); },
      [&](const TempFolder&) { return std::make_unique<PrometheusEndpoint>(0, nowhere); },
      [&](const TempFolder& folder) {
        return std::make_unique<MlflowLog>(folder.path(), "http://127.0.0.1:1", nowhere);
      }};
  for (const MakeSink& make : sinks) {
    const int failures = at_every_new(Whose::kOthers, [&] {
      const MayAllocate here;
      const TempFolder folder;
      Received received;
      run(make, folder, received);
      EXPECT_EQ(received.steps, kSteps);
    });
    EXPECT_GT(failures, 10);
  }
}

// Whoever emits gets the error, and the event was not emitted: emitted again, it arrives once.
TEST(EventBusMemory, AnEventIsEmittedOnceOrNotAtAll) {
  const std::vector<Event> all = events();
  const int failures = at_every_new(Whose::kMine, [&] {
    Received received;
    {
      std::unique_ptr<EventBus> bus;
      for (bool added = false; !added;) {
        try {
          bus = std::make_unique<EventBus>();
          bus->add(std::make_unique<Recorder>(received));
          added = true;
        } catch (const std::bad_alloc&) {
          bus.reset();
        }
      }
      for (const Event& event : all) {
        for (bool emitted = false; !emitted;) {
          try {
            bus->emit(event);
            emitted = true;
          } catch (const std::bad_alloc&) {
            emitted = false;
          }
        }
      }
    }
    const MayAllocate here;
    EXPECT_EQ(received.steps, kSteps);
    EXPECT_EQ(received.others, static_cast<int>(all.size()) - kSteps);
  });
  EXPECT_GT(failures, 20);
}

// Buffered lines of earlier events reach the file.
TEST(EventBusMemory, ALogKeepsWhatItHadBeforeTheFailure) {
  class Log final : public EventSink {
   public:
    explicit Log(const std::filesystem::path& path) : file_(path) {}
    void on(const Event&) override {
      if (++seen_ == 3) {
        throw std::bad_alloc();
      }
      file_.line(std::to_string(seen_));
    }
    void flush() override { file_.flush(); }

   private:
    LogFile file_;
    int seen_ = 0;
  };
  const TempFolder folder;
  Received received;
  run([](const TempFolder& to) { return std::make_unique<Log>(to / "log"); }, folder, received);
  EXPECT_EQ(read_text(folder / "log"), "1\n2\n");
  EXPECT_EQ(received.reports, 1);
}

TEST(EventBusMemory, WithoutAThreadThereIsATypedError) {
  Received received;
  {
    EventBus bus;
    {
      const testing::NoThreads none;
      EXPECT_THROW(bus.add(std::make_unique<Recorder>(received)), ConfigError);
      EXPECT_THROW(EventBus(), ConfigError);
    }
    bus.add(std::make_unique<Recorder>(received));
    for (const Event& event : events()) {
      bus.emit(event);
    }
  }
  EXPECT_EQ(received.steps, kSteps);
}

// A disk that is full in the middle of a line and has room again later.
TEST(EventBusMemory, AFlushContinuesWhereTheLastOneFailed) {
  const TempFolder folder;
  const auto end = testing::in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    LogFile file(folder / "log");
    for (int i = 0; i < 10; ++i) {
      file.line("a line of 20 bytes.");
    }
    const rlimit small{110, RLIM_INFINITY}, large{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &small);
    int errors = 0;
    for (int i = 0; i < 2; ++i) {
      try {
        file.flush();
      } catch (const IoError&) {
        ++errors;
      }
    }
    ::setrlimit(RLIMIT_FSIZE, &large);
    file.flush();
    return errors == 2 ? 0 : 1;
  });
  EXPECT_EQ(end.code, 0);
  std::string expected;
  for (int i = 0; i < 10; ++i) {
    expected += "a line of 20 bytes.\n";
  }
  EXPECT_EQ(read_text(folder / "log"), expected);
}

}  // namespace
}  // namespace stoker::io
