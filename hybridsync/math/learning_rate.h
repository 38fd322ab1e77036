// The learning rate of a step, always from the base: changes of the batch and of the schedule never
// compound.
#pragma once

#include <cstdint>

#include "hybridsync/config/config.h"

namespace hybridsync {

// sqrt(kappa), kappa or 1, with kappa = batch / reference_batch; 1 when no reference is given.
// `batch`: samples per optimizer step over all members, whatever the strategy.
double lr_scale(const LearningRateConfig& config, double batch);

// The schedule's factor at optimizer step `step` (from 0) of `total`: linear warm-up over
// config.warmup steps to 1, then constant; or cosine from 1 to final_factor at the last step; or
// decay_factor ^ (steps / decay_every).
double lr_schedule(const LearningRateConfig& config, int64_t step, int64_t total);

}  // namespace hybridsync
