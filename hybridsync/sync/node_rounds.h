// The rounds of one node: its ranks contribute their lanes' fragments and agree at the end what
// came of it, so that all of them apply the same results at the same step boundary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/config/environment.h"
#include "hybridsync/decide/buckets.h"
#include "hybridsync/decide/fragments.h"
#include "hybridsync/sync/gradients.h"
#include "hybridsync/sync/replica.h"
#include "hybridsync/sync/reports.h"
#include "hybridsync/sync/rounds.h"
#include "hybridsync/sync/wires.h"

namespace hybridsync {

// What every rank of the node knows after a round.
struct RoundOutcome {
  double weight = 0;      // total; 0: everybody abstained and nothing changes
  int64_t samples = 0;    // of all nodes since the round before
  double loss = 0;        // their mean; NaN without any
  bool finished = false;  // every node has
  std::optional<SideData> side;
};

class NodeRounds {
 public:
  // Collective over all ranks of the run. Everything given by reference must outlive it.
  NodeRounds(const Config& config, const Environment& environment, const Layout& layout,
             size_t side_bytes, Wires& wires, Replica& replica, Patience patience);

  // Collective in the node, at every step boundary: once delta mode has come, what all nodes agree
  // on is the parameters of this moment, and rounds move it from there. Does nothing otherwise.
  void set_anchor_if_due();

  Mode mode() const { return mode_; }               // of the next round
  int64_t interval() const { return interval_; }    // its steps
  int64_t rounds() const { return rounds_count_; }  // those in which not everybody abstained
  int64_t samples() const { return samples_; }      // of all nodes, in all rounds
  double loss() const { return loss_; }             // of all nodes, newest round
  bool finished() const { return finished_; }
  int64_t bytes_sent() const { return bytes_sent_; }  // by the node, in all rounds
  int64_t bytes_received() const { return bytes_received_; }

  // Blocks until the round is over; every rank of the node calls it with the same draft. A draft of
  // weight 0 abstains. Throws RunEnded or Interrupted.
  //
  // gradient: `flat` holds this node's mean gradients, afterwards the mean over the nodes
  // (unchanged when the outcome's weight is 0).
  RoundOutcome gradient_round(const Contribution& draft, const Gradients& flat,
                              const SideData& side);
  // delta: the parameters' way since the anchor; afterwards the parameters are the new anchor, and
  // batch statistics are what the nodes made of theirs.
  RoundOutcome delta_round(const Contribution& draft);

 private:
  RoundOutcome agree(const Outcome& waited);
  void everybody_has_read();
  RoundReport report(const Outcome& waited) const;
  void take(const RoundReport& first, const std::vector<RoundReport>& all);
  Values scratch(const Fragment& fragment, std::vector<std::byte>& memory) const;
  Values parameters(const Fragment& fragment, std::vector<std::byte>& memory) const;
  Outcome node_alive() const;

  const StatsAtSync statistics_;
  Wires& wires_;
  Replica& replica_;
  const Patience patience_;
  const FragmentTable table_;
  const int lane_;
  const int node_;
  const size_t report_bytes_;
  std::vector<Values> agreed_;  // by fragment, in the node's shared memory
  std::unique_ptr<Rounds> rounds_;
  bool anchored_ = false;
  mutable std::vector<std::byte> memory_a_;
  mutable std::vector<std::byte> memory_b_;

  Mode mode_;
  int64_t interval_;
  int64_t rounds_count_ = 0;
  int64_t samples_ = 0;
  double loss_;
  bool finished_ = false;
  int64_t bytes_sent_ = 0;
  int64_t bytes_received_ = 0;
};

}  // namespace hybridsync
