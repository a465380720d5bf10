// SPDX-License-Identifier: Apache-2.0
// The modes of loader_bench, one function per mode, and its arguments. Each function makes one measurement and returns
// a JSON object: figures by name; or "waits": the part of the engine that does not exist yet; or "skipped": what this
// machine lacks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace stoker::bench {

// The arguments KEY=VALUE of the command line. text() of a missing key throws ConfigError.
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

// Calls take(), which returns the number of samples it made, until `seconds` have passed. Returns rates per second of
// wall time and per second of CPU time, the latter of all threads of this process.
[[nodiscard]] Json rate_of(double seconds, const std::function<std::int64_t()>& take);

// Images: data=FOLDER. image_cases.cpp
// threads=N seconds=S: ImageLoader with crops of 224, and its stages in ms. rows=N: it knows the rows of JPEGs that N
// epochs have told; without, it knows none, as in the first epoch. With replace=1 bad images are replaced and counted.
// After FOLDER is opened, the file remove=KEY is removed and the file block=KEY is replaced by a folder.
[[nodiscard]] Json loader(const Words& words);
// seconds=S: libjpeg-turbo (path=own: our own path) decodes files in memory to whole images, nothing else
[[nodiscard]] Json decode(const Words& words);
// cache=FOLDER threads=N: seconds from opening the folder, with an index in that cache, to the first batch
[[nodiscard]] Json first(const Words& words);
// cache=FOLDER: CPU-seconds to open FOLDER, which has an index in that cache from the second call on, and the MB that
// it then takes. memory_cases.cpp
[[nodiscard]] Json open(const Words& words);
// threads=N seconds=S: the cost of an epoch's end, in batches
[[nodiscard]] Json boundary(const Words& words);

// Our JPEG decoder against libjpeg-turbo: data=FOLDER turns=N images=N (of each photo per turn) targets=avx2 (ours uses
// no better instructions). The figures are those of timed() in jpeg_turns.h. jpeg_cases.cpp
// "crop": what random crops need, to RGB: libjpeg-turbo crops and skips; ours without and with the rows of the file.
// "full": whole images. Fails if pixels differ.
[[nodiscard]] Json jpeg(const Words& words);
// side=N: random crops scaled to N x N that decode=fast would decode at 1/2, 1/4 or 1/8, and the same at full size
[[nodiscard]] Json shrink(const Words& words);

// The loader's statements about itself: data=FOLDER. watch_cases.cpp
// png=FOLDER threads=N seconds=S: how many of 12 slow-downs it names; also a few cases with two slowed-down stages
[[nodiscard]] Json verdict(const Words& words);

// The loader's statements about threads: data=FOLDER. threads_cases.cpp
// seconds=S: relative error of its forecasts for 2 cores and for 8 sleeping threads
[[nodiscard]] Json forecast(const Words& words);
// load=cheap|decode|disk|consumer cores=N turns=N seconds=S: its rate as a share of the best fixed number of threads,
// one figure per turn; searches for 20 s first
[[nodiscard]] Json autotune(const Words& words);

// resize_case.cpp: pixels=N, the source's width and height: one output of 224 x 224, and the plain twin in floats.
[[nodiscard]] Json resize(const Words& words);

// Sources in memory. memory_cases.cpp
[[nodiscard]] Json ram(const Words& words);     // data=CIFAR10 seconds=S limit=N: images in memory, and a bare gather
[[nodiscard]] Json table(const Words& words);   // rows=N batch=N seconds=S
[[nodiscard]] Json far(const Words& words);     // a source of 10^9 samples constructed at step 10^6, in seconds
[[nodiscard]] Json memory(const Words& words);  // data=FOLDER entries=N: MB that a loader of N samples takes

// device_cases.cpp: the first two are skipped without a GPU.
[[nodiscard]] Json copies(const Words& words);    // seconds=S: pinned batches to the device, and a plain memcpy
[[nodiscard]] Json resident(const Words& words);  // data=CIFAR10 batch=N seconds=S: CIFAR-10 on the device
[[nodiscard]] Json twin(const Words& words);      // data=CIFAR10 seconds=S: the same on the CPU, and ImageLoader

}  // namespace stoker::bench
