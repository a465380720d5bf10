// SPDX-License-Identifier: Apache-2.0
// Fine-tuning: a network trained on eight classes of clothes learns two other classes from 30 images.
//
//     fine_tuning [DATA [FOLDER]]     DATA: the Fashion-MNIST sample; FOLDER: where images and runs go, a name
//                                     (runs/NAME, or NAME-2, ... if that exists) or a path that does not exist yet
//
// weights=RUN starts from a trained run. Weights that fit by name and shape are copied; the head has other classes, so
// it starts untrained. freeze=N keeps the first N segments fixed. With weights the plan sets a small learning rate,
// which suits thousands of images; 30 images are only three steps per epoch, so lr= sets a larger one. Prints the
// result of loading the weights, and the accuracy on the same 200 test images from scratch and fine-tuned.
#include <stoker/stoker.h>

#include <fstream>

namespace {

using namespace stoker;
namespace fs = std::filesystem;

// Writes at most this many images of each of the classes to folder/class/0.png, ...
void write_images(const data::ImageFolder& from, const data::ImageSplit& split, bool of_new_classes, int each,
                  const fs::path& folder) {
  std::vector<int> written(from.classes.size());
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < split.size(); ++i) {
    const auto label = static_cast<std::size_t>(split.labels[i]);
    const std::string& name = from.classes[label];
    if ((name == "trouser" || name == "dress") == of_new_classes && written[label] < each) {
      split.source->read(split.samples[i], bytes);
      fs::create_directories(folder / name);
      std::ofstream out(folder / name / fmt::format("{}.png", written[label]++), std::ios::binary);
      out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
  }
}

// A run of `model=cnn`; words: its other options.
job::Outcome run_cnn(const fs::path& data, const fs::path& run, std::vector<std::string> words) {
  words.insert(words.end(), {"model=cnn", "data=" + data.native(), "run=" + run.native()});
  job::Job job = job::Job::prepare(job::make_request({}, words), [](const std::string&) {});
  for (const std::string& fact : job.facts()) {
    if (fact.starts_with("weights=")) {
      fmt::print("{}\n", fact);
    }
  }
  const std::atomic<bool> stop = false;
  return job.train({}, stop);
}

}  // namespace

int main(int argc, char** argv) try {
  job::start_process();  // first: loads CUDA if there is a driver
  const auto sample = data::open_image_folder(argc > 1 ? argv[1] : "examples/data/fashion-mnist-6000.tar", {.val = 0});
  const fs::path folder = job::RunFolder::create(argc > 2 ? argv[2] : "fine-tuning").path();
  write_images(sample, sample.train, /*of_new_classes=*/false, 200, folder / "eight/train");
  write_images(sample, sample.train, /*of_new_classes=*/true, 15, folder / "two/train");
  write_images(sample, sample.test, /*of_new_classes=*/true, 100, folder / "two/test");

  run_cnn(folder / "eight", folder / "base", {"epochs=4"});
  const std::vector<std::string> small = {"epochs=10", "batch=10", "val=0"};
  const job::Outcome scratch = run_cnn(folder / "two", folder / "scratch", small);

  std::vector<std::string> tuned = small;
  tuned.insert(tuned.end(), {"weights=" + (folder / "base").native(), "freeze=2", "lr=0.4"});
  const job::Outcome fine = run_cnn(folder / "two", folder / "tuned", tuned);
  fmt::print("from scratch: test accuracy {:.3f}\n", scratch.test.front().value);
  fmt::print("fine-tuned: test accuracy {:.3f}\n", fine.test.front().value);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
