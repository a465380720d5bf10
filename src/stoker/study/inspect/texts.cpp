// SPDX-License-Identifier: Apache-2.0
#include "stoker/study/inspect/texts.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "stoker/base/clock.h"
#include "stoker/base/file.h"
#include "stoker/base/thousands.h"
#include "stoker/base/utf8.h"
#include "stoker/data/text/text_files.h"
#include "stoker/study/inspect/finding_parts.h"
#include "stoker/train/resolve.h"

namespace stoker::study {
namespace {

constexpr std::size_t kListed = 30;           // rows of the tables of characters and words
constexpr std::size_t kSayingLine = 20;       // bytes; shorter lines repeat by chance
constexpr double kManyRepeated = 0.05;        // share of the lines with at least kSayingLine bytes
constexpr char32_t kReplacement = U'\uFFFD';  // what decoders write for invalid bytes

struct File {
  std::filesystem::path path;
  std::string bytes;
};

// Counts of a text; the views point into its files.
struct Counted {
  std::int64_t bytes = 0, lines = 0, words = 0, crlf = 0, saying = 0, repeated = 0;
  std::int64_t held_out = 0, known = 0;  // long lines of the validation part; of these also in train
  std::map<char32_t, std::int64_t> characters;
  std::unordered_map<std::string_view, std::int64_t> by_word;
  std::vector<double> lengths;  // of lines, in bytes
  std::string_view repeated_line;
  std::string no_utf8;  // place of the first invalid byte
  std::int64_t bad_files = 0;
};

void count_characters(const File& file, Counted& counted) {
  const std::string_view text = file.bytes;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint next = code_point_at(text, at);
    if (next.bytes == 0) {
      ++counted.bad_files;
      if (counted.no_utf8.empty()) {
        counted.no_utf8 = fmt::format("{}, byte {}", printable(file.path.native()), at);
      }
      return;
    }
    ++counted.characters[next.value];
    at += next.bytes;
  }
}

void count_words(std::string_view line, Counted& counted) {
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t start = line.find_first_not_of(" \t\r", at);
    if (start == std::string_view::npos) {
      return;
    }
    at = std::min(line.find_first_of(" \t\r", start), line.size());
    ++counted.words;
    ++counted.by_word[line.substr(start, at - start)];
  }
}

// held_out: offset in bytes, over all files, where the validation part begins.
void count_lines(const std::vector<File>& files, std::int64_t held_out, Counted& counted) {
  std::unordered_set<std::string_view> trained, seen;
  std::int64_t before = 0;
  for (const File& file : files) {
    const std::string_view text = file.bytes;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      ++counted.lines;
      counted.crlf += line.ends_with('\r') ? 1 : 0;
      counted.lengths.push_back(static_cast<double>(line.size()));
      count_words(line, counted);
      if (line.size() >= kSayingLine) {
        ++counted.saying;
        if (!seen.insert(line).second && counted.repeated++ == 0) {
          counted.repeated_line = line;
        }
        if (before + static_cast<std::int64_t>(at) < held_out) {
          trained.insert(line);
        } else {
          ++counted.held_out;
          counted.known += trained.contains(line) ? 1 : 0;
        }
      }
      at = end + 1;
    }
    before += std::ssize(text);
  }
}

// A readable name: blanks and line ends by name, others as they are.
std::string shown(char32_t character) {
  switch (character) {
    case U' ': return "space";
    case U'\n': return "line end";
    case U'\t': return "tab";
    case U'\r': return "carriage return";
    default: return printable(utf8_of(character));
  }
}

template <typename Map>
auto most_frequent(const Map& counts) {
  std::vector<std::pair<typename Map::key_type, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  sorted.resize(std::min(sorted.size(), kListed));
  return sorted;
}

tasks::Table characters_table(const Counted& counted) {
  tasks::Table table{"characters", {"character", "code", "count"}, {}};
  for (const auto& [character, count] : most_frequent(counted.characters)) {
    table.rows.push_back({shown(character), fmt::format("U+{:04X}", static_cast<std::uint32_t>(character)), count});
  }
  return table;
}

tasks::Table words_table(const Counted& counted) {
  tasks::Table table{"words", {"word", "count"}, {}};
  for (const auto& [word, count] : most_frequent(counted.by_word)) {
    table.rows.push_back({printable(word.substr(0, 40)), count});
  }
  return table;
}

tasks::Table files_table(const std::vector<File>& files) {
  tasks::Table table{"files", {"file", "bytes"}, {}};
  for (const File& file : files) {
    table.rows.push_back({printable(file.path.native()), std::ssize(file.bytes)});
  }
  return table;
}

void find_odd_characters(const Counted& counted, std::vector<DataFinding>& findings) {
  if (counted.bad_files > 0) {
    findings.push_back(finding(
        Grade::kWrong, "no_utf8",
        fmt::format("{} file{} not UTF-8", counted.bad_files, counted.bad_files == 1 ? " is" : "s are"),
        counted.no_utf8, "convert them (iconv -f latin1 -t utf-8), or train with tokenizer=bytes", counted.bad_files));
  }
  std::int64_t controls = 0;
  for (const auto& [character, count] : counted.characters) {
    const bool usual = character == U'\n' || character == U'\t' || character == U'\r' || character == U'\f';
    controls += character < 0x20 && !usual ? count : 0;
  }
  if (controls > 0) {
    findings.push_back(finding(Grade::kDoubtful, "control", fmt::format("{} control characters", thousands(controls)),
                               "", "check that the files are plain text", controls));
  }
  if (const auto lost = counted.characters.find(kReplacement); lost != counted.characters.end()) {
    findings.push_back(finding(Grade::kDoubtful, "lost_characters",
                               fmt::format("U+FFFD replaces lost characters {} times", thousands(lost->second)), "",
                               "convert the original again with its real encoding", lost->second));
  }
}

void find_repetition(const std::vector<File>& files, const Counted& counted, std::vector<DataFinding>& findings) {
  std::unordered_map<std::string_view, const File*> known;
  std::int64_t same = 0;
  std::string example;
  for (const File& file : files) {
    const auto [first, fresh] = known.emplace(file.bytes, &file);
    if (!fresh && same++ == 0) {
      example = fmt::format("{} and {}", printable(first->second->path.native()), printable(file.path.native()));
    }
  }
  if (same > 0) {
    findings.push_back(
        finding(Grade::kDoubtful, "same",
                fmt::format("{} file{} of another file", same, same == 1 ? " is a copy" : "s are copies"), example,
                "keep one copy of each", same));
  }
  const auto share = [](std::int64_t part, std::int64_t all) {
    return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(all, 1));
  };
  const std::string long_lines = fmt::format("lines of at least {} bytes", kSayingLine);
  if (const double known_share = share(counted.known, counted.held_out); known_share >= kManyRepeated) {
    findings.push_back(finding(
        Grade::kDoubtful, "leak",
        fmt::format("{:.0f} % of the {} in the last 10 % (the default validation part) also occur in the rest",
                    100 * known_share, long_lines),
        "", "the validation loss is too low; remove repeated lines, or validate on a separate text", counted.known));
  } else if (share(counted.repeated, counted.saying) >= kManyRepeated) {
    findings.push_back(finding(Grade::kDoubtful, "repeated",
                               fmt::format("{:.0f} % of the {} repeat an earlier line",
                                           100 * share(counted.repeated, counted.saying), long_lines),
                               fmt::format("\"{}\"", printable(counted.repeated_line.substr(0, 80))),
                               "a model memorises repeated text; remove headers, footers and copies",
                               counted.repeated));
  }
}

std::vector<DataFinding> findings_of(const std::vector<File>& files, const Counted& counted) {
  std::vector<DataFinding> findings;
  find_odd_characters(counted, findings);
  find_repetition(files, counted, findings);
  if (counted.crlf > 0) {
    findings.push_back(
        finding(Grade::kRemark, "crlf",
                fmt::format("{} of the {} lines end in CR LF", thousands(counted.crlf), thousands(counted.lines)), "",
                "the model learns to write CR LF; dos2unix removes the CR", counted.crlf));
  }
  std::ranges::stable_sort(findings, {}, &DataFinding::grade);
  return findings;
}

}  // namespace

DataSheet inspect_texts(const std::filesystem::path& path) {
  const Stopwatch watch;
  std::vector<File> files;
  Counted counted;
  for (const std::filesystem::path& file : data::read_text_files(path).files) {
    files.push_back({file, read_text(file, std::size_t{1} << 36)});
    counted.bytes += std::ssize(files.back().bytes);
    count_characters(files.back(), counted);
  }
  const auto trained = static_cast<std::int64_t>((1 - train::default_plan().val) * static_cast<double>(counted.bytes));
  count_lines(files, trained, counted);
  DataSheet sheet;
  sheet.path = path;
  sheet.kind = "text";
  sheet.looked_at = fmt::format("{} line{}", thousands(counted.lines), counted.lines == 1 ? "" : "s");
  sheet.counts = {{"files", std::ssize(files)},
                  {"bytes", counted.bytes},
                  {"lines", counted.lines},
                  {"words", counted.words},
                  {"different_words", std::ssize(counted.by_word)},
                  {"different_characters", std::ssize(counted.characters)}};
  sheet.findings = findings_of(files, counted);
  sheet.tables = {characters_table(counted), words_table(counted), files_table(files)};
  if (!counted.lengths.empty()) {
    sheet.plots.push_back({"bytes per line", distribution_of(std::move(counted.lengths), Bins::kEqualWidth)});
  }
  sheet.seconds = watch.seconds();
  return sheet;
}

}  // namespace stoker::study
