#include "hybridsync/decide/schedule.h"

namespace hybridsync {

Schedule make_schedule(const Config& config) {
  const TierConfig tier = config.outer_tier();
  return {tier.strategy, config.start.every_step,
          tier.strategy == Strategy::every_step ? 1 : tier.every};
}

}  // namespace hybridsync
