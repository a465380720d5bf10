// SPDX-License-Identifier: Apache-2.0
#include "stoker/io/loggers/growing_file.h"

#include <unistd.h>

namespace stoker::io {

GrowingFile::~GrowingFile() { ::close(descriptor_); }

void GrowingFile::add(std::string_view piece) {
  constexpr std::size_t kMostHeld = 1 << 16;  // bytes
  buffer_ += piece;
  if (buffer_.size() >= kMostHeld || now_s() - flushed_ >= 1) {
    flush();
  }
}

void GrowingFile::flush() {
  if (!buffer_.empty()) {
    writer_.write(as_bytes(buffer_));
    buffer_.clear();
  }
  flushed_ = now_s();
}

}  // namespace stoker::io
