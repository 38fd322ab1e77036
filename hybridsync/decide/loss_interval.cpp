#include "hybridsync/decide/loss_interval.h"

namespace hybridsync {

Wish LossInterval::next(const RoundFacts& facts) {
  const Wish same{facts.interval};
  if (facts.interval != interval_) {
    interval_ = facts.interval;
    kept_up_ = rounds_ = 0;
  }
  if (!facts.loss) return same;
  ++rounds_;
  trend_.add(facts.total_samples, *facts.loss);
  const LossTrend::Finding found = trend_.finding();
  if (found.verdict == LossTrend::Verdict::unknown) return same;
  if (found.verdict == LossTrend::Verdict::behind) {
    kept_up_ = 0;
    if (rounds_ < LossTrend::kNewest) return same;
    return {facts.interval / 2, "the loss is " + short_text(found.loss) +
                                    ", and by its trend at most " + short_text(found.bound)};
  }
  if (++kept_up_ < kPatience) return same;
  kept_up_ = 0;
  return {2 * facts.interval,
          "the loss has kept up with its trend for " + std::to_string(kPatience) + " rounds"};
}

}  // namespace hybridsync
