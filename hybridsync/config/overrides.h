// --set: values on the command line laid over those of the file.
#pragma once

#include <string>

#include "hybridsync/config/value.h"

namespace hybridsync {

// Puts "tier.1.every=8" into the document, with tables that it lacks. The value is TOML or else a
// string. Throws ConfigError when the assignment has no form, no such tier, or leads through a
// value.
void apply_set(Value& document, const std::string& assignment);

}  // namespace hybridsync
