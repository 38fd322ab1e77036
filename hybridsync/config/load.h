// TOML in, Config out; errors name file, line, key, value and the nearest right key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hybridsync/config/config.h"
#include "hybridsync/config/error.h"

namespace hybridsync {

// Reads and validates a file. `sets` are "key=value" overrides in the form of --set, applied in
// order after the file: "train.lr=0.1", "tier.1.every=8", "tier.site.every=8" (by the tier's name).
// Throws ConfigError.
Config load(const std::string& path, const std::vector<std::string>& sets = {});

// The same from text; `name` stands for the file in messages.
Config parse(std::string_view text, const std::string& name,
             const std::vector<std::string>& sets = {});

// Checks everything that one value alone cannot show (ranks against tiers, K against strategy).
// Fills in tier sizes of 0. Throws ConfigError.
void validate(Config& config);

// The resolved configuration as TOML that load() accepts again and that gives the same Config.
std::string to_toml(const Config& config);

// Every key that load() knows, as "train.lr", "tier.every"; the documents' test compares with it.
std::vector<std::string> known_keys();

}  // namespace hybridsync
