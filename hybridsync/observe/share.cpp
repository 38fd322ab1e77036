#include "hybridsync/observe/share.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace hybridsync {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Of the lines up to and with step `last`, divided by `steps`.
Bits bits_until(const std::vector<StepRecord>& records, int64_t last, int64_t steps,
                double parameters) {
  std::set<int> nodes;
  double sent = 0, received = 0;  // bytes
  for (const StepRecord& record : records) {
    nodes.insert(record.node);
    if (record.step > last) continue;
    sent += static_cast<double>(record.bytes_sent_slow);
    received += static_cast<double>(record.bytes_received_slow);
  }
  if (nodes.empty() || steps <= 0 || parameters <= 0) return {kNone, kNone};
  const double unit = 8 / (static_cast<double>(nodes.size()) * double(steps) * parameters);
  return {sent * unit, received * unit};
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {kNone, kNone, kNone};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), *low, *high};
}

double loss_gap(double loss, double synchronous) { return loss / synchronous - 1; }

double share_of_benefit(double loss, double alone, double synchronous) {
  return (alone - loss) / (alone - synchronous);
}

Bits whole_bits(const std::vector<StepRecord>& records, int64_t steps, double parameters) {
  return bits_until(records, steps, steps, parameters);
}

Bits steady_bits(const std::vector<StepRecord>& records, int64_t steps, int64_t interval,
                 double parameters) {
  return bits_until(records, steps - 1, (steps - 1) / interval * interval, parameters);
}

double all_reduce_bits(int nodes) { return 64.0 * (nodes - 1) / nodes; }

}  // namespace hybridsync
