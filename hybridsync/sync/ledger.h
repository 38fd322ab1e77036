// What became of a node's contributions, in numbers: nothing is lost without a line here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hybridsync {

struct Count {
  int64_t contributions = 0;
  int64_t samples = 0;
  void add(int64_t more_samples) {
    ++contributions;
    samples += more_samples;
  }
  Count& operator+=(const Count& o) {
    contributions += o.contributions;
    samples += o.samples;
    return *this;
  }
  static void visit(auto& s, auto&& f) { f(s.contributions, s.samples); }
  bool operator==(const Count&) const = default;
};

// Of this node's own contributions, all fragments of a lane together. At rest
//   contributed = applied + returned + dropped + unresolved
// and returned work is contributed again, under a new sequence number.
struct Ledger {
  Count contributed;  // made, abstentions included
  Count applied;
  Count returned;                   // progress again
  Count dropped;                    // thrown away, as configured
  Count restored;                   // were applied in a tail that was dropped; progress again
  Count lost;                       // with such a tail, or with a process that died
  double lost_squared_norm = 0;     // also what an owner had left out when it stopped being one
  double decayed_squared_norm = 0;  // forgotten on purpose: by gamma, error_feedback below 1
  std::vector<int64_t> ages;        // applied contributions by age in versions, from 0
  // As owner, by node: rounds that closed without it for its lateness.
  std::vector<int64_t> skipped;
  int64_t mismatches = 0;  // hashes that differed
  int64_t rounds = 0;      // results

  void applied_at(int64_t age, int64_t samples) {
    applied.add(samples);
    ++at(ages, age);
  }
  void skip(int node) { ++at(skipped, node); }
  Ledger& operator+=(const Ledger& other);

  static void visit(auto& s, auto&& f) {
    f(s.contributed, s.applied, s.returned, s.dropped, s.restored, s.lost, s.lost_squared_norm,
      s.decayed_squared_norm, s.ages, s.skipped, s.mismatches, s.rounds);
  }
  bool operator==(const Ledger&) const = default;

  static int64_t& at(std::vector<int64_t>& counts, int64_t index) {
    if (counts.size() <= static_cast<size_t>(index)) counts.resize(static_cast<size_t>(index) + 1);
    return counts[static_cast<size_t>(index)];
  }
};

}  // namespace hybridsync
