#include "hybridsync/math/batch_stats.h"

#include <cassert>

namespace hybridsync {

void merge(Moments& into, const Moments& other) {
  if (other.count == 0) return;
  if (into.count == 0) {
    into = other;
    return;
  }
  assert(into.mean.size() == other.mean.size());
  const double n = into.count + other.count;
  for (size_t c = 0; c < into.mean.size(); ++c) {
    const double difference = other.mean[c] - into.mean[c];
    into.mean[c] += difference * (other.count / n);
    into.var[c] = (into.count * into.var[c] + other.count * other.var[c]) / n +
                  difference * difference * (into.count / n) * (other.count / n);
  }
  into.count = n;
}

void advance(RunningMoments& running, const Moments& window, std::optional<double> momentum) {
  if (window.count == 0) return;
  running.batches_tracked += 1;
  const double m = momentum.value_or(1.0 / static_cast<double>(running.batches_tracked));
  const double unbias = window.count > 1 ? window.count / (window.count - 1) : 1.0;
  for (size_t c = 0; c < running.mean.size(); ++c) {
    running.mean[c] = (1 - m) * running.mean[c] + m * window.mean[c];
    running.var[c] = (1 - m) * running.var[c] + m * (window.var[c] * unbias);
  }
}

}  // namespace hybridsync
