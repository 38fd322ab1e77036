#include "hybridsync/decide/qsr_interval.h"

#include <algorithm>
#include <cmath>

namespace hybridsync {

Wish QsrInterval::next(const RoundFacts& facts) {
  constexpr double kMost = 1e15;
  if (facts.lr <= 0) return {facts.interval};
  if (first_ == 0) first_ = facts.interval;
  peak_ = std::max(peak_, facts.lr);
  const double times = peak_ / facts.lr;
  const double interval = std::floor(static_cast<double>(first_) * times * times);
  return {static_cast<int64_t>(std::min(interval, kMost)),
          "the learning rate is " + short_text(1 / times) + " of its peak"};
}

}  // namespace hybridsync
