// SPDX-License-Identifier: Apache-2.0
// Builds tar files for tests, also invalid ones. For one thread.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace stoker::testing {

class TarBuilder {
 public:
  // Adds a member with a plain ustar header. claimed: the size in the header, if it is not that of content.
  TarBuilder& add(std::string_view name, std::string_view content, char type = '0', long claimed = -1) {
    char block[512] = {};
    std::memcpy(block, name.data(), name.size() < 100 ? name.size() : 100);
    std::snprintf(block + 100, 8, "%07o", 0644);
    std::snprintf(block + 124, 12, "%011lo",
                  claimed < 0 ? static_cast<unsigned long>(content.size()) : static_cast<unsigned long>(claimed));
    block[156] = type;
    std::memcpy(block + 257, "ustar\00000", 8);
    std::memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (const char c : block) {
      sum += static_cast<unsigned char>(c);
    }
    std::snprintf(block + 148, 8, "%06o", sum);
    bytes_.append(block, sizeof block);
    bytes_.append(content);
    bytes_.append((512 - content.size() % 512) % 512, '\0');
    return *this;
  }
  // GNU: the next member's name.
  TarBuilder& long_name(std::string_view name) { return add("././@LongLink", std::string(name) + '\0', 'L'); }
  // POSIX: an extended header for the next member.
  TarBuilder& pax(std::string_view key, std::string_view value) {
    std::size_t length = key.size() + value.size() + 3;  // blank, equals sign, line end
    length += std::to_string(length + 1).size();
    length = key.size() + value.size() + 3 + std::to_string(length).size();
    return add("pax", std::to_string(length) + " " + std::string(key) + "=" + std::string(value) + "\n", 'x');
  }
  // All members and the end mark.
  [[nodiscard]] std::string done() const { return bytes_ + std::string(1024, '\0'); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace stoker::testing
