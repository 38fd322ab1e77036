// K follows the loss:
//
//   K doubles  when the loss has kept up with its trend for 3 rounds in a row
//   K halves   when it falls behind by more than its noise; then at the earliest after 4 rounds,
//              when all that is compared comes from the new K
//
// The trend, its noise, and what keeping up means: see loss_trend.h. Source: the project's own.
#pragma once

#include "hybridsync/decide/loss_trend.h"
#include "hybridsync/decide/round_facts.h"

namespace hybridsync {

class LossInterval {
 public:
  static constexpr int64_t kPatience = 3;  // rounds

  [[nodiscard]] Wish next(const RoundFacts& facts);

  static void visit(auto& s, auto&& f) { f(s.trend_, s.interval_, s.kept_up_, s.rounds_); }
  bool operator==(const LossInterval&) const = default;

 private:
  LossTrend trend_;
  int64_t interval_ = 0;
  int64_t kept_up_ = 0;  // rounds, in a row
  int64_t rounds_ = 0;   // with this interval
};

}  // namespace hybridsync
