// The self-tuned outer learning rate of a round: how far to follow a mean of contributions that are
// mostly noise and that codes held back.
//
// M contributions y_i that hold a common signal and noise of their own, and their mean y:
//   N   = mean |y_i|^2                                  signal and noise
//   S   = (M |y|^2 - N) / (M - 1)                       the signal alone, without bias
//   rho = S / N, both averaged over rounds
//   gain = 1.6 M rho / (1 + (M - 1) rho) / (energy kept up * energy kept down), from 0.3 to 4
// M rho / (1 + (M - 1) rho) is the Wiener factor of the common signal in the mean. Energy kept: of
// |u|^2, what its code decodes to, averaged over rounds as well. The factor was found by trial.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hybridsync {

// That an owner's averages go over; of its own rounds.
inline constexpr double kGainRounds = 42;

// A running mean over about `memory` values (1 or more), unbiased from the first one on.
class Smoothed {
 public:
  void add(double value, double memory);
  double value() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  bool empty() const { return weight_ == 0; }

 private:
  double sum_ = 0, weight_ = 0;
};

class Agreement {
 public:
  // A round with M > 1 contributions: |y|^2 and the mean |y_i|^2.
  void add(double squared_mean, double mean_square, size_t members);
  // From 0 (no common signal was found) to 1.
  double rho() const;

 private:
  Smoothed signal_, power_;
};

double self_tuned_gain(double rho, size_t members, double kept_up, double kept_down);

// A gain in 4 bits, with equal steps of its logarithm between 0.3 and 4: the nearest one; and back,
// the same bits on every machine.
inline constexpr int kGainBits = 4;
uint8_t gain_code(double gain);
double gain_of(uint8_t code);

}  // namespace hybridsync
