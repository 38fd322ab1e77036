// A suite's results: per part, every row against synchronous training and against a node alone.
#pragma once

#include <string>
#include <vector>

#include "hybridsync/launch/suite_measure.h"
#include "hybridsync/launch/suite_plan.h"
#include "hybridsync/observe/record_json.h"
#include "hybridsync/observe/summary.h"

namespace hybridsync {

// A row with the rate that counts: of several the one with the least mean loss among those whose
// runs are all done, so far as there are any.
struct RowResult {
  std::string name;
  Role role = Role::measured;
  double rate = 0;
  int runs = 0;  // done
  int planned = 0;
  int diverged = 0;
  int failed = 0;
  Spread loss = {}, accuracy = {}, gap = {},
         share = {};             // gap and share: of seeds in which both references are done
  Bits steady = {}, whole = {};  // means over the seeds
  std::vector<std::pair<double, Spread>> rates = {};  // the loss of each that was tried
};

struct PartResult {
  std::string task, part;
  int seeds = 0;                     // of the plan
  Spread cost_of_none = {};          // gap of the row without exchange
  std::vector<RowResult> rows = {};  // those that have a run
  int nodes = 1;

  bool counts() const { return cost_of_none.mean >= kWorthComparing; }
};

// `measured` holds an element per run. Parts without a run are left out.
std::vector<PartResult> part_results(const Suite& suite, const std::vector<PlannedRun>& runs,
                                     const std::vector<Measured>& measured);

// What stands above the tables.
struct Origin {
  std::string command = {};
  std::string date = {};
  std::string commit = {};  // empty: not known
  std::string torch = {};
};

std::string results_markdown(const Suite& suite, const Origin& origin,
                             const std::vector<PartResult>& parts);
Json results_json(const Suite& suite, const Origin& origin, const std::vector<PartResult>& parts);

// The columns of results.md for one part.
Table part_table(const PartResult& part);
// What has to be said with it: what never exchanging costs, and the rates that were tried.
std::string part_notes(const PartResult& part);

}  // namespace hybridsync
