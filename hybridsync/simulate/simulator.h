// Whole runs on a virtual network and a virtual clock, with the code of real ones: every node has a
// Desk, a Lane and the accounts of its fragments. One seed gives the whole run, to the bit. After
// every event all promises are checked.
//
// A run uses one thread; several runs may go on at the same time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hybridsync/simulate/oracle.h"
#include "hybridsync/simulate/scenario.h"
#include "hybridsync/sync/ledger.h"

namespace hybridsync {

// A line of a trace. Moments are the simulation's, not those of the nodes' clocks.
struct TraceLine {
  Micros at = 0;
  int node = -1;
  int fragment = -1;  // -1: about the node
  std::string text;
};
std::string to_text(const TraceLine& line);

// What a run, or many together, came to.
struct Tally {
  int64_t runs = 0;
  int64_t stranded = 0;  // of these, such in which no member of the view came back
  int64_t events = 0;
  int64_t steps = 0;
  int64_t rounds = 0;  // results
  int64_t views = 0;   // after the first
  int64_t lossy = 0;   // of these, such that lost something
  int64_t processes = 0;
  int64_t messages = 0;
  int64_t messages_lost = 0;
  std::map<std::string, int64_t> faults;  // by kind
  Ledger ledger;                          // of all processes that ended in order
  Oracle::Sums samples;
  Tally& operator+=(const Tally& other);
  bool operator==(const Tally&) const = default;
};

struct SimulatedRun {
  uint64_t seed = 0;
  std::optional<Breach> breach;
  std::vector<TraceLine> trace;  // only if asked for
  Tally tally;
  Micros length = 0;    // on the virtual clock
  uint64_t course = 0;  // the same for the same run
};

SimulatedRun simulate(const Scenario& scenario, bool trace);

}  // namespace hybridsync
