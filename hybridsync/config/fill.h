// A document's values into a Config, key by key.
#pragma once

#include "hybridsync/config/config.h"
#include "hybridsync/config/value.h"

namespace hybridsync {

// Throws ConfigError for the first unknown key, wrong type, value out of range, or key on a tier
// that it does not belong to.
void fill(Config& config, const Value& document);

}  // namespace hybridsync
