// K follows how far nodes drift apart:
//
//   K doubles  while the smoothed drift is below 0.7 of its target and the loss keeps up
//   K halves   above 1.4 of it, or where the loss has been behind its trend for more than 3 rounds
//
// drift: see round_facts.h, as Smooth of the rounds with the same K; nothing is decided before
// there are 4 of them. The loss's trend: see loss_trend.h.
//
// The target is the mean drift of the first 4 rounds, with K as it began, and stays what it is. At
// a given K drift goes with the learning rate and with how much the nodes' gradients differ. Both
// are usually largest when training begins, so drift falls as training calms down, and K grows with
// it: it spends what early rounds were allowed. Drift grows with K, about as sqrt(K) where
// gradients differ by noise and as K where they differ by their data. So K comes to rest where
// drift is near the target again; a target that grew with K would never stop it, one that followed
// the drift would never let it grow. A doubling at 0.7 of the target leads to 0.7 sqrt(2) = 1 of it
// or to 1.4, and is not taken back at once.
//
// While the learning rate still rises (a warm-up) rounds do not count for the target: it would be
// too small, and K would shrink when the rise is over.
//
// Source: the project's own. Kamp et al. 2018, "Efficient decentralized deep learning by dynamic
// model averaging", leave out rounds while nodes are near enough.
#pragma once

#include "hybridsync/decide/loss_trend.h"
#include "hybridsync/decide/round_facts.h"
#include "hybridsync/decide/smooth.h"

namespace hybridsync {

class DivergenceInterval {
 public:
  static constexpr double kLow = 0.7, kHigh = 1.4, kStale = 2;
  static constexpr int64_t kPatience = 3;  // rounds

  [[nodiscard]] Wish next(const RoundFacts& facts);

  static void visit(auto& s, auto&& f) {
    f(s.trend_, s.drift_, s.target_, s.lr_, s.interval_, s.behind_, s.stale_);
  }
  bool operator==(const DivergenceInterval&) const = default;

 private:
  void measure(const RoundFacts& facts);
  std::string warning(const RoundFacts& facts);

  LossTrend trend_;
  Smooth drift_;
  double target_ = 0;  // 0: not known yet
  double lr_ = 0;      // the largest so far
  int64_t interval_ = 0;
  int64_t behind_ = 0;  // rounds, in a row
  bool stale_ = false;  // was said
};

}  // namespace hybridsync
