// Sees every contribution and every result of a simulated run from outside, and knows at any time
// where each contribution is. It trusts nothing that the machines say about themselves: ages,
// sums, anchors and fates are computed here once more.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hybridsync/decide/seat.h"
#include "hybridsync/simulate/invariants.h"
#include "hybridsync/simulate/scenario.h"
#include "hybridsync/sync/averager.h"
#include "hybridsync/sync/desk.h"

namespace hybridsync {

// A promise that was broken.
struct Breach {
  Rule rule = Rule::agreement;
  int fragment = -1;  // -1: of the run
  std::string text;
  bool operator==(const Breach&) const = default;
};

class Oracle {
 public:
  Oracle(const Scenario& scenario, std::span<const float> start);

  // --- what the training of a process gave away, before anybody else sees it

  struct Offered {
    std::vector<float> numbers;  // that the bytes stand for; none: it abstains
    int64_t samples = 0;
  };
  const Offered& offered(const Process& process, int fragment, uint64_t ticket, const Body& body,
                         int64_t samples);

  // It came back, and training has made it progress again.
  void taken_back(const Process& process, int fragment, uint64_t ticket);

  // --- what a seat does: right before it is performed

  void see(const Seat& seat, const Action& action);

  // --- what became of it

  enum class Fate { open, settled, returned, dropped };
  Fate fate(const Process& process, int fragment, uint64_t ticket) const;
  // Applied once, in a tail that is gone: progress again. Since the last call.
  std::vector<uint64_t> take_restored(const Process& process, int fragment);
  const Offered& offer(const Process& process, int fragment, uint64_t ticket) const;

  // Whether one of these lineages is the beginning of the other.
  bool one_lineage(int fragment, uint64_t a, uint64_t b) const;
  // The anchor of a fragment after these results; none where there is no such lineage.
  const std::vector<float>* anchor(int fragment, uint64_t chain) const;

  // What the owner who made the newest result of a lineage has left out of its results since it
  // began to make them: the sum of its means less that of its results.
  struct LeftOut {
    std::vector<double> sum;
    double size = 1;  // the largest number that it encoded, for rounding
  };
  // None where this process did not make it, or forgets on purpose.
  const LeftOut* left_out(int fragment, uint64_t chain, const Process& owner) const;

  // --- at the end of a process, and of the run

  // What this process had trained on in a fragment, and what of it was in nobody's hands but its
  // own: progress.
  struct Trained {
    int64_t samples = 0;
    int64_t progress = 0;
  };
  void ended(const Process& process, std::vector<Trained> by_fragment);
  // A tail may be lost now without a trace at those who had it.
  void lossy() { lossy_ = true; }
  // All live seats of a fragment, with everything at rest: every contribution is in one place.
  void check_end(const std::vector<const Seat*>& seats);

  // The first that was found.
  const std::optional<Breach>& breach() const { return breach_; }
  void broken(Rule rule, int fragment, std::string text);

  // Where contributions are at the end, in samples of all fragments.
  struct Sums {
    int64_t contributions = 0;
    int64_t trained = 0, applied = 0, dropped = 0, open = 0, progress = 0;
    int64_t lost_with_processes = 0, lost_with_tails = 0;
    static void visit(auto& s, auto&& f) {
      f(s.contributions, s.trained, s.applied, s.dropped, s.open, s.progress, s.lost_with_processes,
        s.lost_with_tails);
    }
    Sums& operator+=(const Sums& other);
    bool operator==(const Sums&) const = default;
  };
  const Sums& sums() const { return sums_; }
  // A number for the whole course: equal runs have equal ones.
  uint64_t course() const { return course_; }
  int64_t results() const { return results_; }
  Version newest(int fragment) const { return fragments_[static_cast<size_t>(fragment)].newest; }

 private:
  struct Made {
    bool known = false;
    Contribution contribution;
    std::vector<uint64_t> in;  // chains of the results that hold it
    Fate fate = Fate::open;
    bool taken_back = false;  // by training
  };
  struct Step {  // one result of the tree of lineages
    uint64_t parent = 0;
    Version version = 0;
    int64_t total_samples = 0;
    std::vector<RosterEntry> roster;
    std::vector<float> anchor, momentum;
    Process maker;
    std::vector<float> residual;  // that the maker has after it
    LeftOut left_out;             // of the maker, up to this one
  };
  struct Place {             // of one process in one fragment
    std::vector<Made> made;  // by sequence number, from 1
    std::map<uint64_t, Offered> offers;
    std::map<uint64_t, uint64_t> sequences;  // by ticket
    std::vector<uint64_t> restored;          // tickets
    bool ended = false;
    Trained trained;
  };
  struct Tree {
    std::unordered_map<uint64_t, Step> steps;  // by chain; 0 is the root
    std::map<std::pair<Epoch, Version>, uint64_t> of_epoch;
    std::map<Process, Place, bool (*)(const Process&, const Process&)> places{before};
    Version newest = 0;
  };
  static bool before(const Process& a, const Process& b) {
    return std::pair(a.node, a.incarnation) < std::pair(b.node, b.incarnation);
  }

  void see(const Seat& seat, const Send& action);
  void see(const Seat& seat, const CloseRound& action);
  void see(const Seat& seat, const Advanced& action);
  void see(const Seat& seat, const Adopted& action);
  void see(const Seat& seat, const Returned& action);
  template <class Other>
  void see(const Seat&, const Other&) {}

  Tree& tree(const Seat& seat) { return fragments_[static_cast<size_t>(seat.fragment())]; }
  Made* find(Tree& tree, const Process& process, uint64_t sequence);
  void learn(const Seat& seat, const Contribution& c);
  void add(const Seat& seat, const Result& r);
  void check_entry(const Seat& seat, const Result& r, const RosterEntry& e, uint64_t chain);
  void compute(int fragment, const Result& r, Step& step);
  bool encode(const Result& r, bool last, std::span<float> mean, Step& step);
  bool is_before(const Tree& tree, uint64_t chain, uint64_t later) const;
  std::vector<uint64_t> path(const Tree& tree, uint64_t head) const;
  void check_place(int fragment, const Process& process, Place& place, const Seat* seat,
                   const std::set<uint64_t>& path);
  void check_samples(int fragment, const Tree& tree, uint64_t head);
  std::string name(int fragment, const Process& process, uint64_t sequence) const;

  const Scenario& scenario_;
  Coder coder_;
  std::vector<Tree> fragments_;
  std::optional<Breach> breach_;
  bool lossy_ = false;
  Sums sums_;
  uint64_t course_ = 0;
  int64_t results_ = 0;
};

}  // namespace hybridsync
