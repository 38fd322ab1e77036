// Published strategies as points in the space of keys: a preset's name as `strategy` sets the keys
// of a tier that the user does not set. What a run prints and records is what it became.
#pragma once

#include <string>
#include <vector>

#include "hybridsync/config/config.h"

namespace hybridsync {

struct Preset {
  std::string name;
  std::string source;  // the paper
  void (*apply)(TierConfig& tier);
};

const std::vector<Preset>& presets();

// Nullptr when there is none of this name.
const Preset* find_preset(const std::string& name);

}  // namespace hybridsync
