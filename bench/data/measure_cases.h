// SPDX-License-Identifier: Apache-2.0
// What loader_bench measures, a function a mode, and the words it is asked with. Each function is one measurement and
// answers with a JSON object: figures by name; or "waits": which part of the engine is not there yet; or "skipped":
// what this machine lacks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace stoker::bench {

// The words KEY=VALUE of the command line; asking for one that is needed and not there is a ConfigError.
class Words {
 public:
  Words(int argc, char** argv);
  [[nodiscard]] bool has(const std::string& key) const { return words_.contains(key); }
  [[nodiscard]] std::string text(const std::string& key) const;
  [[nodiscard]] std::int64_t number(const std::string& key, std::int64_t otherwise) const;
  [[nodiscard]] double seconds() const;  // how long to measure; default 5

 private:
  std::map<std::string, std::string> words_;
};

using Json = nlohmann::json;

// Calls take(), which answers how many samples it made, until so many seconds have passed. Wall and CPU time, the
// latter of all threads of this process.
[[nodiscard]] Json rate_of(double seconds, const std::function<std::int64_t()>& take);

// Images: data=FOLDER. image_cases.cpp
// threads=N seconds=S: ImageLoader at work, crops of 224; ms. With replace=1 bad images are replaced and counted; the
// files remove=KEY and block=KEY (a folder comes into its place) of FOLDER cannot be had once it is opened.
[[nodiscard]] Json loader(const Words& words);
[[nodiscard]] Json decode(const Words& words);  // seconds=S: bytes in memory to whole images, nothing else
[[nodiscard]] Json first(const Words& words);   // cache=FOLDER threads=N: opening it with an index in that cache to the
                                                // first batch, in seconds
[[nodiscard]] Json boundary(const Words& words);  // threads=N seconds=S: what an epoch's end costs, in batches

// Whether the loader knows itself: data=FOLDER. watch_cases.cpp
[[nodiscard]] Json verdict(const Words& words);  // png=FOLDER threads=N seconds=S: slow-downs that it names, of 12; and
                                                 // of a few where two stages are slowed down at once

// Whether it knows what threads are worth: data=FOLDER. threads_cases.cpp
// seconds=S: how far off it foretells 2 cores, and 8 sleeping threads
[[nodiscard]] Json foretell(const Words& words);
// load=cheap|decode|disk|consumer cores=N turns=N seconds=S: what it makes of the best fixed number of threads, a turn
// each; the 20 s that it searches come first
[[nodiscard]] Json autotune(const Words& words);

// resize_case.cpp: pixels=N of the source's sides: one output of 224 x 224, and the plain twin in floats.
[[nodiscard]] Json resize(const Words& words);

// Sources in memory. memory_cases.cpp
[[nodiscard]] Json ram(const Words& words);     // data=CIFAR10 seconds=S limit=N: images in memory, and a bare gather
[[nodiscard]] Json table(const Words& words);   // rows=N batch=N seconds=S
[[nodiscard]] Json far(const Words& words);     // a source of 10^9 samples constructed at step 10^6, in seconds
[[nodiscard]] Json memory(const Words& words);  // data=FOLDER entries=N: MB that a loader of so many samples takes

// device_cases.cpp: the first two are skipped without a GPU.
[[nodiscard]] Json copies(const Words& words);    // seconds=S: pinned batches to the device, beside a plain memcpy
[[nodiscard]] Json resident(const Words& words);  // data=CIFAR10 batch=N seconds=S: CIFAR-10 on the device
[[nodiscard]] Json twin(const Words& words);      // data=CIFAR10 seconds=S: the same on the CPU, beside ImageLoader

}  // namespace stoker::bench
