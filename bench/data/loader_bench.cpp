// SPDX-License-Identifier: Apache-2.0
// Stoker's side of bench/data: one measurement per process, the last line of its output has the figures in JSON.
//     loader_bench mode=NAME [KEY=VALUE...]
// Modes and their arguments: measure_cases.h. Run by bench/data/run, in turns with other systems.
#include <cstdio>
#include <exception>

#include "bench_main.h"
#include "measure_cases.h"
#include "stoker/base/clock.h"
#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/base/parse_value.h"
#include "stoker/job/process.h"

namespace stoker::bench {
namespace {

using Mode = Json (*)(const Words&);
const std::map<std::string, Mode> kModes = {
    {"loader", loader}, {"decode", decode},     {"first", first},     {"boundary", boundary}, {"resize", resize},
    {"open", open},     {"ram", ram},           {"table", table},     {"far", far},           {"memory", memory},
    {"copies", copies}, {"resident", resident}, {"verdict", verdict}, {"forecast", forecast}, {"autotune", autotune},
    {"twin", twin},     {"jpeg", jpeg},         {"shrink", shrink}};

int run(int argc, char** argv) {
  const Words words(argc, argv);
  const auto mode = kModes.find(words.text("mode"));
  if (mode == kModes.end()) {
    std::string known;
    for (const auto& [name, ignored] : kModes) {
      known += " " + name;
    }
    fail<ConfigError>("bench.loader_bench", "no mode \"{}\"; the modes are:{}", words.text("mode"), known);
  }
  if (mode->first == "copies" || mode->first == "resident") {
    job::start_process();  // loads CUDA if there is a driver
  }
  fmt::print("{}\n", mode->second(words).dump());
  return 0;
}

}  // namespace

Words::Words(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t sign = word.find('=');
    if (sign == std::string::npos) {
      fail<ConfigError>("bench.loader_bench", "\"{}\" is not KEY=VALUE; see measure_cases.h", word);
    }
    words_[word.substr(0, sign)] = word.substr(sign + 1);
  }
}

std::string Words::text(const std::string& key) const {
  const auto found = words_.find(key);
  if (found == words_.end()) {
    fail<ConfigError>("bench.loader_bench", "{}=... is needed; see measure_cases.h", key);
  }
  return found->second;
}

std::int64_t Words::number(const std::string& key, std::int64_t otherwise) const {
  return words_.contains(key) ? std::stoll(words_.at(key)) : otherwise;
}

double Words::seconds() const { return words_.contains("seconds") ? std::stod(words_.at("seconds")) : 5; }

Json rate_of(double seconds, const std::function<std::int64_t()>& take) {
  std::int64_t samples = 0;
  const double cpu = process_cpu_s();
  const Stopwatch watch;
  double wall = 0;
  while (wall < seconds) {
    samples += take();
    wall = watch.seconds();
  }
  const auto count = static_cast<double>(samples);
  return {{"samples", samples},
          {"seconds", wall},
          {"per_second", count / wall},
          {"per_cpu_second", count / (process_cpu_s() - cpu)}};
}

}  // namespace stoker::bench

int main(int argc, char** argv) { return stoker::bench::bench_main("loader_bench", stoker::bench::run, argc, argv); }
