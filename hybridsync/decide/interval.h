// The interval K between rounds of deltas, in optimizer steps: what it is after each of them. A
// value; the owner of fragment 0 has it, and starts a new one with each view, from the K of its
// lineage. The rules are in files of their own; all have next(facts).
#pragma once

#include <variant>

#include "hybridsync/decide/adacomm_interval.h"
#include "hybridsync/decide/divergence_interval.h"
#include "hybridsync/decide/grow_interval.h"
#include "hybridsync/decide/loss_interval.h"
#include "hybridsync/decide/qsr_interval.h"

namespace hybridsync {

class Interval {
 public:
  explicit Interval(const Schedule& schedule);

  // After a round: the K of the next one, within the bounds, and where it is another one a sentence
  // that says so.
  [[nodiscard]] Wish next(const RoundFacts& facts);

  static void visit(auto& s, auto&& f) { f(s.rule_); }
  bool operator==(const Interval&) const = default;

 private:
  struct Fixed {
    Wish next(const RoundFacts& facts) const { return {facts.interval}; }
    static void visit(auto&, auto&&) {}
    bool operator==(const Fixed&) const = default;
  };
  using Rule = std::variant<Fixed, DivergenceInterval, LossInterval, GrowInterval, QsrInterval,
                            AdacommInterval>;
  static Rule rule_of(const Schedule& schedule);

  Adaptation adaptation_;
  Rule rule_;
};

}  // namespace hybridsync
