// SPDX-License-Identifier: Apache-2.0
#include "stoker/observe/trace/json_blocks.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace stoker::observe::trace {
namespace {

// The same, one byte at a time.
JsonNesting::Found walked_plainly(const std::string& text) {
  JsonNesting::Found found;
  std::int64_t depth = 0;
  bool in_string = false, escaped = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      in_string = escaped || c != '"';
      escaped = !escaped && c == '\\';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      if (--depth < 0) {
        found.array_end = at + 1;
        return found;
      }
      found.last_end = depth == 0 ? at + 1 : found.last_end;
    }
  }
  return found;
}

TEST(JsonNesting, EqualsItsPlainTwin) {
  std::mt19937 random(1);
  constexpr std::string_view kLetters = "aaaaaaaaaaaa{}[]\"\\,:|;^ ";
  for (int round = 0; round < 4000; ++round) {
    std::string text = round % 2 == 0 ? "{" : "";
    const std::size_t size = random() % 700, letters = round % 3 == 0 ? kLetters.size() : 17;
    while (text.size() < size) {
      text += kLetters[random() % letters];
    }
    const JsonNesting::Found expected = walked_plainly(text), found = JsonNesting().walk(text);
    ASSERT_EQ(found.array_end, expected.array_end) << text;
    ASSERT_EQ(found.last_end, expected.last_end) << text;
  }
}

TEST(JsonNesting, ContinuesWhereItStopped) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += R"({"name":"a\"]}b","args":{"list":[1,{"x":[]}],"text":"\\"}},)";
  }
  const std::size_t last = text.rfind(',');
  for (const std::size_t cut : {1U, 7U, 63U, 64U, 65U, 700U, 1999U}) {
    JsonNesting nesting;
    std::size_t last_end = 0;
    for (std::size_t at = 0; at < text.size(); at += cut) {
      const auto found = nesting.walk(std::span(text).subspan(at, std::min<std::size_t>(cut, text.size() - at)));
      ASSERT_EQ(found.array_end, 0U);
      last_end = found.last_end > 0 ? at + found.last_end : last_end;
    }
    EXPECT_EQ(last_end, last) << cut;
    EXPECT_FALSE(nesting.inside());
  }
}

}  // namespace
}  // namespace stoker::observe::trace
