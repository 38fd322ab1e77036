// Where decisions, arithmetic and wires meet: what happens at the end of a window, in one fixed
// sequence.
//
//   1 join the buckets               the node's sums, equal bits on all ranks
//   2 in-node agreement              one message: weights, losses, batch statistics, who has
//   finished 3 finite?                        skip together or step together 4 gradient mode: the
//   round       nodes' mean gradients -> their mean 5 clip, learning rate, optimizer; batch
//   statistics advance once 6 delta mode, when due: the round  delta -> mean -> outer optimizer ->
//   anchor -> parameters 7 record
//
// Every rank of a node calls open() and close() the same number of times; the callers' loops end
// together through Window::finished.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/config/environment.h"
#include "hybridsync/decide/buckets.h"
#include "hybridsync/decide/fragments.h"
#include "hybridsync/observe/step_record.h"
#include "hybridsync/sync/node_rounds.h"
#include "hybridsync/sync/reducer.h"
#include "hybridsync/sync/replica.h"
#include "hybridsync/sync/reports.h"
#include "hybridsync/sync/wires.h"

namespace hybridsync {

class Synchronizer {
 public:
  struct Options {
    Config config;
    Environment environment;
    Layout layout;        // of the gradient; parameters lie in the same flat order
    SideData side_shape;  // a window's side data of this model, for its size
    int sets = 1;  // of buckets: two when a window begins before the last one's reduction has ended
    Patience patience;
  };
  // Wires and replica must outlive it. Collective over all ranks of the run.
  Synchronizer(Options options, Wires& wires, Replica& replica);

  // A set of buckets, in the node's shared memory.
  const Gradients& gradients(int set) const { return sets_[static_cast<size_t>(set)]; }

  // A window's gradients are in this set; see Reducer. launch() lets all of it leave without
  // waiting.
  void open(int set);
  void ready(int bucket) { reducer_.ready(bucket); }
  void launch() { reducer_.launch(); }

  // Everything that follows the window's last backward, on the set that was opened last. `mine` is
  // this rank's part. A record unless no rank of the node had a micro-step. Throws RunEnded or
  // Interrupted, on all ranks of the node together where they can still agree.
  std::optional<StepRecord> close(Window mine);

  // As of the last close(), by all ranks of the node: their windows together.
  const Window& node() const { return node_; }

  // After a close() in which every rank had finished: the node's last contribution, then staying
  // for the other nodes until all have finished. `record` gets each of these rounds: a step
  // that other nodes' gradients make this node take, or else a second record of the last step.
  void leave(const std::function<void(const StepRecord&)>& record);

  int64_t steps() const { return step_; }
  // Of the whole run; what the other nodes did since the newest round is estimated. Does not go
  // back, unless at the very end, when it is exact.
  int64_t samples() const;
  int64_t rounds() const { return rounds_ ? rounds_->rounds() : 0; }
  int64_t interval() const { return rounds_ ? rounds_->interval() : 1; }
  int64_t skipped() const { return skipped_; }
  int64_t reductions() const { return reducer_.windows(); }
  // What became of the node's contributions, as of the last close().
  Ledger ledger() const { return rounds_ ? rounds_->ledger() : Ledger{}; }
  // What the rounds of this rank's lane have to tell, since the last call.
  std::vector<Report> reports();
  // Waits out what `emulate.step` pads a step to; returns at once without it.
  void pad();
  // The node is busy with something that is no training: rounds that call it get an abstention.
  void set_busy(bool busy) {
    if (rounds_) rounds_->set_busy(busy);
  }
  int64_t bytes_sent_slow() const { return rounds_ ? rounds_->bytes_sent() : 0; }  // by the node
  int64_t bytes_received_slow() const { return rounds_ ? rounds_->bytes_received() : 0; }

 private:
  // What an optimizer step needs beyond the gradients, from the node's ranks or from all nodes.
  struct StepInputs {
    double weight = 0;   // 0: nobody had anything to give
    double samples = 0;  // of all members together
    const SideData* side = nullptr;
    bool clipped = false;  // already
  };

  bool gradient_mode() const { return rounds_ && rounds_->mode() == Mode::gradient; }
  int64_t estimated_samples() const;
  void agree(const Window& mine);
  double normalise(double weight);
  double norm() const;
  bool step_alone(StepRecord& record);
  bool step_together(StepRecord& record);
  bool apply(const StepInputs& inputs, double norm, StepRecord& record);
  void clip(double norm, double most);
  std::vector<uint8_t> moved(std::vector<uint8_t> used) const;
  void count_step(bool stepped);
  void boundary(bool stepped, StepRecord& record);
  int64_t schedule_step() const;
  void leave_round(const std::function<void(const StepRecord&)>& record);
  Contribution draft(double weight) const;
  Values flat(Real type) const;
  StepRecord begin_record() const;
  void finish_record(StepRecord& record);
  void record_coding(StepRecord& record);
  void judge_codec(const CodingCosts& coding);

  const Config config_;
  const int nodes_;
  const Layout layout_;
  Wires& wires_;
  Replica& replica_;
  size_t window_bytes_;  // the most that one rank's report takes
  std::vector<Gradients> sets_;
  int set_ = 0;
  Reducer reducer_;
  std::unique_ptr<NodeRounds> rounds_;  // none without a tier between nodes

  Window node_;
  Clock::time_point step_began_ = Clock::now();
  const double padded_seconds_;
  const std::atomic<bool>* interrupt_;
  int64_t step_ = 0;
  int64_t skipped_ = 0;
  int64_t fast_before_ = 0;
  int64_t sent_before_ = 0;
  int64_t received_before_ = 0;
  CodingCosts coding_before_;
  double waited_ = 0;  // seconds, for rounds
  std::optional<Report> codec_report_;
  bool judged_ = false;

  double samples_ = 0;        // of the node, since its start
  int64_t most_samples_ = 0;  // that were estimated so far
};

}  // namespace hybridsync
