// What has to hold after every event, whatever happened: the protocol's invariants as functions of
// what is seen of the machines from outside. The explorer and the simulator ask the same questions.
//
// The machines forget what nobody may ask for any more; to judge them somebody has to remember all
// of it: Chronicle the results, Books a process's contributions. Pure, single-threaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "hybridsync/decide/seat.h"

namespace hybridsync {

enum class Rule {
  one_lineage = 1,    // one result per (fragment, epoch, version); one lineage per epoch
  identical_anchors,  // equal versions in one epoch are equal numbers
  exactly_once,       // a contribution is in one place
  account,            // everything learned is somewhere, once
  bounded_age,        // no result holds what is older than the staleness
  progress,           // without further faults versions go on increasing
  bounds,             // no queue grows without limit
  traffic,            // bytes per node and round do not grow with the number of nodes
  agreement,          // with right arithmetic nobody finds that nodes disagree
};
const char* name(Rule rule);

struct Violation {
  Rule rule;
  std::string what;
  // A contribution was returned, and a lineage that holds it is followed: after a lossy view this
  // may happen, when the lineage that was dropped for another one comes back.
  bool revived = false;
};
using Finding = std::optional<Violation>;

// A result, and everything before it.
struct Past {
  Version version = 0;
  Epoch epoch = 0;
  uint64_t chain = 0;
  std::vector<RosterEntry> roster;
  const Past* before = nullptr;

  // Results that hold this contribution.
  int count(const Process& process, uint64_t sequence) const;
  // Samples of this process in all results.
  int64_t samples(const Process& process) const;
  // Not after this version; the beginning if need be.
  const Past* at(Version version) const;
};

// All lineages of one fragment.
class Chronicle {
 public:
  const Past* beginning() const { return &beginning_; }
  // Nothing if no such lineage was seen.
  const Past* find(uint64_t chain) const;
  // `result` was applied on top of `on`.
  const Past* extend(const Past* on, const Result& result);

 private:
  Past beginning_;
  std::unordered_map<uint64_t, Past> pasts_;
};

// What became of the contributions of one process to one fragment.
struct Books {
  uint64_t made = 0;               // sequence numbers 1 to this
  std::vector<uint64_t> returned;  // progress again, or dropped as configured
  std::vector<uint64_t> lost;      // with a tail, in a view that was announced as lossy
  int64_t learned = 0;             // samples
  int64_t dropped = 0;             // samples
  int64_t lost_samples = 0;
  static void visit(auto& s, auto&& f) {
    f(s.made, s.returned, s.lost, s.learned, s.dropped, s.lost_samples);
  }
  bool operator==(const Books&) const = default;
};

// One live process in one fragment.
struct Fact {
  const Seat* seat = nullptr;
  const Past* past = nullptr;  // of its lineage
  const Books* books = nullptr;
  int64_t progress = 0;  // samples since the last contribution
};

// About to close.
Finding check_close(const Close& close, int staleness);
// A new entry of a chronicle, made on top of its predecessor's lineage.
Finding check_result(const Past& past, const Past& on);
// After every event, of whom it concerned.
Finding check_exactly_once(const Fact& fact);
Finding check_account(const Fact& fact);
Finding check_bounds(const Fact& fact, const Policy& policy, int nodes);
Finding check_lineage(const Fact& fact);
Finding check_one(const Fact& fact, const Policy& policy, int nodes);  // these four
// Of two processes in the same fragment.
Finding check_pair(const Fact& a, const Fact& b);

}  // namespace hybridsync
