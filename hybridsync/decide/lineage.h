// Where a fragment stands: the results that led to this version, as far as anybody may still ask.
// Equal on all ready members of an epoch at the same version. It travels as part of STATE.
#pragma once

#include <cstdint>
#include <vector>

#include "hybridsync/decide/schedule.h"
#include "hybridsync/decide/view.h"

namespace hybridsync {

// Names bytes that the shell keeps; 0: none.
struct Payload {
  uint64_t handle = 0;
  explicit operator bool() const { return handle != 0; }
  static void visit(auto& s, auto&& f) { f(s.handle); }
  bool operator==(const Payload&) const = default;
};

// One contribution's part in a result.
struct RosterEntry {
  int node = -1;
  uint32_t incarnation = 0;
  uint64_t sequence = 0;
  uint64_t settled = 0;  // everything of this process below is settled
  int64_t age = 0;       // versions between its base and the result's predecessor
  double weight = 0;
  int64_t samples = 0;
  static void visit(auto& s, auto&& f) {
    f(s.node, s.incarnation, s.sequence, s.settled, s.age, s.weight, s.samples);
  }
  bool operator==(const RosterEntry&) const = default;
};

// RESULT, owner -> members: takes the fragment from `version` - 1 to `version`.
struct Result {
  Version version = 0;
  Epoch epoch = 0;  // in which it was made
  Mode mode = Mode::gradient;
  std::vector<RosterEntry> roster;  // in the order of the sum: by node, then sequence
  double weight = 0;                // total; 0: everybody abstained, only the version advances
  int64_t samples = 0;              // of all members since the previous result
  int64_t total_samples = 0;        // of all results of the lineage
  double loss_sum = 0;
  double loss_weight = 0;
  uint64_t chain = 0;   // of the predecessor's lineage
  uint64_t before = 0;  // hash of what the contributions were based on
  uint64_t after = 0;   // delta: hash of the new anchor; gradient: hash of the mean
  Version stable = 0;   // every member has this version
  Mode next_mode = Mode::gradient;
  int64_t next_interval = 1;
  double drift = 0;       // fragment 0, delta: how far members are apart; 0: unknown
  bool finished = false;  // every member is
  Payload values;
  Payload side;
  static void visit(auto& s, auto&& f) {
    f(s.version, s.epoch, s.mode, s.roster, s.weight, s.samples, s.total_samples, s.loss_sum,
      s.loss_weight, s.chain, s.before, s.after, s.stable, s.next_mode, s.next_interval, s.drift,
      s.finished, s.values, s.side);
  }
  bool operator==(const Result&) const = default;
};

// Which contributions of one process a lineage holds.
struct Applied {
  Process process;
  uint64_t settled = 0;         // everything below is settled at the process itself
  std::vector<uint64_t> above;  // ascending, not below `settled`
  static void visit(auto& s, auto&& f) { f(s.process, s.settled, s.above); }
  bool operator==(const Applied&) const = default;
};

struct Lineage {
  Version version = 0;
  uint64_t chain = 0;          // hash of every result so far: equal chains are equal lineages
  uint64_t anchor = 0;         // hash of the anchor; 0: none yet
  Mode mode = Mode::gradient;  // of the next round
  int64_t interval = 1;        // of the next round
  int64_t total_samples = 0;
  bool finished = false;
  std::vector<Applied> applied;  // ascending by node; one process per node, the newest

  bool holds(const Process& process, uint64_t sequence) const;
  // Of an older process than the one whose contributions are held.
  bool outdated(const Process& process) const;
  void extend(const Result& result);
  static void visit(auto& s, auto&& f) {
    f(s.version, s.chain, s.anchor, s.mode, s.interval, s.total_samples, s.finished, s.applied);
  }
  bool operator==(const Lineage&) const = default;
};

// The chain after `result` on top of its predecessor's.
uint64_t next_chain(const Result& result);

}  // namespace hybridsync
