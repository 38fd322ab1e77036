#include "hybridsync/decide/adacomm_interval.h"

#include <cmath>

namespace hybridsync {

Wish AdacommInterval::next(const RoundFacts& facts) {
  const Wish same{facts.interval};
  // The root of a loss of another sign means nothing.
  if (!facts.loss || !(*facts.loss >= 0) || !std::isfinite(*facts.loss)) return same;
  if (first_ == 0) first_ = facts.interval;
  loss_.add(*facts.loss);
  if (first_loss_ == 0 && loss_.full()) first_loss_ = loss_.value();
  if (first_loss_ == 0) return same;
  const double times = loss_.value() / first_loss_;
  return {static_cast<int64_t>(std::ceil(std::sqrt(times) * static_cast<double>(first_))),
          "the loss is " + short_text(times) + " times that of the first rounds"};
}

}  // namespace hybridsync
