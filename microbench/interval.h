// The median of repeated measurements and how far it can be trusted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace hybridsync {

// Linear between the two nearest values; `share` in [0, 1], `values` not empty.
inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

struct Interval {
  double low = 0;
  double high = 0;
};

// 95 % interval of the median by the bootstrap (Efron 1979): the medians of resampled values.
inline Interval interval_of_median(const std::vector<double>& values) {
  std::mt19937 random(1);
  std::uniform_int_distribution<size_t> any(0, values.size() - 1);
  std::vector<double> medians(2000), sample(values.size());
  for (double& m : medians) {
    for (double& x : sample) x = values[any(random)];
    m = median(sample);
  }
  return {quantile(medians, 0.025), quantile(medians, 0.975)};
}

}  // namespace hybridsync
