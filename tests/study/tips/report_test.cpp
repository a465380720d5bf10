// SPDX-License-Identifier: Apache-2.0
// Text and JSON of a hand-made table: lines fit a terminal, columns are aligned, and unknown values are marked.
#include "stoker/study/tips/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace stoker::study {
namespace {

using testing::HasSubstr;
using testing::Not;

Tip made_up(std::string id, std::vector<std::string> models) {
  Tip tip;
  tip.title = "title of " + id;
  tip.id = std::move(id);
  tip.without = "off", tip.with = "on";
  tip.models = std::move(models);
  return tip;
}

// Each tip on each of its models: 2 s without, 1 s with.
TipsTable table_of(const std::vector<Tip>& tips, const Ratio& ratio = {2, 1.5, 2.5, 9}) {
  TipsTable table;
  for (const Tip& tip : tips) {
    for (const std::string& model : tip.models) {
      table.cells.push_back(
          {.tip = &tip, .model = model, .word = Word::kHelps, .seconds_without = 2, .seconds_with = 1, .ratio = ratio});
    }
    if (tip.models.empty()) {
      table.cells.push_back({.tip = &tip, .model = "", .note = "needs a GPU"});
    }
  }
  return table;
}

TEST(TipsReport, WhatIsUnknownSaysSo) {
  const std::vector<Tip> tips{made_up("a", {"cnn"})};
  TipsTable table = table_of(tips);
  EXPECT_EQ(table.load_before, -1);  // the default, for a kernel that gives no load
  const std::string text = tips_text(table);
  EXPECT_THAT(text, HasSubstr("load unknown before, unknown after"));
  EXPECT_THAT(text, HasSubstr("memory unknown"));
  EXPECT_THAT(text, Not(HasSubstr("GB")));
  const auto json = nlohmann::json::parse(tips_json(table));
  for (const char* member : {"load_before", "load_after", "memory_bytes"}) {
    EXPECT_TRUE(json.at(member).is_null()) << member;
  }
  table.load_before = 0;
  EXPECT_EQ(nlohmann::json::parse(tips_json(table))["load_before"], 0);
}

// The positions after each occurrence of mark in text.
std::vector<std::size_t> ends_of(const std::string& text, const std::string& mark) {
  std::vector<std::size_t> ends;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    ends.push_back(at + mark.size());
  }
  return ends;
}

TEST(TipsReport, ColumnsOfMixedPrecisionAreInLine) {
  const std::vector<Tip> tips{made_up("autocast-bf16", {"mlp", "unet", "bert"}),
                              made_up("autocast-fp16", {"mlp", "unet", "bert"})};
  TipsTable table = table_of(tips);
  for (TipCell& cell : table.cells) {
    cell.seconds_without = cell.model == "mlp" ? 2.97e-4 : 0.0281;
    cell.bytes_without = cell.bytes_with = cell.model == "mlp"    ? 126'000
                                           : cell.model == "unet" ? 28'100'000
                                                                  : 1'234'000'000;
  }
  const std::string text = tips_text(table);
  std::istringstream lines(text.substr(text.find("mixed precision:")));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::size_t> columns{ends_of(line, "fp32").at(0), ends_of(line, "bf16").at(0),
                                         ends_of(line, "fp16").at(0)};
  int rows = 0;
  for (; std::getline(lines, line); ++rows) {
    EXPECT_EQ(ends_of(line, " MB"), columns) << line;
  }
  EXPECT_EQ(rows, 3);
}

TEST(TipsReport, EveryKnownTipFitsATerminal) {
  TipsTable table;
  for (const Tip& tip : known_tips()) {
    for (const std::string& model : tip.models) {
      table.cells.push_back({.tip = &tip,
                             .model = model,
                             .word = Word::kHelpsMemory,
                             .seconds_without = 1.234,
                             .seconds_with = 1.235,
                             .bytes_without = 123'000'000,
                             .bytes_with = 123'000'000,
                             .ratio = {1, 1, 1, 31}});
    }
    table.cells.push_back({.tip = &tip, .model = "", .note = "needs a GPU: this CPU does not compute in float16"});
  }
  std::istringstream lines(tips_text(table));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(TipsReport, TextFitsATerminalAndJsonHoldsTheSame) {
  const std::vector<Tip> tips{made_up("autocast-bf16", {"mlp", "resnet34-slim-no-norm"}), made_up("gpu", {})};
  TipsTable table = table_of(tips, {1234.5, 1000, 2000, 9});
  table.cells[0].bytes_without = 12'345'678'901;
  table.cells[0].bytes_with = -1;
  table.accuracies = {{"resnet34-slim", "16 x 2", {0.512, 0.498, 0.5}}};
  const std::string text = tips_text(table);
  std::istringstream lines(text.substr(text.find("title of")));  // the lines above hold the machine's name
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100U) << line;
  }
  EXPECT_EQ(accuracy_text(table.accuracies),
            "\naccuracy by schedule, one value per seed\n  resnet34-slim          16 x 2    51.2 %  49.8 %  50.0 %\n");
  const auto json = nlohmann::json::parse(tips_json(table));
  EXPECT_EQ(json["format"], 1);
  const auto& cell = json["tips"][0]["cells"][0];
  EXPECT_EQ(cell["word"], "helps");
  EXPECT_EQ(cell["ratio"], 1234.5);
  EXPECT_EQ(cell["pairs"], 9);
  EXPECT_EQ(cell["seconds_without"], 2);
  EXPECT_EQ(cell["bytes_without"], 12'345'678'901);
  EXPECT_TRUE(cell["bytes_with"].is_null());
  EXPECT_EQ(json["tips"][1]["note"], "needs a GPU");
  EXPECT_TRUE(json["tips"][1]["cells"].empty());
  EXPECT_EQ(json["accuracies"][0]["accuracy"][1], 0.498);
}

}  // namespace
}  // namespace stoker::study
