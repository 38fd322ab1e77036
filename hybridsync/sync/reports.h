// What the ranks of a node tell each other at a step boundary, in one small message each: how their
// part of the window went, and how a round ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hybridsync/decide/schedule.h"
#include "hybridsync/sync/coding_costs.h"
#include "hybridsync/sync/ledger.h"
#include "hybridsync/sync/side_data.h"
#include "hybridsync/wire/bytes.h"

namespace hybridsync {

// How a rank's lane stands at a step boundary. `why` is empty when all is well.
struct LaneReport {
  std::string why;
  bool interrupted = false;
  bool wait = false;       // training cannot go on before there is news
  bool finished = false;   // every member is, in all of the lane's fragments
  std::vector<int> moved;  // fragments with news, or with numbers that all ranks take over now
  int64_t bytes_sent = 0;  // by this rank's lane since its start; merged by sum
  int64_t bytes_received = 0;
  Ledger ledger;       // merged by sum
  CodingCosts coding;  // of this rank since its start; merged by sum

  static void visit(auto& s, auto&& f) {
    f(s.why, s.interrupted, s.wait, s.finished, s.moved, s.bytes_sent, s.bytes_received, s.ledger,
      s.coding);
  }
};

// One rank's part in a window; merged, the node's.
struct Window {
  int64_t micro_steps = 0;
  double weight = 0;         // sum of the micro-batches' weights
  double loss_sum = 0;       // sum of weight times mean loss
  double samples = 0;        // as given to backward()
  int64_t epochs_ended = 0;  // by end_epoch(); merged by minimum
  bool finished = false;     // merged by "and"
  bool interrupted = false;  // merged by "or"
  int64_t bytes_fast = 0;    // sent by this rank in the node since its start; merged by sum
  LaneReport lane = {};      // where rounds do not make training wait
  SideData side = {};
};

void write(const Window& window, Writer& writer);
Window read_window(Reader& reader);  // from a rank of one's own node: asserted to be whole
Window merge(const std::vector<Window>& by_rank);

// What fragment 0's newest result says about the run; comes from local rank 0.
struct RoundSummary {
  double weight = 0;          // total; 0: everybody abstained
  int64_t samples = 0;        // of the results since the last summary
  int64_t total_samples = 0;  // of all results
  int64_t own_samples = 0;    // of this node, of the results since the last summary
  int64_t own_dropped = 0;    // samples of this node that were thrown away, as configured
  int64_t rounds = 0;         // since the last summary, those in which not everybody abstained
  int64_t contributors = 0;   // contributions in the newest
  int64_t age = -1;           // the largest of this node's contributions in it; -1: it has none
  double loss_sum = 0;
  double loss_weight = 0;
  bool advanced = false;  // there was a result
  Mode next_mode = Mode::gradient;
  int64_t next_interval = 1;
  double drift = 0;  // of the newest

  static void visit(auto& s, auto&& f) {
    f(s.weight, s.samples, s.total_samples, s.own_samples, s.own_dropped, s.rounds, s.contributors,
      s.age, s.loss_sum, s.loss_weight, s.advanced, s.next_mode, s.next_interval, s.drift);
  }
};

// A lane's report with the news that it has; the summary and the side data are local rank 0's.
struct RoundReport {
  LaneReport lane;
  RoundSummary summary;
  bool has_side = false;
  SideData side;
};

inline constexpr size_t kWhyBytes = 512;  // longer sentences are cut

// The most bytes of a report of a lane with so many fragments, in a run of so many nodes, with
// contributions of at most this age.
size_t lane_report_bytes(size_t fragments, int nodes, int staleness);
size_t round_report_bytes(size_t lane_bytes, size_t side_bytes);

void write(const RoundReport& report, Writer& writer);
RoundReport read_round_report(Reader& reader);
LaneReport merge(const std::vector<LaneReport>& by_rank);

}  // namespace hybridsync
