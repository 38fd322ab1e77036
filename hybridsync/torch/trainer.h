// Hybrid synchronisation for a LibTorch training loop, in three lines:
//
//   hybridsync::Trainer sync(*model, optimizer, hybridsync::load("hybrid.toml"));
//   for (auto& batch : *loader) {
//     sync.backward(loss(model->forward(batch.data), batch.target), batch.data.size(0));
//     sync.step();                        // does nothing until the window is full
//   }
//   sync.finish();
//
// One Trainer per process (rank); with no launcher and no tiers it is plain training with
// accumulation.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hybridsync/config/config.h"
#include "hybridsync/config/environment.h"
#include "hybridsync/config/error.h"
#include "hybridsync/config/load.h"
#include "hybridsync/observe/step_record.h"

namespace hybridsync {

class Trainer {
 public:
  // Compares the model with those of the other ranks (names, shapes, types, order) and throws
  // ConfigError with the first difference; then gives all ranks the weights and buffers of rank 0.
  // The optimizer's learning rates at this moment are the base that scaling and schedule start
  // from; between steps the optimizer always shows the base, so a scheduler of your own composes
  // with it. Model and optimizer must outlive the Trainer. Optimizer state must still be empty or
  // equal on all ranks.
  Trainer(torch::nn::Module& model, torch::optim::Optimizer& optimizer, Config config,
          Environment environment = from_environment());
  ~Trainer();

  // One micro-step: backward of a mean loss over `samples` samples (or tokens). Replaces
  // loss.backward(). Weighs it against the window's other micro-batches; in the last one gradients
  // leave as they become ready. `loss` may be scaled (fp16): give the factor, each rank its own,
  // and gradients are unscaled before they meet. samples 0 (a fully masked batch) is empty(): the
  // loss is not even looked at.
  void backward(const torch::Tensor& loss, double samples, double loss_scale = 1);
  // A micro-step without a batch on this rank: weight zero.
  void empty();

  // With overlap = "next_window" the optimizer steps inside the backward() that follows a full
  // window, and step() returns that record afterwards.
  //
  // At the window's end: reduce, clip, optimizer step, rounds. The record of the step, or nothing
  // while the window is not full. Throws RunEnded when the run cannot go on.
  std::optional<StepRecord> step();

  // Applies an incomplete window, with the weights that it really holds. Every rank of the node
  // calls it at the end of each epoch; it returns when all have.
  void end_epoch();
  // Applies an incomplete window and joins the last round; returns when every rank of the run has
  // finished. Afterwards all ranks hold the same parameters, and the same running statistics unless
  // batch_norm.at_sync is none.
  void finish();

  // These seconds since the last step (an evaluation, say) were no training: they count neither as
  // the run's time nor as computing.
  void exclude(double seconds);

  // This rank's node is busy with something that is no training (an evaluation, a checkpoint),
  // until it says otherwise. With a `delayed` tier, rounds that wait for it are answered by an
  // abstention meanwhile; it is not taken for slow.
  void busy(bool busy);

  // Called with the record of every step, also those that end_epoch() and finish() take. The
  // rounds of finish() come as further records of the last step: their bytes and seconds add to
  // its.
  void on_step(std::function<void(const StepRecord&)> f);
  // Called with a sentence while something waits long: "waiting 4 s for node 1, fragment 5, version
  // 17".
  void on_wait(std::function<void(const std::string&)> f);
  // Called with what rounds have to tell (a kind and a sentence): a node was skipped, hashes
  // differed. By default it goes to the standard error stream.
  void on_event(std::function<void(const std::string& kind, const std::string& sentence)> f);
  // Safe from a signal handler: makes every wait, and the next step(), throw Interrupted.
  void interrupt();

  const Config& config() const;
  const Environment& environment() const;
  int64_t steps() const;  // attempts
  // Of the whole run, equal on the ranks of a node: training of a `delayed` tier ends by it, since
  // nodes go at speeds of their own. Since the newest round the other nodes are taken to be as fast
  // as they were before (as this one, where rounds wait for everybody), after finish() the number
  // is exact.
  int64_t samples() const;
  // XXH3 of all parameters and buffers, in registration order: equal on ranks with equal bits.
  uint64_t hash() const;

  // Totals of this rank's node since construction (seconds: this rank's).
  struct Totals {
    int64_t reductions = 0;  // windows reduced in the node
    int64_t rounds = 0;
    int64_t bytes_sent_slow = 0;
    int64_t bytes_received_slow = 0;
    int64_t bytes_fast = 0;
    int64_t skipped = 0;
    int64_t interval = 1;  // K now
  };
  Totals totals() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hybridsync
