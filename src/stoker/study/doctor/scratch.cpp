// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/doctor/scratch.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "stoker/base/error.h"
#include "stoker/base/file.h"

namespace stoker::study {

Scratch::Scratch() {
  std::string name = (std::filesystem::temp_directory_path() / "stoker-doctor-XXXXXX").native();
  if (::mkdtemp(name.data()) == nullptr) {
    fail<IoError>("stoker.doctor", "{}: cannot be made: {}", printable(name), std::strerror(errno));
  }
  path_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace stoker::study
