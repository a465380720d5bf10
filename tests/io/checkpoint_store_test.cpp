// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "stoker/base/clock.h"
#include "stoker/base/counter_rng.h"
#include "stoker/base/error.h"
#include "stoker/base/file.h"
#include "stoker/io/checkpoint/checksum.h"
#include "stoker/io/checkpoint/manifest.h"
#include "stoker/io/checkpoint/store.h"
#include "stoker/io/checkpoint/swap_folder.h"
#include "stoker/io/safetensors.h"
#include "support/as_nobody.h"
#include "support/temp_folder.h"

namespace stoker::io {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TempFolder;

// A checkpoint with this value in every part.
Checkpoint made_of(std::int64_t value, std::int64_t elements = 100) {
  Checkpoint checkpoint;
  checkpoint.weights["layer.weight"] = at::full({elements}, value, at::kFloat);
  checkpoint.state.tensors["optimizer.exp_avg"] = at::full({elements}, value, at::kDouble);
  checkpoint.state.numbers["step"] = value;
  checkpoint.info = nlohmann::json{{"value", value}, {"classes", {"cat", "dog"}}};
  return checkpoint;
}

// The value in every part; the test fails if they differ.
std::int64_t value_of(const Checkpoint& checkpoint) {
  const std::int64_t value = checkpoint.state.integer("step");
  const at::Tensor& weight = checkpoint.weights.at("layer.weight");
  EXPECT_TRUE(at::equal(weight, at::full(weight.sizes(), value, at::kFloat)));
  const at::Tensor& moment = checkpoint.state.tensor("optimizer.exp_avg");
  EXPECT_TRUE(at::equal(moment, at::full(moment.sizes(), value, at::kDouble)));
  EXPECT_EQ((*checkpoint.info).at("value"), value);
  return value;
}

std::string damage(const fs::path& folder) {
  try {
    (void)load_checkpoint(folder);
    return "";
  } catch (const CheckpointError& error) {
    return error.what();
  }
}

// Runs work in a child process and returns the child's id.
template <typename Work>
pid_t in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
      ::_exit(0);
    } catch (const IoError&) {
      ::_exit(74);
    } catch (...) {
      ::_exit(1);
    }
  }
  return child;
}

int exit_code_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(CheckpointStore, GivesBackWhatWasSaved) {
  const TempFolder temp;
  CheckpointStore store(temp / "run/checkpoints");
  EXPECT_FALSE(store.has("last"));
  EXPECT_THROW((void)store.load("last"), CheckpointError);
  store.save("last", made_of(1));
  store.save("best", made_of(2));
  store.save("last", made_of(3));
  EXPECT_EQ(value_of(store.load("last")), 3);
  EXPECT_EQ(value_of(store.load("best")), 2);
  EXPECT_EQ(load_info(store.path("last")), *made_of(3).info);
  EXPECT_TRUE(load_weights(store.path("last")).state.tensors.empty());
  EXPECT_EQ(std::distance(fs::directory_iterator(temp / "run/checkpoints"), fs::directory_iterator()), 2);
}

TEST(CheckpointStore, NumbersComeBackBitForBit) {
  using Limits = std::numeric_limits<double>;
  const TempFolder temp;
  Checkpoint checkpoint = made_of(0);
  const std::map<std::string, double> reals = {{"zero", 0.0},
                                               {"minus zero", -0.0},
                                               {"whole", 5.0},
                                               {"tenth", 0.1},
                                               {"third", 1.0 / 3},
                                               {"tiny", Limits::denorm_min()},
                                               {"max", Limits::max()},
                                               {"inf", Limits::infinity()},
                                               {"-inf", -Limits::infinity()},
                                               {"nan", Limits::quiet_NaN()}};
  for (const auto& [name, value] : reals) {
    checkpoint.state.numbers[name] = value;
  }
  checkpoint.state.numbers["int min"] = std::numeric_limits<std::int64_t>::min();
  checkpoint.state.numbers["int max"] = std::numeric_limits<std::int64_t>::max();
  CheckpointStore store(temp.path());
  store.save("last", checkpoint);
  const core::State state = store.load("last").state;
  EXPECT_EQ(state.numbers.size(), checkpoint.state.numbers.size());
  for (const auto& [name, value] : reals) {
    ASSERT_TRUE(std::holds_alternative<double>(state.numbers.at(name))) << name;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(state.real(name)), std::bit_cast<std::uint64_t>(value)) << name;
  }
  EXPECT_EQ(state.integer("int min"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(state.integer("int max"), std::numeric_limits<std::int64_t>::max());
}

TEST(CheckpointStore, EqualCheckpointsAreEqualBytes) {
  const TempFolder temp;
  CheckpointStore store(temp.path());
  store.save("one", made_of(7));
  store.save("two", made_of(7));
  for (const auto& entry : fs::directory_iterator(temp / "one")) {
    EXPECT_EQ(read_text(entry.path()), read_text(temp / "two" / entry.path().filename())) << entry.path();
  }
}

// A save reads its files back from the disk and compares them with the tensors in memory.
TEST(CheckpointStore, ReadingBackFindsOtherTensors) {
  const TempFolder folder;
  const fs::path path = folder / "t.safetensors";
  std::map<std::string, std::string> checksums;
  write_safetensors(
      path, {{"a", at::full({100}, 1, at::kFloat)}, {"b", at::full({0}, 1, at::kFloat)}}, {},
      [&](const std::string& name, std::span<const std::byte> bytes) { checksums[name] = checksum_of(bytes); });
  EXPECT_EQ(measure_file(path, checksums).bytes, fs::file_size(path));
  auto other = checksums;
  other["a"].front() = other["a"].front() == '0' ? '1' : '0';
  EXPECT_THROW((void)measure_file(path, other), CheckpointError);
  other = checksums;
  other["c"] = checksums["b"];
  EXPECT_THROW((void)measure_file(path, other), CheckpointError);
}

TEST(CheckpointStore, RefusesNamesThatArePaths) {
  const TempFolder temp;
  CheckpointStore store(temp.path());
  for (const char* name : {"", "..", "a/b", ".hidden", "a b"}) {
    EXPECT_THROW(store.save(name, made_of(1)), ConfigError) << name;
  }
}

TEST(CheckpointStore, FindsAnyDamage) {
  const TempFolder temp;
  CheckpointStore store(temp.path());
  store.save("last", made_of(1, 20));
  const fs::path folder = store.path("last");
  ASSERT_EQ(damage(folder), "");
  int files = 0;
  for (const char* name : {"weights.safetensors", "state.safetensors", "info.json", "state.json", "manifest.json"}) {
    const std::string whole = read_text(folder / name);
    const auto with = [&](std::string_view text) {
      temp.write(fs::path("last") / name, text);
      return damage(folder);
    };
    for (std::size_t i = 0; i < whole.size(); i += 1 + whole.size() / 150) {
      for (const int mask : {1, 0x20, 0xFF}) {
        std::string flipped = whole;
        flipped[i] = static_cast<char>(flipped[i] ^ mask);
        EXPECT_THAT(with(flipped), HasSubstr(name)) << "byte " << i;
      }
    }
    for (const std::size_t length : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
      EXPECT_THAT(with(whole.substr(0, length)), HasSubstr(name)) << "cut to " << length;
    }
    EXPECT_THAT(with(whole + " "), HasSubstr(name));
    fs::remove(folder / name);
    EXPECT_THAT(damage(folder), HasSubstr(name));
    EXPECT_EQ(with(whole), "");
    ++files;
  }
  EXPECT_EQ(files, std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(CheckpointStore, InfoThatIsNotTextLeavesTheOldCheckpoint) {
  const TempFolder temp;
  CheckpointStore store(temp.path());
  store.save("last", made_of(1));
  Checkpoint bad = made_of(2);
  bad.info = nlohmann::json{{"classes", {"\xff"}}};
  EXPECT_THROW(store.save("last", bad), CheckpointError);
  EXPECT_EQ(value_of(store.load("last")), 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(temp.path()), fs::directory_iterator()), 1);
}

// A limit on the size of files simulates a full disk: write() fails half-way with EFBIG.
TEST(CheckpointStore, AFullDiskLeavesTheOldOne) {
  const TempFolder temp;
  CheckpointStore store(temp.path());
  for (const bool first : {true, false}) {
    const pid_t child = in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{100'000, 100'000};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      store.save("last", made_of(2, 50'000));  // 200 kB of weights
    });
    EXPECT_EQ(exit_code_of(child), 74);
    EXPECT_EQ(store.has("last"), !first);
    EXPECT_EQ(std::distance(fs::directory_iterator(temp.path()), fs::directory_iterator()), first ? 0 : 1);
    store.save("last", made_of(1));
    EXPECT_EQ(value_of(store.load("last")), 1);
  }
}

// In a folder that may be written but not read, entries can be exchanged but the folder cannot be synced. The exchange
// may not survive a power cut, so the previous checkpoint must still be there.
TEST(CheckpointStore, AFolderThatCannotBeSyncedKeepsBoth) {
  const TempFolder temp;
  const fs::path checkpoints = temp / "checkpoints";
  fs::permissions(temp.path(), fs::perms::all);
  const int code = testing::as_nobody([&] {
    CheckpointStore store(checkpoints);
    store.save("last", made_of(1));
    fs::permissions(checkpoints, fs::perms::owner_write | fs::perms::owner_exec);
    for (const std::int64_t value : {2, 3}) {  // the second save finds what the first one left
      try {
        store.save("last", made_of(value));
        return 1;
      } catch (const IoError&) {
      }
    }
    return 0;
  });
  ASSERT_EQ(code, 0);
  const SwapPlaces places = swap_places(checkpoints, "last");
  EXPECT_EQ(value_of(load_checkpoint(places.target)), 2);
  EXPECT_EQ(value_of(load_checkpoint(places.fresh)), 1);
  fs::permissions(checkpoints, fs::perms::owner_all);
  CheckpointStore store(checkpoints);
  store.save("last", made_of(4));
  EXPECT_EQ(value_of(store.load("last")), 4);
  EXPECT_EQ(std::distance(fs::directory_iterator(checkpoints), fs::directory_iterator()), 1);
}

// Copying or writing such a tree recurses once per level and would overflow the stack.
TEST(CheckpointStore, DeepNestingIsRefused) {
  const TempFolder temp;
  CheckpointStore store(temp.path());
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  store.save("last", made_of(1));
  temp.write("last/manifest.json",
             R"({"body": {"format": 3, "files": {}, "tensors": {}, "more": )" + deep + R"(}, "checksum": ""})");
  EXPECT_THAT(damage(temp / "last"), AllOf(HasSubstr("manifest.json"), HasSubstr("nested deeper")));

  for (const char* name : {"info.json", "state.json"}) {  // with the right checksums
    store.save("last", made_of(1));
    const std::string text = R"({"more": )" + deep + "}";
    temp.write(fs::path("last") / name, text);
    Manifest manifest = read_manifest(temp / "last");
    manifest.files[name] = {text.size(), checksum_of(as_bytes(text))};
    write_manifest(temp / "last", manifest);
    EXPECT_THAT(damage(temp / "last"), AllOf(HasSubstr(name), HasSubstr("nested deeper")));
  }
}

TEST(CheckpointStore, OtherFormatsAreRefusedByName) {
  const TempFolder temp;
  CheckpointStore store(temp.path());
  store.save("last", made_of(1));
  const std::string text = read_text(temp / "last/manifest.json"),
                    ours = fmt::format("\"format\": {}", kCheckpointFormat);
  ASSERT_THAT(text, HasSubstr(ours));
  const auto with_format = [&](int format) {
    std::string other = text;
    other.replace(other.find(ours), ours.size(), fmt::format("\"format\": {}", format));
    temp.write("last/manifest.json", other);
    return damage(temp / "last");
  };
  EXPECT_THAT(with_format(kCheckpointFormat - 1), HasSubstr("Stoker 0.1 reads it"));
  EXPECT_THAT(with_format(kCheckpointFormat + 1), HasSubstr("a newer Stoker wrote it"));
}

TEST(CheckpointStore, AKillAtAnyMomentLeavesAWholeOne) {
  const TempFolder temp;
  CheckpointStore store(temp.path());
  store.save("last", made_of(0, 20'000));
  const Stopwatch stopwatch;
  store.save("last", made_of(0, 20'000));
  const double one_save = stopwatch.seconds();
  CounterRng random(1, 0, 0, RandomOp::kImage);
  std::int64_t value = 0;
  for (int kill = 0; kill < 30 || (value == 0 && kill < 300); ++kill) {
    const pid_t child = in_child([&] {
      for (std::int64_t next = value + 1;; ++next) {
        store.save("last", made_of(next, 20'000));
      }
    });
    // Longer each time, because the machine may be busy.
    ::usleep(static_cast<useconds_t>(random.uniform(0, (3 + kill) * 1e6 * one_save)));
    ::kill(child, SIGKILL);
    ASSERT_EQ(exit_code_of(child), -SIGKILL);
    const std::int64_t found = value_of(store.load("last"));
    EXPECT_GE(found, value);
    value = found;
  }
  EXPECT_GT(value, 0);  // some saves did finish
  store.save("last", made_of(1));
  EXPECT_EQ(std::distance(fs::directory_iterator(temp.path()), fs::directory_iterator()), 1);
}

TEST(CheckpointStore, WithoutExchangeTheOldOneSurvivesBetweenTheRenames) {
  const TempFolder temp;
  CheckpointStore store(temp.path());
  store.save("last", made_of(1));
  store.save("other", made_of(2));
  const SwapPlaces places = swap_places(temp.path(), "last");
  fs::rename(temp / "other", places.fresh);
  fs::rename(places.target, places.survivor);  // as if killed here
  EXPECT_TRUE(store.has("last"));
  EXPECT_EQ(value_of(store.load("last")), 1);
  store.save("last", made_of(3));
  EXPECT_EQ(value_of(store.load("last")), 3);
  EXPECT_EQ(std::distance(fs::directory_iterator(temp.path()), fs::directory_iterator()), 1);

  store.save("other", made_of(4));
  fs::rename(temp / "other", places.fresh);
  swap_in(places, false);
  EXPECT_EQ(value_of(store.load("last")), 4);
  EXPECT_EQ(std::distance(fs::directory_iterator(temp.path()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace stoker::io
