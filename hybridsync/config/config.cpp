#include "hybridsync/config/config.h"

#include "hybridsync/config/units.h"

namespace hybridsync {

double EmulateConfig::step_seconds(int node) const {
  if (speeds.empty()) return step;
  return step / parse_numbers(speeds).value().at(static_cast<size_t>(node));
}

TierConfig Config::outer_tier() const {
  if (tiers.size() > 1) return tiers.back();
  TierConfig identity;
  identity.name = "alone";
  return identity;
}

TierConfig Config::node_tier() const { return tiers.empty() ? TierConfig{} : tiers.front(); }

}  // namespace hybridsync
