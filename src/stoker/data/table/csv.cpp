// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/table/csv.h"

#include "stoker/base/error.h"

namespace stoker::data {

CsvReader::CsvReader(std::string_view text, std::string name, char separator)
    : text_(text), name_(std::move(name)), separator_(separator) {
  if (text_.starts_with("\xEF\xBB\xBF")) {  // UTF-8 byte order mark, written by spreadsheets
    text_.remove_prefix(3);
  }
}

bool CsvReader::at_line_end() const {
  return at_ >= text_.size() || text_[at_] == '\n' || text_.substr(at_).starts_with("\r\n");
}

void CsvReader::skip_line_end() {
  if (at_ < text_.size()) {
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
  }
}

bool CsvReader::next(std::vector<std::string>& fields) {
  while (at_ < text_.size() && at_line_end()) {
    skip_line_end();
  }
  if (at_ >= text_.size()) {
    return false;
  }
  row_line_ = line_;
  std::size_t count = 0;
  for (bool more = true; more; ++count) {
    if (count == kMostFields) {
      fail<DataError>("data.csv", "{}, line {}: more than {} fields; check that the separator is \"{}\"", name_,
                      row_line_, kMostFields, separator_ == '\t' ? "tab" : std::string(1, separator_));
    }
    if (count == fields.size()) {
      fields.emplace_back();
    }
    read_field(fields[count]);
    more = at_ < text_.size() && text_[at_] == separator_;
    at_ += more ? 1 : 0;
  }
  fields.resize(count);
  skip_line_end();
  return true;
}

void CsvReader::read_field(std::string& field) {
  field.clear();
  const std::size_t start = at_;
  while (at_ < text_.size() && text_[at_] == ' ') {
    ++at_;
  }
  if (at_ < text_.size() && text_[at_] == '"') {
    read_quoted(field);
    return;
  }
  while (!at_line_end() && text_[at_] != separator_) {
    ++at_;
  }
  field = text_.substr(start, at_ - start);
}

void CsvReader::read_quoted(std::string& field) {
  for (++at_; at_ < text_.size(); ++at_) {
    if (text_[at_] != '"') {
      field += text_[at_];
      line_ += text_[at_] == '\n' ? 1 : 0;
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
      field += text_[++at_];
    } else {
      ++at_;
      if (!at_line_end() && text_[at_] != separator_) {
        fail<DataError>("data.csv", "{}, line {}: text after a closing quote; put quotes around the whole field", name_,
                        line_);
      }
      return;
    }
  }
  fail<DataError>("data.csv", "{}, line {}: a quote is opened but never closed", name_, row_line_);
}

}  // namespace stoker::data
