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
  int64_t rounds = 0;     // results
  int64_t views = 0;      // after the first
  int64_t lossy = 0;      // of these, such that lost something
  int64_t intervals = 0;  // changes of an interval that adapts
  int64_t processes = 0;
  int64_t messages = 0;
  int64_t messages_lost = 0;
  std::map<std::string, int64_t> faults;  // by kind
  std::map<std::string, int64_t> missed;  // by kind: those that did not happen
  // Runs that ended otherwise than by the end of training on all nodes and broke no promise: why,
  // and how many of them.
  std::map<std::string, int64_t> notes;
  Ledger ledger;  // of all processes that ended in order
  Oracle::Sums samples;
  Tally& operator+=(const Tally& other);
  bool operator==(const Tally&) const = default;
};

struct SimulatedRun {
  uint64_t seed = 0;
  std::optional<Breach> breach;
  std::vector<TraceLine> trace;  // only if asked for
  // Faults that did not happen, by their place in the scenario: the run was over, or the node down.
  std::vector<size_t> missed;
  Tally tally;
  Micros length = 0;    // on the virtual clock
  uint64_t course = 0;  // the same for the same run
};

// Versions have to go on increasing while no fault is in force that ends; what faults without an
// end leave of that promise:
// - crash, power_off, finish, leave, slow, drift: all of it. Where steps are slow, a pause may be
// as
//   long as its steps.
// - freeze, cut, broken, partition: with views, at the nodes that stay in the view; without, or
//   where the coordinator's node is frozen, nothing.
// - busy: at the others, while one of them trains, the quorum does without it and the staleness is
//   not 0.
// A run that stands still where nothing promises more ends, with a note that says why.
SimulatedRun simulate(const Scenario& scenario, bool trace);

}  // namespace hybridsync
