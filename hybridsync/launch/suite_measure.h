// What a run of a suite came to, from its folder.
#pragma once

#include <string>

#include "hybridsync/launch/suite_plan.h"
#include "hybridsync/observe/share.h"

namespace hybridsync {

enum class RunState { missing, done, diverged, failed };
const char* word_of(RunState state);

struct Measured {
  RunState state = RunState::missing;
  double loss = 0;
  double accuracy = 0;
  double seconds = 0;  // of training
  Bits steady;         // without the last round
  Bits whole;
  std::string torch;  // version

  bool finished() const { return state == RunState::done || state == RunState::diverged; }
};

// `missing` while the folder has no summary. A loss that is not finite is `diverged`.
Measured measure(const Config& config, const std::string& folder);

}  // namespace hybridsync
