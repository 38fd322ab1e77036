// What a node keeps of the gradients of one fragment, and what it sends of them: error feedback
// with the momentum of SGD in front of it (Deep Gradient Compression, Lin et al. 2018). With
// momentum m, beta = error_feedback, and a gradient g:
//
//   u <- m u + g
//   v <- beta v + d              d = u; with Nesterov's momentum g + m u
//   code = C(v);  v <- v - decode(code);  u <- 0 where something was sent
//
// Clearing u (momentum factor masking) keeps a number that waited for long from being pushed on by
// gradients that are as old. Numbers that are sent in every round do not wait: those of small
// tensors, and all while the density is 1. Their u stays, and is SGD's own momentum. Without
// momentum u = g, and this is plain error feedback (Karimireddy et al. 2019).
//
// A round of plain numbers sends d and keeps v as it is. Used by the training thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hybridsync/sync/coder.h"
#include "hybridsync/sync/forgotten.h"
#include "hybridsync/sync/sender_momentum.h"

namespace hybridsync {

class GradientFeedback {
 public:
  // Of so many numbers. `coder` may be shared; it codes single precision.
  GradientFeedback(std::shared_ptr<Coder> coder, size_t count, const SenderMomentum& momentum);

  // The bytes to send of a finite gradient. What was kept and has grown beyond all numbers is
  // dropped: `overflowed()` until the next call, and g alone is what it goes on from.
  Bytes encode(std::span<const float> g);
  // The same in a round of plain numbers.
  Bytes plain(std::span<const float> g);
  bool overflowed() const { return overflowed_; }

  // Training is over: what waits will never be sent. It has grown by many steps' gradients and
  // would throw the parameters far off.
  void end();
  // The squared norm of what was forgotten on purpose since the last call.
  double take_forgotten() { return forgotten_.take(); }

  std::span<const float> momentum() const { return u_; }  // empty without any
  std::span<const float> residual() const { return v_; }

 private:
  std::span<const float> advance(std::span<const float> g);
  void mask(ByteSpan code);
  void clear();

  std::shared_ptr<Coder> coder_;
  float m_;
  bool nesterov_;
  std::vector<float> u_;
  std::vector<float> v_;
  std::vector<float> scratch_;
  bool overflowed_ = false;
  bool ended_ = false;
  Forgotten forgotten_;
};

}  // namespace hybridsync
