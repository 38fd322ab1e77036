#include "hybridsync/math/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hybridsync {

double lr_scale(const LearningRateConfig& config, double batch) {
  if (config.reference_batch <= 0) return 1;
  const double kappa = batch / config.reference_batch;
  switch (config.scaling) {
    case LrScaling::sqrt:
      return std::sqrt(kappa);
    case LrScaling::linear:
      return kappa;
    case LrScaling::none:
      return 1;
  }
  return 1;
}

double lr_schedule(const LearningRateConfig& config, int64_t step, int64_t total) {
  if (step < config.warmup) return double(step + 1) / double(config.warmup);
  const int64_t after = step - config.warmup;
  switch (config.schedule) {
    case LrSchedule::constant:
      return 1;
    case LrSchedule::step:
      return std::pow(config.decay_factor, double(after / config.decay_every));
    case LrSchedule::cosine:
      break;
  }
  const double last = std::max<double>(1, double(total - config.warmup - 1));
  const double progress = std::clamp(double(after) / last, 0.0, 1.0);
  return config.final_factor +
         (1 - config.final_factor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace hybridsync
