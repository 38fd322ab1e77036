#include "hybridsync/config/config.h"

namespace hybridsync {

TierConfig Config::outer_tier() const {
  if (tiers.size() > 1) return tiers.back();
  TierConfig identity;
  identity.name = "alone";
  return identity;
}

TierConfig Config::node_tier() const { return tiers.empty() ? TierConfig{} : tiers.front(); }

}  // namespace hybridsync
