// SPDX-License-Identifier: Apache-2.0
// The vectors of RFC 4648, section 10, and every byte.
#include "stoker/base/base64.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Base64, VectorsOfTheStandard) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [text, expected] : vectors) {
    EXPECT_EQ(base64(as_bytes(text)), expected);
  }
  EXPECT_EQ(base64(as_bytes("\xFB\xFF\xFE")), "+//+");
}

}  // namespace
}  // namespace stoker
