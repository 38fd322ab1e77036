#include "hybridsync/decide/interval.h"

#include <algorithm>

namespace hybridsync {

Interval::Interval(const Schedule& schedule)
    : adaptation_(schedule.adaptation), rule_(rule_of(schedule)) {}

Interval::Rule Interval::rule_of(const Schedule& schedule) {
  switch (schedule.adaptation.rule) {
    case Adapt::off:
      break;
    case Adapt::divergence:
      return DivergenceInterval();
    case Adapt::loss:
      return LossInterval();
    case Adapt::grow:
      return GrowInterval(schedule.every, schedule.adaptation.most);
    case Adapt::qsr:
      return QsrInterval();
    case Adapt::adacomm:
      return AdacommInterval();
  }
  return Fixed();
}

Wish Interval::next(const RoundFacts& facts) {
  Wish wish = std::visit([&](auto& rule) { return rule.next(facts); }, rule_);
  if (adaptation_.rule != Adapt::off)
    wish.interval = std::clamp(wish.interval, adaptation_.least, adaptation_.most);
  if (wish.interval == facts.interval)
    wish.why.clear();
  else
    wish.why = "K = " + std::to_string(wish.interval) + ", was " + std::to_string(facts.interval) +
               ": " + wish.why;
  return wish;
}

}  // namespace hybridsync
