// What codes leave out of one fragment's contributions of a node, and where it stays: in the
// parameters, of which they keep `gamma` per round, or beside them, from where it is encoded again
// with the next contribution (`error_feedback` of it; Karimireddy et al. 2019). Used by the
// training thread.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "hybridsync/decide/fragments.h"
#include "hybridsync/sync/coder.h"
#include "hybridsync/sync/forgotten.h"

namespace hybridsync {

class ErrorFeedback {
 public:
  ErrorFeedback(std::shared_ptr<Coder> coder, const Fragment& fragment);

  Coder& coder() { return *coder_; }
  // Whether anything is left out at all.
  bool codes() const { return coder_->codes(type_); }
  // `learned`: what the parameters hold that no contribution does; what they hold only until they
  // move is taken out of it. The bytes to contribute; `last`: plainly, and all of it where the
  // coder flushes (otherwise the residual stays beside, counted as forgotten). Nothing when they
  // would not be finite: then what was left out before is gone, too. Only where it codes.
  std::optional<Bytes> encode(Values learned, bool last);
  // Training is over: what will never be sent is forgotten.
  void end();
  // Would a last contribution have something to bring, though nothing was learned?
  bool owes(ConstValues learned) const;
  // What the parameters hold beside contributions while nothing is learned. Not known once
  // parameters that keep a residual have moved.
  bool knows_rest() const { return holds_left_out_ || !codes() || !local(); }
  void rest_after_contribution(Values out) const;
  // The parameters move: takes out of what they hold beside contributions what they do not keep.
  void move(Values rest);
  // The squared norm of what was forgotten on purpose since the last call.
  double take_forgotten() { return forgotten_.take(); }
  // The residual where it is not in the parameters; empty: nothing is kept there.
  std::span<const float> beside() const { return beside_; }
  // Of bytes that were contributed: their numbers. Valid until the next call.
  ConstValues numbers(ByteSpan bytes);

 private:
  bool local() const { return coder_->residual() == Residual::local; }
  Bytes encode_last(std::span<const float> learned, float beta);
  std::optional<Bytes> encode_local(std::span<const float> learned, bool last);
  std::optional<Bytes> encode_beside(std::span<float> learned, bool last);

  std::shared_ptr<Coder> coder_;
  Real type_;
  size_t count_;
  std::vector<float> beside_;    // the residual, where it is not in the parameters
  std::vector<float> left_out_;  // what the parameters still hold of it
  bool holds_left_out_ = false;
  Forgotten forgotten_;
  bool stays_ = false;  // beside_, for good
  std::vector<std::byte> scratch_;
};

}  // namespace hybridsync
