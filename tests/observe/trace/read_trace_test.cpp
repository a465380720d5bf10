// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/read_trace.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include "stoker/base/error.h"
#include "support/tar_builder.h"
#include "support/trace_text.h"

namespace stoker::observe::trace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::read_text;
using testing::TempFolder;
using testing::TraceText;

std::string gzipped(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string error_of(const std::string& text, const std::string& name = "trace.json") {
  try {
    const Trace trace = read_text(text, name);
    return fmt::format("no error, {} events", trace.events.size());
  } catch (const DataError& error) {
    return error.what();
  }
}

TraceText small() { return TraceText().step(1, 100, 50).op("aten::add", 110, 20).launched("add_kernel", 112, 6, 5); }

TEST(ReadTrace, UnderstandsEventsOfEachKind) {
  const Trace trace = read_text(small()
                                    .work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 140, 2, 6)
                                    .host("python_function", "train.py(3): step", 100, 40)
                                    .host("user_annotation", "## forward ##", 105, 30)
                                    .text());
  std::vector<Kind> kinds;
  for (const Event& event : trace.events) {
    kinds.push_back(event.kind);
  }
  EXPECT_THAT(kinds, ::testing::ElementsAre(Kind::kAnnotation, Kind::kPython, Kind::kAnnotation, Kind::kOperator,
                                            Kind::kRuntime, Kind::kKernel, Kind::kCopy));
  const Event& kernel = trace.events[5];
  EXPECT_EQ(trace.name(kernel), "add_kernel");
  EXPECT_EQ(kernel.begin, 117'000);
  EXPECT_EQ(kernel.duration(), 6'000);
  EXPECT_EQ(kernel.correlation, 5);
  EXPECT_EQ(trace.track(kernel).stream, 7);
  EXPECT_EQ(trace.track(kernel).device, 0);
  EXPECT_FALSE(trace.damage.any());
}

TEST(ReadTrace, ReadsOldCategoriesAndBeginEndPairs) {
  const Trace trace = read_text(R"([
    {"ph":"B","cat":"Operator","name":"aten::mm","pid":1,"tid":2,"ts":1.5},
    {"ph":"X","cat":"Kernel","name":"sgemm","pid":0,"tid":"stream 7","ts":"3","dur":2,"args":{"stream":7,"device":1}},
    {"ph":"E","pid":1,"tid":2,"ts":9},
    {"ph":"E","pid":1,"tid":2,"ts":10}])");
  ASSERT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.events[0].kind, Kind::kOperator);
  EXPECT_EQ(trace.events[0].duration(), 7'500);
  EXPECT_EQ(trace.events[1].kind, Kind::kKernel);
  EXPECT_EQ(trace.track(trace.events[1]).device, 1);
  EXPECT_EQ(trace.damage.unpaired, 1);
}

TEST(ReadTrace, ReadsTheSameFromEveryContainer) {
  const std::string text = small().text();
  const TempFolder folder;
  folder.write("plain.json", text);
  folder.write("packed.json.gz", gzipped(text));
  folder.write("twice.json.gz", gzipped(text.substr(0, 70)) + gzipped(text.substr(70)));
  const std::string tar = testing::TarBuilder()
                              .add("rank_1.json", text)
                              .add("rank_0.json.gz", gzipped(text))
                              .add("notes.txt", "not a trace")
                              .done();
  folder.write("ranks.tar", tar);
  folder.write("ranks.tar.gz", gzipped(tar));
  for (const auto& [name, count] : std::initializer_list<std::pair<const char*, std::size_t>>{
           {"plain.json", 1}, {"packed.json.gz", 1}, {"twice.json.gz", 1}, {"ranks.tar", 2}, {"ranks.tar.gz", 2}}) {
    const std::vector<Trace> traces = read_traces(folder / name);
    ASSERT_EQ(traces.size(), count) << name;
    for (const Trace& trace : traces) {
      EXPECT_EQ(trace.events.size(), 4U) << name;
      EXPECT_EQ(trace.json_bytes, static_cast<std::int64_t>(text.size())) << name;
      EXPECT_FALSE(trace.damage.any()) << name << trace.damage.end;
    }
  }
}

TEST(ReadTrace, ReadsAFolderByRank) {
  const TempFolder folder;
  for (const int rank : {2, 0, 3}) {
    folder.write(fmt::format("worker{}.pt.trace.json", 9 - rank),
                 small().beside(fmt::format(R"("distributedInfo":{{"rank":{},"world_size":4}})", rank)).text());
  }
  const std::vector<Trace> traces = read_traces(folder.path());
  ASSERT_EQ(traces.size(), 3U);
  EXPECT_EQ(traces[0].rank, 0);
  EXPECT_EQ(traces[1].rank, 2);
  EXPECT_EQ(traces[2].rank, 3);
  EXPECT_EQ(traces[2].world_size, 4);
}

TEST(ReadTrace, RefusesWhatIsNoTrace) {
  EXPECT_THAT(error_of(""), HasSubstr("is empty"));
  EXPECT_THAT(error_of("Rank 0 of 4"), HasSubstr("is not JSON"));
  EXPECT_THAT(error_of("{\"a\":1}"), HasSubstr("holds no trace events"));
  EXPECT_THAT(error_of("{\"traceEvents\":[]}"), HasSubstr("holds no trace events"));
  EXPECT_THAT(
      error_of(
          R"({"traceEvents":[{"ph":"X","cat":"v8,devtools.timeline","name":"V8.GCScavenger","pid":1,"tid":1,"ts":1,"dur":2}]})"),
      AllOf(HasSubstr("none that PyTorch's profiler writes"), HasSubstr("devtools")));
  EXPECT_THAT(
      error_of(
          R"({"traceEvents":[{"ph":"B","cat":"am","name":"activityStart","pid":1,"tid":1,"ts":1},{"ph":"E","cat":"am","pid":1,"tid":1,"ts":2}]})"),
      HasSubstr("another program"));
  const TempFolder folder;
  EXPECT_THROW((void)read_traces(folder.path()), DataError);
  EXPECT_THROW((void)read_traces(folder / "absent.json"), DataError);
}

TEST(ReadTrace, UsesWhatATruncatedFileHolds) {
  const std::string text = small().text();
  const std::size_t whole_events = text.rfind("{\"ph\"");
  for (const std::size_t size : {whole_events + 10, text.size() - 1, whole_events + 30}) {
    const Trace trace = read_text(text.substr(0, size));
    EXPECT_EQ(trace.events.size(), size == text.size() - 1 ? 4U : 3U);
    EXPECT_THAT(trace.damage.end, HasSubstr("it ends")) << size;
  }
  const std::string packed = gzipped(text + std::string(100'000, ' '));
  EXPECT_THAT(error_of(packed.substr(0, 20), "cut.json.gz"), HasSubstr("cut.json.gz"));
}

TEST(ReadTrace, SkipsMalformedEventsAndCountsThem) {
  const Trace trace =
      read_text(small().raw(R"({"ph":"X","cat":"cpu_op","name":broken,"ts":1})").op("aten::mul", 140, 2).text());
  EXPECT_EQ(trace.events.size(), 5U);
  EXPECT_EQ(trace.damage.malformed, 1);
  EXPECT_GT(trace.damage.first_malformed, 0);
}

TEST(ReadTrace, RepairsNamesThatAreNotUtf8) {
  const Trace trace = read_text(small().op("caf\xE9::add", 140, 2).text());
  ASSERT_EQ(trace.events.size(), 5U);
  EXPECT_EQ(trace.damage.not_utf8, 1);
  EXPECT_EQ(trace.name(trace.events.back()), "caf?::add");
}

TEST(ReadTrace, SortsEventsAndCountsBadTimes) {
  const Trace trace =
      read_text(TraceText()
                    .op("aten::late", 500, 2)
                    .op("aten::early", 100, 0)
                    .op("aten::negative", 200, -3)
                    .op("aten::huge", 1e30, 3)
                    .raw(R"({"ph":"X","cat":"cpu_op","name":"aten::none","pid":1,"tid":1,"dur":2})")
                    .raw(R"({"ph":"X","cat":"cpu_op","name":"aten::word","pid":1,"tid":1,"ts":"soon","dur":2})")
                    .text());
  ASSERT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.name(trace.events[0]), "aten::early");
  EXPECT_EQ(trace.damage.negative, 1);
  EXPECT_EQ(trace.damage.out_of_range, 1);
  EXPECT_EQ(trace.damage.without_time, 2);
}

// A double holds these times to a quarter of a microsecond only.
TEST(ReadTrace, KeepsNanosecondsOfLargeTimes) {
  const Trace trace = read_text(R"({"traceEvents":[
    {"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":9007199254740993.125,"dur":0.001},
    {"ph":"X","cat":"cpu_op","name":"b","pid":1,"tid":1,"ts":1623143089861123.456,"dur":0.013}]})");
  ASSERT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.events[0].begin, 1623143089861123456);
  EXPECT_EQ(trace.events[0].duration(), 13);
  EXPECT_EQ(trace.events[1].begin, 9007199254740993125);
  EXPECT_EQ(trace.events[1].duration(), 1);
}

TEST(ReadTrace, LimitsItsMemory) {
  TraceText trace;
  for (int i = 0; i < 20'000; ++i) {
    trace.op(fmt::format("aten::op{}", i), 10 * i, 5);
  }
  const TempFolder folder;
  folder.write("large.json", trace.text());
  EXPECT_THROW((void)read_traces(folder / "large.json", {.most_bytes = 1 << 20}), DataError);
  EXPECT_EQ(read_traces(folder / "large.json").at(0).events.size(), 20'000U);
}

// Differences of the times that are left cannot overflow.
TEST(ReadTrace, LeavesOutTimesThatNoTraceHas) {
  const Trace trace = read_text(TraceText()
                                    .op("aten::past", -9.2e15, 1)
                                    .op("aten::future", 9.2e15, 1)
                                    .op("aten::long", 5, 9.2e15)
                                    .op("aten::mm", 10, 1)
                                    .text());
  EXPECT_EQ(trace.events.size(), 1U);
  EXPECT_EQ(trace.damage.out_of_range, 3);
}

TEST(ReadTrace, CountsBeginsWithoutEndsAsMemory) {
  TraceText trace;
  for (int i = 0; i < 40'000; ++i) {
    trace.raw(R"({"ph":"B","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1})");
  }
  const TempFolder folder;
  folder.write("open.json", trace.text());
  EXPECT_THROW((void)read_traces(folder / "open.json", {.most_bytes = 1 << 20}), DataError);
}

// 64 MiB of zeros in 64 KiB: one event without an end.
TEST(ReadTrace, EndsAGzipBomb) {
  std::string text = R"({"traceEvents":[{"ph":"X","name":")";
  text.append(std::size_t{80} << 20, 'a');
  EXPECT_THAT(error_of(gzipped(text), "bomb.json.gz"), HasSubstr("larger than 64 MiB"));
}

TEST(ReadTrace, ReadsMemoryRecordsAndDevices) {
  const Trace trace = read_text(
      small()
          .raw(
              R"({"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":120,"args":{"Device Type":1,"Device Id":0,"Bytes":1024,"Total Allocated":4096,"Total Reserved":8192}})")
          .raw(
              R"({"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":121,"args":{"Device Type":0,"Device Id":-1,"Bytes":-512}})")
          .beside(
              R"("deviceProperties":[{"id":0,"name":"Tesla","computeMajor":7,"numSms":80,"totalGlobalMem":34089730048}])")
          .text());
  ASSERT_EQ(trace.memory.size(), 2U);
  EXPECT_EQ(trace.memory[0].allocated, 4096);
  EXPECT_EQ(trace.memory[0].device, 0);
  EXPECT_EQ(trace.memory[1].device, -1);
  EXPECT_EQ(trace.memory[1].bytes, -512);
  ASSERT_EQ(trace.devices.size(), 1U);
  EXPECT_EQ(trace.devices[0].name, "Tesla");
  EXPECT_EQ(trace.devices[0].compute_major, 7);
}

}  // namespace
}  // namespace stoker::observe::trace
