// The rounds of one node: each rank is the endpoint for its lane's fragments, and all of them apply
// the same results at the same step boundary.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/config/environment.h"
#include "hybridsync/decide/buckets.h"
#include "hybridsync/decide/fragments.h"
#include "hybridsync/sync/account.h"
#include "hybridsync/sync/gradients.h"
#include "hybridsync/sync/replica.h"
#include "hybridsync/sync/reports.h"
#include "hybridsync/sync/rounds.h"
#include "hybridsync/sync/wires.h"

namespace hybridsync {

// What every rank of the node knows after a round.
struct RoundOutcome {
  double weight = 0;    // total; 0: everybody abstained and nothing changes
  int64_t samples = 0;  // of all nodes since the round before
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
  bool finished() const { return node_.finished; }  // every node has
  bool may_lag() const { return policy_.staleness > 0; }
  const Policy& policy() const { return policy_; }
  const RoundSummary& newest() const { return newest_; }
  double loss() const { return loss_; }                 // of all nodes, newest round
  int64_t samples() const { return samples_; }          // of all nodes, in all rounds
  int64_t own_samples() const { return own_samples_; }  // of these, the node's
  int64_t own_dropped() const { return own_dropped_; }  // thrown away, as configured
  // What the other nodes are taken to have trained on since the newest result: in proportion to
  // this node's steps, what they had in it.
  double samples_of_others() const;
  int64_t bytes_sent() const { return node_.bytes_sent; }
  int64_t bytes_received() const { return node_.bytes_received; }
  const Ledger& ledger() const { return node_.ledger; }
  const CodingCosts& coding() const { return node_.coding; }
  // Since the last call; of this rank's lane.
  std::vector<Report> reports() { return rounds_->desk().reports(); }
  void set_busy(bool busy) { rounds_->desk().set_busy(busy); }

  // Blocks until the round is over; every rank of the node calls it with the same draft. A draft of
  // weight 0 abstains. Throws RunEnded or Interrupted.
  //
  // gradient: `flat` holds this node's mean gradients, afterwards the mean over the nodes
  // (unchanged when the outcome's weight is 0).
  RoundOutcome gradient_round(const Contribution& draft, const Gradients& flat,
                              const SideData& side);

  // gradient mode: the next round brings more than the gradients of its step, which earlier ones
  // left behind or which momentum carries on. So clipping is for what this node gives, before.
  bool carries_over() const;

  // delta mode, before a step: how this rank's lane stands, for the agreement of the node. Empty
  // where every round makes training wait: then nothing can arrive in between.
  LaneReport report() const;
  // The most bytes that a report takes.
  size_t report_bytes() const { return lane_bytes_; }
  // delta mode, after a step, with the merged reports of all ranks: applies what has come,
  // contributes what is due, and waits where training may not go on. `finished`: it was the node's
  // last step.
  void boundary(const Learned& learned, const LaneReport& node, bool finished);
  // delta mode, after the last step: contributes what is left and stays for the others. One round;
  // to be called until finished().
  void leave_round();

 private:
  Account* account(int fragment);
  std::vector<int> with_news() const;
  void apply(const std::vector<int>& fragments);
  void take(int fragment);
  void contribute(bool all, bool finished);
  void leave_alone();
  bool lane_finished() const;
  void answer_calls();
  void offer(Account& account, bool last);
  void wait_while_stuck();
  void exchange_news(bool (*enough)(const Account&));
  enum class Calls { answer, ignore };  // of owners, meanwhile
  Outcome wait_until(bool (*enough)(const Account&), Calls calls);
  bool stuck() const;
  bool is_due() const;
  void agree(const Outcome& waited);
  void throw_if_over(const LaneReport& node) const;
  void take_over(const std::vector<int>& moved);
  void take_summary(const RoundReport& report);
  RoundReport round_report(const Outcome& waited) const;
  LaneReport lane_report() const;
  void everybody_has_read();
  Values scratch(const Fragment& fragment, std::vector<std::byte>& memory) const;
  Values parameters(const Fragment& fragment, std::vector<std::byte>& memory) const;
  void write_back(int fragment);
  void pull_momentum(int fragment);
  void round_in_place(int fragment, Values values) const;
  // f(flat range, where it is in the fragment)
  void each_piece(int fragment, auto&& f) const {
    size_t at = 0;
    for (const Fragment& piece : pieces_[static_cast<size_t>(fragment)]) {
      f(piece, at);
      at += static_cast<size_t>(piece.count);
    }
  }
  Outcome node_alive() const;

  const StatsAtSync statistics_;
  Wires& wires_;
  Replica& replica_;
  const Patience patience_;
  const FragmentTable table_;
  const Schedule schedule_;
  const int lane_;
  const int node_number_;
  const size_t side_bytes_;
  size_t lane_bytes_ = 0;
  Policy policy_;
  Coders coders_;  // of the accounts
  bool momentum_at_sender_ = false;
  const std::vector<std::vector<Fragment>> pieces_;  // by fragment: where it is in the flat vector
  std::vector<Values> shared_;  // by fragment, in the node's memory: what all ranks take over
  const double pull_;           // of momentum; 0: off
  std::vector<Values> means_;   // there too, for that: the newest mean deltas
  std::span<std::byte> has_mean_;
  std::span<std::byte> board_;  // there too: local rank 0's report
  std::unique_ptr<Rounds> rounds_;
  std::map<int, Account> accounts_;  // of this rank's fragments
  bool anchored_ = false;
  mutable std::vector<std::byte> memory_;

  // News taken since the last agreement.
  std::vector<int> moved_;
  RoundReport fresh_;  // fragment 0's

  // Equal on all ranks of the node.
  Mode mode_;
  Version gradient_rounds_ = 0;
  int64_t interval_;
  int64_t interval_before_;  // of the newest result
  int64_t rounds_count_ = 0;
  int64_t steps_ = 0;  // of the strategy
  int64_t steps_since_result_ = 0;
  int64_t samples_ = 0;
  int64_t own_samples_ = 0;
  int64_t own_dropped_ = 0;
  double loss_;
  RoundSummary newest_;
  std::optional<SideData> side_;
  LaneReport node_;
};

}  // namespace hybridsync
