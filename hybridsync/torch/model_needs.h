// What the program's own model and data need, for --dry-run.
#pragma once

#include "hybridsync/config/config.h"
#include "hybridsync/launch/dry_run.h"

namespace hybridsync {

// Builds the model of the configuration and reads its data. Throws ConfigError.
ModelNeeds model_needs(const Config& config);

}  // namespace hybridsync
