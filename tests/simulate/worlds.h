// The worlds that the explorer's tests walk through: those in which the honest code breaks nothing
// are those in which planted bugs are found.
#pragma once

#include "hybridsync/simulate/explorer.h"

namespace hybridsync {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr int kSlower = 100;
#else
constexpr int kSlower = 1;
#endif

inline WorldOptions without_faults(Version versions) {
  WorldOptions world;
  world.budget = {0, 0, 0, 0, 0, 0, 0};
  world.most_versions = versions;
  return world;
}

inline WalkOptions few_faults() {
  WalkOptions options;
  options.walks = 20'000;
  return options;
}

// Without the drain: with so many deaths nobody may be left who has the numbers.
inline WalkOptions many_faults() {
  WalkOptions options;
  options.world.budget = {2, 2, 2, 2, 6, 0, 2};
  options.world.most_epochs = options.world.most_versions = 8;
  options.world.most_sequence = 8;
  options.depth = 250;
  options.walks = 5'000;
  options.drain = false;
  return options;
}

inline WalkOptions removals() {
  WalkOptions options;
  options.world.budget = {0, 0, 3, 0, 2, 0, 0};
  options.world.most_epochs = 6;
  options.faults = 0.12;
  options.walks = 10'000;
  options.drain = false;
  return options;
}

inline WalkOptions silent_node() {
  WalkOptions options;
  options.idle = 2;
  options.walks = 5'000;
  return options;
}

}  // namespace hybridsync
