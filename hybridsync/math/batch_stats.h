// Batch-norm statistics, merged exactly: in double, by the rule of Chan, Golub and LeVeque (1979).
// The form E[x^2] - mean^2 loses everything when the mean is large against the deviation; this one
// does not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hybridsync {

// Statistics of a set of values, per channel: their number, means and biased variances. For running
// statistics `count` is the weight that they are merged with.
struct Moments {
  double count = 0;
  std::vector<double> mean;
  std::vector<double> var;  // biased: sum (x - mean)^2 / count

  bool operator==(const Moments&) const = default;
};

// into := the statistics of both sets together:
//   n = n_a + n_b, mean = sum n_i mean_i / n, var = sum n_i (var_i + (mean_i - mean)^2) / n.
// An empty `into` (count 0) becomes `other`; an empty `other` changes nothing. Same number of
// channels.
void merge(Moments& into, const Moments& other);

// A layer's running statistics and how they advance by a window's merged statistics:
//   running = (1 - m) running + m merged, with the unbiased variance var n / (n - 1) for
//   running_var;
// m empty: the cumulative average, m = 1 / batches_tracked counted with this window.
struct RunningMoments {
  std::vector<double> mean;
  std::vector<double> var;
  int64_t batches_tracked = 0;
};
void advance(RunningMoments& running, const Moments& window, std::optional<double> momentum);

}  // namespace hybridsync
