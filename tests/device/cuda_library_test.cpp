// SPDX-License-Identifier: Apache-2.0
// Which binary needs which library, and that libstoker_cuda really loads and registers, with or without a GPU.
#include "stoker/device/cuda_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "stoker/base/error.h"
#include "stoker/base/fmt.h"
#include "stoker/device/backend.h"
#include "stoker/device/cuda_entry.h"

namespace stoker::device {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

// Libraries that an ELF file asks for by name (its NEEDED entries).
std::vector<std::string> needed(const fs::path& file) {
  const std::string command = fmt::format("readelf -dW '{}'", file.native());
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::vector<std::string> names;
  std::array<char, 4096> line{};
  while (::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    const std::string_view text = line.data();
    const std::size_t open = text.find('[');
    if (text.find("(NEEDED)") != std::string_view::npos && open != std::string_view::npos) {
      names.emplace_back(text.substr(open + 1, text.find(']') - open - 1));
    }
  }
  return names;
}

// A machine that runs a bundle may not have it.
bool have_readelf() { return std::system("command -v readelf >/dev/null") == 0; }

fs::path executable() { return fs::read_symlink("/proc/self/exe"); }

// The built library; empty if this torch has no CUDA half.
fs::path built_library() {
  for (const fs::path& path : cuda_library_candidates(executable())) {
    if (path.has_parent_path() && fs::exists(path)) {
      return path;
    }
  }
  return {};
}

TEST(CudaLibrary, ProgramsNeedOnlyTheCpuHalfOfTorch) {
  if (!have_readelf()) {
    GTEST_SKIP() << "needs readelf (Debian's binutils)";
  }
  std::vector<fs::path> programs = {executable()};
  const char* folder = std::getenv("STOKER_BIN");
  if (folder != nullptr && fs::exists(fs::path(folder) / "stoker")) {
    programs.push_back(fs::path(folder) / "stoker");
  }
  for (const fs::path& program : programs) {
    const std::vector<std::string> names = needed(program);
    ASSERT_THAT(names, Contains(HasSubstr("libc.so"))) << program << ": readelf printed nothing";
    EXPECT_THAT(names, Not(Contains("libtorch.so"))) << program;
    EXPECT_THAT(names, Not(Contains(HasSubstr("cuda")))) << program;
  }
  EXPECT_THAT(needed(executable()), AllOf(Contains("libtorch_cpu.so"), Contains("libc10.so")));
}

TEST(CudaLibrary, LibraryNeedsTheCudaHalf) {
  if (!have_readelf()) {
    GTEST_SKIP() << "needs readelf (Debian's binutils)";
  }
  if (built_library().empty()) {
    GTEST_SKIP() << "libstoker_cuda was not built: this torch has no CUDA half";
  }
  EXPECT_THAT(needed(built_library()), AllOf(Contains("libtorch_cuda.so"), Contains("libc10_cuda.so"),
                                             Not(Contains("libtorch.so")), Not(Contains("libtorch_python.so"))));
}

// Records the answer of the library under test.
struct Answer final : Registry {
  void offer(c10::DeviceType kind, std::unique_ptr<Backend> backend) override {
    const bool good = kind == c10::DeviceType::CUDA && backend->name() == "cuda" && backend->device_count() > 0;
    text = good ? "offered" : "offered something strange";
  }
  void offer_function(std::string name, AnyFunction function) override {
    functions += function == nullptr ? "" : name + " ";
  }
  void refuse(c10::DeviceType, std::string reason) override { text = "refused: " + reason; }
  std::string text = "silent", functions;
};

// Loads the library whether or not there is a driver; prints what it answered and ends the process.
[[noreturn]] void load_and_print(const fs::path& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    fmt::print(stderr, "{}\n", ::dlerror());
    std::_Exit(1);
  }
  Answer answer;
  const auto enter = reinterpret_cast<CudaEntry*>(::dlsym(library, kCudaEntryName));
  enter(answer);
  fmt::print(stderr, "{}{}\n", answer.functions, answer.text);
  std::_Exit(answer.text == "silent" ? 1 : 0);
}

TEST(CudaLibraryDeathTest, LoadsAndAnswers) {
  const fs::path path = built_library();
  if (path.empty()) {
    GTEST_SKIP() << "libstoker_cuda was not built: this torch has no CUDA half";
  }
  // In a process of its own: the CUDA half of torch must not stay in this one.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(load_and_print(path), ::testing::ExitedWithCode(0),
              "resident.gather .*device.listen (offered$|refused: .*(driver|GPU|CUDA))");
}

// Prints why there is no CUDA and ends the process.
[[noreturn]] void print_reason() {
  fmt::print(stderr, "loaded={} {}\n", load_cuda(), missing_reason(c10::DeviceType::CUDA));
  std::_Exit(0);
}

TEST(CudaLibraryDeathTest, DriversThatDoNotServeSayWhy) {
  const fs::path driver = executable().parent_path() / "fake_driver";
  ASSERT_TRUE(fs::exists(driver / "libcuda.so.1"));
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";  // runs this program again, with the changed environment
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string saved = before == nullptr ? "" : before;
  ::setenv("LD_LIBRARY_PATH", fmt::format("{}:{}", driver.native(), saved).c_str(), 1);
  ::setenv("FAKE_CUINIT", "0", 1);
  EXPECT_EXIT(print_reason(), ::testing::ExitedWithCode(0), "loaded=false the driver works but finds no GPU");
  ::setenv("FAKE_CUINIT", "100", 1);
  EXPECT_EXIT(print_reason(), ::testing::ExitedWithCode(0), "loaded=false the driver works but finds no GPU");
  ::setenv("FAKE_CUINIT", "803", 1);
  EXPECT_EXIT(print_reason(), ::testing::ExitedWithCode(0), "loaded=false the driver does not start .*error 803");
  ::unsetenv("FAKE_CUINIT");
  before == nullptr ? ::unsetenv("LD_LIBRARY_PATH") : ::setenv("LD_LIBRARY_PATH", saved.c_str(), 1);
}

TEST(CudaLibrary, LoadingAnswersTheSameEveryTimeAndSaysWhy) {
  const bool loaded = load_cuda();
  EXPECT_EQ(load_cuda(), loaded);
  EXPECT_EQ(find_backend(c10::DeviceType::CUDA) != nullptr, loaded);
  EXPECT_EQ(missing_reason(c10::DeviceType::CUDA).empty(), loaded);
  if (!loaded) {
    try {
      (void)backend_for(c10::Device(c10::DeviceType::CUDA, 0));
      FAIL() << "CUDA is missing, but there was no error";
    } catch (const DeviceError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("no CUDA: "), HasSubstr("use device=cpu")));
    }
  }
}

TEST(CudaLibrary, LooksBesideTheExecutableFirst) {
  const auto places = cuda_library_candidates("/opt/stoker/bin/stoker");
  EXPECT_EQ(places, (std::vector<fs::path>{"/opt/stoker/bin/libstoker_cuda.so", "/opt/stoker/lib/libstoker_cuda.so",
                                           "/opt/lib/libstoker_cuda.so", "libstoker_cuda.so"}));
}

}  // namespace
}  // namespace stoker::device
