// SPDX-License-Identifier: Apache-2.0
#include "stoker/base/cut_text.h"

namespace stoker {

std::string cut_text(const std::string& text, std::size_t width) {
  std::size_t characters = 0, last = 0;  // last: where the character begins that makes room for the sign
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) {
      continue;
    }
    if (++characters > width) {
      return text.substr(0, last) + "…";
    }
    last = i;
  }
  return text;
}

}  // namespace stoker
