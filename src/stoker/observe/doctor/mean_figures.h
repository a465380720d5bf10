// SPDX-License-Identifier: Apache-2.0
// Means of the monitor's figures over its records, each weighted by its seconds. Used by run_facts and script_facts.
// One thread.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "stoker/observe/doctor/facts.h"

namespace stoker::observe::doctor {

class MeanFigures {
 public:
  // warm: whether the first record counts, too; else it is the start of a program.
  explicit MeanFigures(bool warm = false) : started_(warm) {}

  // A record {"event":"monitor","seconds":1,"figures":{...}}.
  void add(const nlohmann::json& record);
  void put_into(Facts& facts) const;

 private:
  struct Mean {
    double sum = 0, seconds = 0;
  };
  std::map<std::string, Mean> means_;
  bool started_;
};

}  // namespace stoker::observe::doctor
