// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/top/run_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "stoker/base/file.h"
#include "stoker/base/fmt.h"
#include "stoker/base/json_fields.h"

namespace stoker::study {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kFarBack = 1 << 20;  // of a long log, only the end is read at the first look
constexpr double kKeep = 0.9;               // of an average over steps

// 0 if there is none, or if it is not in the range of whole numbers.
std::int64_t whole(const Json& json, const char* key) {
  const double value = real_at(json, key).value_or(0);
  return value >= -0x1p63 && value < 0x1p63 ? static_cast<std::int64_t>(value) : 0;
}

std::string text(const Json& json, const char* key) { return printable(text_at(json, key)); }

void average(double& mean, double value) { mean = mean == 0 ? value : kKeep * mean + (1 - kKeep) * value; }

// A regular file that may grow; anything else is as good as empty, and a FIFO does not block.
class Record {
 public:
  explicit Record(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat facts {};
    if (descriptor_ >= 0 && ::fstat(descriptor_, &facts) == 0 && S_ISREG(facts.st_mode)) {
      size_ = facts.st_size;
    }
  }
  ~Record() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  [[nodiscard]] std::int64_t size() const { return size_; }
  // At most `length` bytes from there on.
  [[nodiscard]] std::string read(std::int64_t begin, std::int64_t length) const {
    std::string content(static_cast<std::size_t>(std::clamp<std::int64_t>(size_ - begin, 0, length)), '\0');
    std::size_t done = 0;
    for (ssize_t more = 1; more > 0 && done < content.size();
         done += static_cast<std::size_t>(std::max<ssize_t>(more, 0))) {
      more = ::pread(descriptor_, content.data() + done, content.size() - done, begin + static_cast<off_t>(done));
    }
    content.resize(done);
    return content;
  }

 private:
  int descriptor_;
  std::int64_t size_ = 0;
};

}  // namespace

const RunState& RunTail::look() {
  const Record record(folder_ / "metrics.jsonl");
  if (record.size() < read_) {
    read_ = 0;
    state_ = {};
  }
  if (read_ == 0 && record.size() > kFarBack) {
    const std::string begin = record.read(0, kFarBack);
    line(std::string_view(begin).substr(0, begin.find('\n')));  // says what the run is
    read_ = record.size() - kFarBack;
  }
  const std::string content = record.read(read_, record.size());
  std::size_t start = 0;
  for (std::size_t end; (end = content.find('\n', start)) != content.npos; start = end + 1) {
    line(std::string_view(content).substr(start, end - start));
  }
  read_ += static_cast<std::int64_t>(start);  // an incomplete line waits for its rest
  return state_;
}

void RunTail::step(const Json& event) {
  state_.step = whole(event, "step");
  const double seconds = real_at(event, "seconds").value_or(0), samples = real_at(event, "samples").value_or(0);
  if (seconds > 0) {
    average(state_.step_seconds, seconds);
    average(state_.samples, samples / seconds);
    remember(state_.speeds, samples / seconds);
  }
  const auto scalars = event.find("scalars");
  if (scalars != event.end() && scalars->is_object()) {
    state_.loss = real_at(*scalars, "loss");
    if (state_.loss) {
      remember(state_.losses, *state_.loss);
    }
  }
}

void RunTail::line(std::string_view words) {
  const Json event = Json::parse(words, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) {
    return;
  }
  const std::string kind = text(event, "event");
  if (kind == "step") {
    step(event);
  } else if (kind == "run_started") {
    state_.title = text(event, "title");
    state_.last_step = whole(event, "last_step");
    state_.outcome.clear();
  } else if (kind == "evaluated" && event.contains("metrics") && event["metrics"].is_object()) {
    for (const auto& [name, value] : event["metrics"].items()) {
      if (value.is_number()) {
        state_.evaluation = fmt::format("{} {} {:.4g}", text(event, "split"), printable(name), value.get<double>());
        break;
      }
    }
  } else if (kind == "monitor" && event.contains("figures") && event["figures"].is_object()) {
    // A record leaves out groups of figures that were too costly to read that often: the last ones stay.
    const auto group_of = [](std::string_view name) { return name.substr(0, name.find('.')); };
    std::set<std::string, std::less<>> groups;
    for (const auto& [name, value] : event["figures"].items()) {
      groups.emplace(group_of(name));
    }
    std::erase_if(state_.monitor, [&](const auto& each) { return groups.contains(group_of(each.first)); });
    for (const auto& [name, value] : event["figures"].items()) {
      if (value.is_number()) {
        state_.monitor.emplace(name, value.get<double>());
      }
    }
  } else if (kind == "anatomy" && event.contains("phases") && event["phases"].is_array()) {
    state_.phases.clear();
    state_.phase_seconds = real_at(event, "seconds").value_or(0);
    for (const Json& phase : event["phases"]) {
      if (phase.is_object()) {
        state_.phases.emplace_back(text(phase, "name"), real_at(phase, "seconds").value_or(0));
      }
    }
  } else if (kind == "finding") {
    state_.finding = text(event, "text");
  } else if (kind == "run_finished") {
    state_.outcome = text(event, "outcome");
  }
}

}  // namespace stoker::study
