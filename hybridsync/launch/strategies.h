// Every strategy between nodes by name, as the point in the space of keys that it is: when it
// exchanges, what, in which code, who waits, how the result is applied, and what that costs. All of
// it is derived from the keys that a name sets; only the formulas are written down.
#pragma once

#include <string>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/observe/record_json.h"

namespace hybridsync {

struct StrategyEntry {
  std::string name;
  std::string source;   // the paper; empty: the plain strategy
  std::string when;     // "every 4 steps"
  std::string what;     // "gradient", "delta"
  std::string code;     // "fp32", "top_k, density 0.0156, 2 bits"
  std::string waits;    // who waits for whom
  std::string applied;  // what becomes of the mean
  std::string formula;
  double bits = 32;   // per number that travels, of a long vector
  bool exact = true;  // false: it depends on the numbers
  int64_t every = 1;  // steps in which each number travels once
  std::string state;  // what a node keeps beside model and optimizer
};

// Plain strategies first, then presets; in the order of the documents.
std::vector<StrategyEntry> strategies();

// What a node sends in a round of so many parameters between so many nodes, and receives as well:
// 2 b N (M - 1) / M bits for all of the vector; here in bytes.
double bytes_per_round(const StrategyEntry& entry, double parameters, int nodes);
// Than a ring all-reduce of fp32 on every step, in each direction.
double times_less(const StrategyEntry& entry);

std::string strategies_text(double parameters, int nodes);
Json strategies_json(double parameters, int nodes);
// docs/reference/strategies.md is this text.
std::string strategies_markdown();

}  // namespace hybridsync
