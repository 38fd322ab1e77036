#include "hybridsync/decide/divergence_interval.h"

namespace hybridsync {

Wish DivergenceInterval::next(const RoundFacts& facts) {
  if (facts.interval != interval_) {
    interval_ = facts.interval;
    drift_.restart();
    behind_ = 0;
  }
  if (facts.loss) {
    trend_.add(facts.total_samples, *facts.loss);
    const bool behind = trend_.finding().verdict == LossTrend::Verdict::behind;
    behind_ = behind ? behind_ + 1 : 0;
  }
  if (facts.drift) measure(facts);
  Wish wish{facts.interval, "", warning(facts)};
  const double drift = drift_.value();
  const bool known = target_ > 0 && drift_.full();
  if (behind_ > kPatience) {
    wish.interval /= 2;
    wish.why = "the loss has been behind its trend for " + std::to_string(behind_) + " rounds";
  } else if (known && (drift > kHigh * target_ || (drift < kLow * target_ && behind_ == 0))) {
    wish.interval = drift > target_ ? wish.interval / 2 : wish.interval * 2;
    wish.why = "nodes drift " + short_text(drift / target_) + " times their target of " +
               short_text(target_);
  }
  return wish;
}

void DivergenceInterval::measure(const RoundFacts& facts) {
  if (target_ <= 0 && lr_ > 0 && facts.lr > lr_) {
    lr_ = facts.lr;
    return drift_.restart();
  }
  if (facts.lr > lr_) lr_ = facts.lr;
  drift_.add(*facts.drift);
  if (target_ <= 0 && drift_.full()) target_ = drift_.value();
}

// Once, until they have come nearer.
std::string DivergenceInterval::warning(const RoundFacts& facts) {
  if (target_ <= 0) return "";
  const double times = drift_.value() / target_;
  if (times < kHigh) stale_ = false;
  if (times <= kStale || stale_) return "";
  stale_ = true;
  const std::string remedy =
      facts.interval > 1 ? "; try " + std::to_string(facts.interval / 2) : "";
  return "K = " + std::to_string(facts.interval) + ": nodes drift " + short_text(times) +
         " times their target, parameters are stale" + remedy;
}

}  // namespace hybridsync
