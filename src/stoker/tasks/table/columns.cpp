// SPDX-License-Identifier: Apache-2.0
#include "stoker/tasks/table/columns.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

namespace stoker::tasks {
namespace {

using Rows = std::vector<std::int64_t>;
constexpr std::int64_t kFewRows = 20;  // with fewer rows, different values mean nothing

template <typename T>
T at_row(const std::vector<T>& values, std::int64_t row) {
  return values[static_cast<std::size_t>(row)];
}

// Integers, all different, with at most every second one missing between the smallest and the largest.
bool counts_rows(const data::TableColumn& column, const Rows& rows) {
  double least = std::numeric_limits<double>::infinity(), most = -least, present = 0;
  for (const std::int64_t row : rows) {
    const double value = at_row(column.numbers, row);
    if (value != std::floor(value)) {  // also NaN
      return false;
    }
    least = std::min(least, value);
    most = std::max(most, value);
    ++present;
  }
  return most - least < 2 * present;
}

double words_in(std::string_view text) {
  double words = 0;
  bool within = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    words += !blank && !within ? 1 : 0;
    within = !blank;
  }
  return words;
}

// A value of a column and the target of its row.
using Pair = std::pair<double, double>;

bool is_spoilt(const data::TableColumn& column) {
  constexpr std::size_t kFewValues = 10;
  return column.labels.size() >= kFewValues && 10 * texts_among_numbers(column).size() <= column.labels.size();
}

enum class Half { kKnown, kAsked };

// About every second row, but without any period that rows may have: Fibonacci hashing (Knuth, TAOCP 3, 6.4).
Half half_of_row(std::size_t i) { return (i * 0x9E3779B97F4A7C15U) >> 63 == 0 ? Half::kKnown : Half::kAsked; }

// A missing value counts as a value, below all others.
std::vector<Pair> half_of(const data::TableColumn& column, const std::vector<double>& targets, const Rows& rows,
                          Half half) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (half_of_row(i) != half) {
      continue;
    }
    const double value = column.numeric ? at_row(column.numbers, rows[i]) : at_row(column.ids, rows[i]);
    pairs.emplace_back(
        std::isnan(value) || (!column.numeric && value < 0) ? std::numeric_limits<double>::lowest() : value,
        at_row(targets, rows[i]));
  }
  return pairs;
}

// The mean target of sorted pairs, or the most frequent one.
double answer_of(std::span<const Pair> pairs, bool regression) {
  double best = 0, most = 0, sum = 0;
  for (std::size_t i = 0, start = 0; i < pairs.size(); ++i) {
    sum += pairs[i].second;
    start = pairs[i].second == pairs[start].second ? start : i;
    if (const auto run = static_cast<double>(i - start + 1); run > most) {
      most = run;
      best = pairs[i].second;
    }
  }
  return regression ? sum / static_cast<double>(pairs.size()) : best;
}

// The answer for each different value, sorted.
std::vector<Pair> answers_of(std::vector<Pair> pairs, bool regression) {
  std::ranges::sort(pairs);
  std::vector<Pair> answers;
  for (std::size_t i = 0, end = 0; i < pairs.size(); i = end) {
    for (end = i; end < pairs.size() && pairs[end].first == pairs[i].first; ++end) {
    }
    answers.emplace_back(pairs[i].first, answer_of(std::span(pairs).subspan(i, end - i), regression));
  }
  return answers;
}

double nearest_answer(const std::vector<Pair>& answers, double value) {
  const auto above = std::ranges::lower_bound(answers, value, {}, &Pair::first);
  if (above == answers.end()) {
    return answers.back().second;
  }
  const bool below = above != answers.begin() && value - std::prev(above)->first <= above->first - value;
  return below ? std::prev(above)->second : above->second;
}

double error_of(double answer, double truth, bool regression) {
  return regression ? (answer - truth) * (answer - truth) : answer == truth ? 0 : 1;
}

}  // namespace

std::string_view text_of(ColumnNature nature) {
  switch (nature) {
    case ColumnNature::kConstant: return "one value";
    case ColumnNature::kNumbers: return "numbers";
    case ColumnNature::kRowNumbers: return "row numbers";
    case ColumnNature::kCategories: return "categories";
    case ColumnNature::kSpoilt: return "numbers and text";
    case ColumnNature::kAllOther: return "different in every row";
    case ColumnNature::kFreeText: return "free text";
  }
  return "";
}

std::vector<std::string> texts_among_numbers(const data::TableColumn& column) {
  std::vector<std::string> texts;
  std::ranges::copy_if(column.labels, std::back_inserter(texts),
                       [](const std::string& text) { return !data::number_in(text); });
  return texts;
}

ColumnFacts look_at(const data::TableColumn& column, const Rows& rows) {
  constexpr double kSentence = 4;  // words of a value on average
  ColumnFacts facts;
  std::vector<bool> seen(column.labels.size(), false);
  for (const std::int64_t row : rows) {
    const std::int32_t id = at_row(column.ids, row);
    if (id < 0) {
      ++facts.missing;
    } else if (!seen[static_cast<std::size_t>(id)]) {
      seen[static_cast<std::size_t>(id)] = true;
      ++facts.different;
      facts.words += column.numeric ? 0 : words_in(column.labels[static_cast<std::size_t>(id)]);
    }
  }
  facts.words /= static_cast<double>(std::max<std::int64_t>(facts.different, 1));
  const auto present = static_cast<std::int64_t>(rows.size()) - facts.missing;
  const bool many = present >= kFewRows;
  using enum ColumnNature;
  if (facts.different < 2) {
    facts.nature = kConstant;
  } else if (column.numeric) {
    facts.nature =
        many && facts.missing == 0 && facts.different == present && counts_rows(column, rows) ? kRowNumbers : kNumbers;
  } else if (is_spoilt(column)) {
    facts.nature = kSpoilt;
  } else if (many && facts.words >= kSentence && 2 * facts.different >= present) {
    facts.nature = kFreeText;
  } else {
    facts.nature = many && 10 * facts.different >= 9 * present ? kAllOther : kCategories;
  }
  return facts;
}

std::vector<std::size_t> columns_that_tell(const data::TableData& table, const Rows& rows, std::size_t target,
                                           bool regression) {
  constexpr std::size_t kMostRows = 20'000;
  const data::TableColumn& truth = table.columns[target];
  const std::vector<double> targets =
      regression ? truth.numbers : std::vector<double>(truth.ids.begin(), truth.ids.end());
  Rows asked;
  for (std::size_t i = 0, count = std::min(rows.size(), kMostRows); i < count; ++i) {
    const std::int64_t row = rows[i * rows.size() / count];
    if (at_row(truth.ids, row) >= 0) {
      asked.push_back(row);
    }
  }
  std::vector<std::size_t> telling;
  if (std::ssize(asked) < kFewRows) {
    return telling;
  }
  std::vector<Pair> blind =
      half_of(truth, targets, asked, Half::kKnown);  // all pairs have the same value: the best guess without the column
  std::ranges::for_each(blind, [](Pair& pair) { pair.first = 0; });
  const double guess = answers_of(std::move(blind), regression).front().second;
  const auto borders = static_cast<double>(truth.labels.size()) - 1;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::vector<Pair> answers = answers_of(half_of(table.columns[i], targets, asked, Half::kKnown), regression);
    double wrong = 0, guessed_wrong = 0, count = 0;
    for (const auto& [value, right] : half_of(table.columns[i], targets, asked, Half::kAsked)) {
      wrong += error_of(nearest_answer(answers, value), right, regression);
      guessed_wrong += error_of(guess, right, regression);
      ++count;
    }
    const double allowed = regression ? guessed_wrong / 1000 : std::min(count / 1000 + borders, guessed_wrong / 20);
    if (i != target && guessed_wrong > 0 && wrong <= allowed) {
      telling.push_back(i);
    }
  }
  return telling;
}

}  // namespace stoker::tasks
