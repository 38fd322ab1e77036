// torch's SGD after it gave its momentum to the senders (sync/sender_momentum.h): its own is 0
// while it steps. Weight decay is no part of what they send, so what momentum makes of it is kept
// here. SGD is linear in both; with momentum m, weight decay w and a parameter p
//
//   b <- m b + w p;   gradient += b             with Nesterov's momentum  gradient += w p + m b
//
// is what it would have added. Like SGD's buffers b stays as it is while its parameter has no
// gradient.
#pragma once

#include <torch/optim/optimizer.h>

#include <unordered_map>

#include "hybridsync/sync/sender_momentum.h"

namespace hybridsync {

class GivenMomentum {
 public:
  // Throws ConfigError unless it is SGD with one momentum for all groups, without dampening. The
  // optimizer must outlive it.
  explicit GivenMomentum(torch::optim::Optimizer& optimizer);

  const SenderMomentum& value() const { return value_; }
  // The optimizer's step with gradients that hold the momentum. In between its settings are the
  // user's: weight decay may change, and a momentum that has changed throws ConfigError.
  void step();

 private:
  void add_decay();

  torch::optim::Optimizer& optimizer_;
  SenderMomentum value_;
  std::unordered_map<c10::TensorImpl*, at::Tensor> decayed_;  // b, where there is any decay
};

}  // namespace hybridsync
