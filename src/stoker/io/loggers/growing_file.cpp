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
  const std::size_t before = writer_.written();
  try {
    writer_.write(as_bytes(buffer_));
  } catch (...) {  // the next call continues where this one ended, perhaps in the middle of a piece
    buffer_.erase(0, writer_.written() - before);
    throw;
  }
  buffer_.clear();
  flushed_ = now_s();
}

}  // namespace stoker::io
