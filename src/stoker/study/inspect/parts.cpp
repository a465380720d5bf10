// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stoker/base/fmt.h"

namespace stoker::study {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kColumns = 100;

}  // namespace

std::string wrapped(const std::string& head, const std::string& text, std::size_t indent) {
  std::string result = head;
  std::size_t column = indent;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    if (column > indent && column + 1 + word.size() > kColumns) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    start = end + 1;
  }
  return result + "\n";
}

std::string findings_text(const std::vector<DataFinding>& findings) {
  std::string text;
  const DataFinding* before = nullptr;
  for (const DataFinding& finding : findings) {
    if (before == nullptr || before->grade != finding.grade) {
      text += fmt::format("\n{}\n", finding.grade == Grade::kWrong      ? "Wrong"
                                    : finding.grade == Grade::kDoubtful ? "Doubtful"
                                                                        : "Remarks");
    }
    text += wrapped("  ", finding.text, 2);
    text += finding.example.empty() ? "" : wrapped("    for example: ", finding.example, 17);
    text += finding.advice.empty() ? "" : wrapped("    ", finding.advice, 4);
    before = &finding;
  }
  return text;
}

std::string verdict_of(const std::vector<DataFinding>& findings, const std::string& looked_at) {
  const auto of = [&](Grade grade) { return std::ranges::count(findings, grade, &DataFinding::grade); };
  const auto wrong = of(Grade::kWrong), doubtful = of(Grade::kDoubtful);
  const std::string where = "in " + looked_at;
  const auto things = [](std::ptrdiff_t count, const char* what) {
    return fmt::format("{} thing{} {} {}", count, count == 1 ? "" : "s", count == 1 ? "is" : "are", what);
  };
  if (wrong == 0 && doubtful == 0) {
    return "Nothing wrong " + where;
  }
  if (wrong == 0) {
    return "Nothing is wrong, " + things(doubtful, "doubtful") + " " + where;
  }
  const std::string also = doubtful == 0 ? "" : fmt::format(", {} {} doubtful", doubtful, doubtful == 1 ? "is" : "are");
  return things(wrong, "wrong") + also + " " + where;
}

Json finding_members(const DataFinding& finding) {
  return {{"grade", text_of(finding.grade)}, {"id", finding.id},         {"text", finding.text},
          {"example", finding.example},      {"advice", finding.advice}, {"count", finding.count}};
}

Json distribution_json(const Distribution& values) {
  Json bins = Json::array();
  for (const Bin& bin : values.bins) {
    bins.push_back({{"from", bin.from}, {"to", bin.to}, {"count", bin.count}});
  }
  return {{"least", values.least}, {"low", values.low},   {"median", values.median},
          {"high", values.high},   {"most", values.most}, {"bins", bins}};
}

}  // namespace stoker::study
