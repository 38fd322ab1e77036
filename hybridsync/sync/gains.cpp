#include "hybridsync/sync/gains.h"

#include <algorithm>

#include "hybridsync/math/arithmetic.h"

namespace hybridsync {

void Gains::contributed(std::span<const ConstValues> values, std::span<const float> mean,
                        double before) {
  double decoded = 0;
  for (const ConstValues& one : values) decoded += squared_norm(one);
  const size_t members = values.size();
  if (members > 1)
    agreement_.add(squared_norm(mean), decoded / static_cast<double>(members), members);
  contributed_.add(before, kGainRounds);
  decoded_.add(decoded, kGainRounds);
}

void Gains::encoded(double squared_norm, double squared_norm_of_code) {
  mean_.add(squared_norm, kGainRounds);
  published_.add(squared_norm_of_code, kGainRounds);
}

std::byte Gains::find(size_t members) const {
  const auto kept = [](const Smoothed& part, const Smoothed& whole) {
    return whole.value() > 0 ? std::min(1.0, part.value() / whole.value()) : 1;
  };
  const double gain = self_tuned_gain(agreement_.rho(), members, kept(decoded_, contributed_),
                                      kept(published_, mean_));
  return std::byte{gain_code(gain)};
}

}  // namespace hybridsync
