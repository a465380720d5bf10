// SPDX-License-Identifier: Apache-2.0
// The index of a tar file, and random access to its members; never extracts anything. Reads ustar, GNU long names and
// pax headers (path, size). Used by TarSource. Thread-safe once constructed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stoker/base/file_stamp.h"

namespace stoker {
struct TarHeader;
struct TarExtension;
}  // namespace stoker

namespace stoker::data {

struct TarMember {
  std::string path;         // as stored, without leading "./"; bytes, not necessarily UTF-8
  std::int64_t offset = 0;  // of the first byte, in the tar file
  std::int64_t size = 0;    // bytes
};

// Maximum size of a sample: more than the maximum of 10^8 pixels takes without compression.
inline constexpr std::int64_t kMostSampleBytes = std::int64_t{1} << 30;

class TarFile {
 public:
  // Reads every header. DataError, with the byte offset, for a wrong checksum, a member beyond the end of the file, a
  // file that is not a tar, a compressed tar, and a member path that is absolute or contains "../". Keeps regular files
  // only: drops folders, counts links and devices in passed_over(). progress: members so far.
  explicit TarFile(std::filesystem::path path, const std::function<void(std::int64_t)>& progress = {});
  // A tar file whose members are already known: reads no header, members() stays empty. DataError as above if it cannot
  // be opened.
  struct Known {};
  TarFile(std::filesystem::path path, Known);
  TarFile(const TarFile&) = delete;
  TarFile& operator=(const TarFile&) = delete;
  ~TarFile();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const FileStamp& stamp() const { return stamp_; }  // at the time of opening
  [[nodiscard]] const std::vector<TarMember>& members() const { return members_; }
  [[nodiscard]] std::int64_t passed_over() const { return passed_over_; }
  // Reads bytes offset ... offset + size - 1 into buffer, replacing its content. DataError if they cannot be read.
  void read(std::int64_t offset, std::int64_t size, std::vector<std::byte>& buffer) const;

 private:
  // The header at byte `at`, or an end mark.
  TarHeader read_header(std::int64_t at, bool& end_mark) const;
  void add_member(const TarHeader& header, const TarExtension& extension, std::int64_t data, std::int64_t size);
  void read_index(const std::function<void(std::int64_t)>& progress);

  std::filesystem::path path_;
  int descriptor_ = -1;
  FileStamp stamp_;
  std::int64_t file_size_ = 0;
  std::int64_t passed_over_ = 0;
  std::vector<TarMember> members_;
};

}  // namespace stoker::data
