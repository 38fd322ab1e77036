#include "hybridsync/decide/grow_interval.h"

#include <algorithm>
#include <cmath>

namespace hybridsync {

Wish GrowInterval::next(const RoundFacts& facts) const {
  const auto doubled = [&](int64_t k) { return k > most_ / 2 ? most_ : 2 * k; };
  int64_t doublings = 0;
  for (int64_t k = first_; k < most_; k = doubled(k)) ++doublings;
  const double progress = std::clamp(facts.progress, 0.0, 1.0);
  const auto due = std::min(
      doublings, static_cast<int64_t>(std::floor(progress * static_cast<double>(doublings + 1))));
  int64_t interval = first_;
  for (int64_t i = 0; i < due; ++i) interval = doubled(interval);
  return {std::max(interval, facts.interval),
          short_text(100 * progress) + " % of training are done"};
}

}  // namespace hybridsync
