// SPDX-License-Identifier: Apache-2.0
// token_ids TOKENIZER.json: reads texts from standard input, one JSON string per line. Prints one line of JSON for
// each: its ids and whether they decode to the same text, or the error. Used by tests/house/tokenizer_test.py. One
// thread.
#include <iostream>
#include <nlohmann/json.hpp>

#include "stoker/base/error.h"
#include "stoker/data/text/tokenizer.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: token_ids TOKENIZER.json < lines of JSON strings\n";
    return 2;
  }
  try {
    const auto tokenizer = stoker::data::read_tokenizer(arguments[1]);
    for (std::string line; std::getline(std::cin, line);) {
      const auto text = nlohmann::json::parse(line).get<std::string>();
      nlohmann::json answer;
      try {
        const std::vector<std::int32_t> ids = tokenizer->encode(text);
        answer = {{"ids", ids}, {"same", tokenizer->decode(ids) == text}};
      } catch (const stoker::DataError& error) {
        answer = {{"error", error.what()}};
      }
      std::cout << answer.dump() << '\n';
    }
  } catch (const stoker::DataError& error) {
    std::cerr << error.what() << '\n';
    return 65;
  }
  return 0;
}
