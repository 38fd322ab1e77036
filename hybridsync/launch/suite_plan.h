// Suites: many small trainings that together answer one question. Values only; suite.h runs them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hybridsync/config/config.h"

namespace hybridsync {

// The two rows that the others are measured by: what exchange costs most, and none at all.
enum class Role { measured, synchronous, alone };

struct SuiteRow {
  std::string name;               // "int4 K=8"
  std::vector<std::string> sets;  // overrides of the part's configuration
  std::vector<double> rates;      // train.lr; of several the best counts
  Role role = Role::measured;
  bool full = false;  // only with --full
};

// One task in one part of its training. All rows of a seed begin from the state that a synchronous
// start run of start_steps made.
struct SuitePart {
  std::string task;
  std::string name;
  std::string toml;  // of the task; rows and the start run override it
  std::vector<std::string> start_sets = {};
  std::vector<std::string> sets = {};  // of all rows, before their own
  std::vector<SuiteRow> rows = {};
};

struct Suite {
  std::string name;
  std::vector<SuitePart> parts;
};

// All there are, and the one of that name. Throws ConfigError that lists them.
const std::vector<Suite>& suites();
const Suite& find_suite(const std::string& name);

struct PlanOptions {
  int seeds = 3;      // 1, 2, ...: the same for all rows
  bool full = false;  // rows marked so as well
  int64_t steps = 0;  // of every run, start runs included; 0: as the suite says
};

struct PlannedRun {
  size_t part = 0;
  int row = -1;  // of the part; -1: the start run
  double rate = 0;
  uint64_t seed = 0;
  std::vector<std::string> sets = {};  // all but train.start_from
  std::string key = {};                // "char-gpt-steep-int4-K8", what --only is compared with
  std::string name = {};               // of its folder: key, rate, seed and a hash of its settings
  std::string start = {};              // name of the start run; empty: it is one
  Config config = {};                  // resolved
};

// Every run in the order of running: by seed, start runs first. A run's hash covers all of its
// resolved settings and, through its start run's name, those of that; no paths. Throws ConfigError.
std::vector<PlannedRun> plan(const Suite& suite, const PlanOptions& options);

// A learning rate as short as it goes: "0.002".
std::string rate_text(double rate);

// Name of the file with the part's configuration: parts of one task share it.
std::string config_file(const SuitePart& part);

}  // namespace hybridsync
