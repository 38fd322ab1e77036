#include "hybridsync/decide/schedule.h"

namespace hybridsync {

Schedule make_schedule(const Config& config) {
  const TierConfig tier = config.outer_tier();
  Schedule schedule;
  schedule.strategy = tier.strategy;
  schedule.synchronous_rounds = config.start.every_step;
  if (tier.strategy != Strategy::every_step) schedule.every = tier.every;
  if (tier.adapt != Adapt::off)
    schedule.adaptation = {tier.adapt, tier.every_min, tier.every_max, config.train.steps};
  return schedule;
}

}  // namespace hybridsync
