// Arithmetic of comparisons: what leaving out exchange costs in quality, and what it saves in bits.
#pragma once

#include <cstdint>
#include <vector>

#include "hybridsync/observe/step_record.h"

namespace hybridsync {

// Not-a-number where there are no values.
struct Spread {
  double mean = 0;
  double low = 0;
  double high = 0;
};
Spread spread_of(const std::vector<double>& values);

// A loss above that of synchronous training, as a fraction of the latter.
double loss_gap(double loss, double synchronous);

// The part of what exchange brings that a run has: 0 with the loss of a node alone, 1 with that of
// synchronous training; (alone - loss) / (alone - synchronous).
double share_of_benefit(double loss, double alone, double synchronous);

// Never exchanging must cost at least this fraction of the loss: below it the denominator of a
// share is noise.
constexpr double kWorthComparing = 0.02;

// Bits per parameter and step, of a node, as the mean over the nodes in the records.
struct Bits {
  double sent = 0;
  double received = 0;
};

// Everything, divided by `steps`.
Bits whole_bits(const std::vector<StepRecord>& records, int64_t steps, double parameters);

// Without the run's last round, which is plain by design: the rounds at steps K, 2 K, ... before
// the last step, by the steps that they cover. What an owner sends of a round may stand in the line
// of the next step, so all lines before the last step count. Not-a-number where there is no such
// round.
Bits steady_bits(const std::vector<StepRecord>& records, int64_t steps, int64_t interval,
                 double parameters);

// A ring all-reduce of fp32 on every step, each way: 64 (M - 1) / M.
double all_reduce_bits(int nodes);

}  // namespace hybridsync
