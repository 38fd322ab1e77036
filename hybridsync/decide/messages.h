// What nodes tell each other about one fragment. Payloads are handles, so that the machines that
// handle these messages are values: they can be copied, compared and branched without moving
// numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hybridsync/decide/schedule.h"

namespace hybridsync {

// Names bytes that the shell keeps; 0: none.
struct Payload {
  uint64_t handle = 0;
  explicit operator bool() const { return handle != 0; }
  bool operator==(const Payload&) const = default;
};

// CONTRIBUTE, member -> owner. weight 0: the node abstains; it has nothing to give to this round
// and its payload is none.
struct Contribution {
  int node = -1;
  uint64_t sequence = 0;  // of this node and fragment, from 1
  Version base = 0;       // the version it was computed on
  Mode mode = Mode::gradient;
  bool finished = false;  // this node's training is over: it only stays for the others
  double weight = 0;      // samples (or tokens, or micro-batches) behind the numbers
  int64_t samples = 0;    // trained on since the last contribution, also by skipped steps
  int64_t steps = 0;
  double loss_sum = 0;  // weighted; loss = loss_sum / loss_weight
  double loss_weight = 0;
  double squared_norm = 0;   // of the numbers
  uint64_t anchor_hash = 0;  // of what it is based on: all members must name the same
  Payload values;
  Payload side;  // fragment 0: batch statistics and what else travels once per round
  bool operator==(const Contribution&) const = default;
};

// One member's part in a result.
struct RosterEntry {
  int node = -1;
  uint64_t sequence = 0;
  int64_t age = 0;  // versions between its base and the result's predecessor
  double weight = 0;
  bool operator==(const RosterEntry&) const = default;
};

// RESULT, owner -> members: takes the fragment from `version` - 1 to `version`.
struct Result {
  Version version = 0;
  Mode mode = Mode::gradient;
  std::vector<RosterEntry> roster;
  double weight = 0;    // total; 0: everybody abstained, only the version advances
  int64_t samples = 0;  // of all members since the previous result
  double loss_sum = 0;
  double loss_weight = 0;
  uint64_t before = 0;  // hash of what the contributions were based on
  uint64_t after = 0;   // delta: hash of the new anchor; gradient: hash of the mean
  Mode next_mode = Mode::gradient;
  int64_t next_interval = 1;
  bool finished = false;  // every member is
  Payload values;
  Payload side;
  bool operator==(const Result&) const = default;
};

}  // namespace hybridsync
