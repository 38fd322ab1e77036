// What error feedback forgets on purpose, as a squared norm, until somebody takes the sum to the
// ledger. Used by one thread.
#pragma once

#include <span>
#include <utility>

#include "hybridsync/math/arithmetic.h"

namespace hybridsync {

class Forgotten {
 public:
  // This share of all these numbers.
  void add(std::span<const float> what, double share = 1) {
    if (share != 0) squared_norm_ += share * share * squared_norm(what);
  }
  // Since the last call.
  double take() { return std::exchange(squared_norm_, 0); }

 private:
  double squared_norm_ = 0;
};

}  // namespace hybridsync
