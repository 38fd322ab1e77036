#include "hybridsync/math/gain.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hybridsync {
namespace {

constexpr double kLeast = 0.3, kMost = 4;
constexpr double kScale = 1.6;
constexpr double kLeastKept = 1e-3;  // a code that kept nothing says nothing
constexpr int kCodes = 1 << kGainBits;
constexpr double kRatio = 1.1884910504840276;  // (kMost / kLeast)^(1 / 15)

// By multiplication: a library's exp would differ between machines.
std::array<double, kCodes> gains() {
  std::array<double, kCodes> all;
  all[0] = kLeast;
  for (size_t i = 1; i < all.size(); ++i) all[i] = all[i - 1] * kRatio;
  return all;
}

}  // namespace

void Smoothed::add(double value, double memory) {
  const double fresh = 1 / std::max(1.0, memory);
  sum_ += fresh * (value - sum_);
  weight_ += fresh * (1 - weight_);
}

void Agreement::add(double squared_mean, double mean_square, size_t members) {
  const double m = static_cast<double>(members);
  signal_.add((m * squared_mean - mean_square) / (m - 1), kGainRounds);
  power_.add(mean_square, kGainRounds);
}

double Agreement::rho() const {
  return power_.value() > 0 ? std::clamp(signal_.value() / power_.value(), 0.0, 1.0) : 0;
}

double self_tuned_gain(double rho, size_t members, double kept_up, double kept_down) {
  const double m = static_cast<double>(members);
  const double wiener = m * rho / (1 + (m - 1) * rho);
  const double kept = std::max(kLeastKept, kept_up * kept_down);
  return std::clamp(kScale * wiener / kept, kLeast, kMost);
}

uint8_t gain_code(double gain) {
  const double step = std::log(gain / kLeast) / std::log(kRatio);
  return static_cast<uint8_t>(std::clamp<double>(std::round(step), 0, kCodes - 1));
}

double gain_of(uint8_t code) {
  static const auto all = gains();
  return all[code % kCodes];
}

}  // namespace hybridsync
