// What one value alone cannot show: sizes against ranks, keys against their tier, pairs that need
// each other.
#pragma once

#include <optional>

#include "hybridsync/config/config.h"
#include "hybridsync/config/keys.h"
#include "hybridsync/config/place.h"

namespace hybridsync {

constexpr size_t kMostTiers = 2;

// The first mistake, or nothing; then the tiers' sizes of 0 are filled in.
std::optional<Mistake> complete(Config& config);

// Why a tier may not have the key (one for which applies() is false).
Complaint misplaced(const Key& key);
Complaint too_many_tiers();

}  // namespace hybridsync
