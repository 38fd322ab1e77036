// AdaComm (Wang and Joshi, "Adaptive communication strategies to achieve the best error-runtime
// trade-off in local-update SGD", MLSys 2019):
//
//   K = ceil(sqrt(F / F_0) K_0)
//
// F is the smoothed loss, F_0 that of the first 4 rounds, K_0 the K with which it began. So K
// shrinks as the loss falls: that is the published rule. Its refinements for a loss that stands
// still, and for changes of the learning rate, are left out.
#pragma once

#include "hybridsync/decide/round_facts.h"
#include "hybridsync/decide/smooth.h"

namespace hybridsync {

class AdacommInterval {
 public:
  [[nodiscard]] Wish next(const RoundFacts& facts);

  static void visit(auto& s, auto&& f) { f(s.loss_, s.first_loss_, s.first_); }
  bool operator==(const AdacommInterval&) const = default;

 private:
  Smooth loss_;
  double first_loss_ = 0;  // 0: not known yet
  int64_t first_ = 0;
};

}  // namespace hybridsync
