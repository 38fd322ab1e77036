// The self-tuned gain finds the share of a common signal, and travels in 4 bits.
#include "hybridsync/math/gain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hybridsync {
namespace {

TEST(Smoothed, IsTheMeanOfTheFirstAndForgetsTheOldest) {
  Smoothed mean;
  EXPECT_TRUE(mean.empty());
  mean.add(4, 10);
  EXPECT_DOUBLE_EQ(mean.value(), 4);
  mean.add(2, 10);
  EXPECT_NEAR(mean.value(), (0.9 * 4 + 2) / 1.9, 1e-12);
  for (int i = 0; i < 200; ++i) mean.add(7, 10);
  EXPECT_NEAR(mean.value(), 7, 1e-6);
}

// M contributions of a common signal of energy `share` and independent noise of 1 - share.
double found_share(double share, size_t members) {
  constexpr size_t kCount = 20'000;
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  Agreement agreement;
  double squared_mean = 0, square = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const double signal = std::sqrt(share) * normal(random);
    double sum = 0;
    for (size_t m = 0; m < members; ++m) {
      const double y = signal + std::sqrt(1 - share) * normal(random);
      sum += y;
      square += y * y / static_cast<double>(members);
    }
    squared_mean += sum * sum / static_cast<double>(members * members);
  }
  agreement.add(squared_mean, square, members);
  return agreement.rho();
}

TEST(Agreement, IsTheShareOfTheCommonSignal) {
  for (double share : {0.0, 0.05, 0.3, 1.0}) {
    EXPECT_NEAR(found_share(share, 4), share, 0.02);
    EXPECT_NEAR(found_share(share, 16), share, 0.02);
  }
}

TEST(Agreement, FollowsWhatChanges) {
  Agreement agreement;
  EXPECT_EQ(agreement.rho(), 0) << "nothing is known";
  for (int i = 0; i < 100; ++i) agreement.add(1, 1, 4);
  EXPECT_NEAR(agreement.rho(), 1, 1e-12);
  for (int i = 0; i < 500; ++i) agreement.add(0.25, 1, 4);
  EXPECT_NEAR(agreement.rho(), 0, 1e-4) << "noise alone";
}

TEST(Gain, IsTheWienerFactorOverTheEnergyKept) {
  EXPECT_DOUBLE_EQ(self_tuned_gain(0.1, 4, 0.8, 0.9), 1.6 * 0.4 / 1.3 / 0.72);
  EXPECT_EQ(self_tuned_gain(0, 4, 0.3, 0.3), 0.3) << "no common signal";
  EXPECT_EQ(self_tuned_gain(1, 4, 0.3, 0.3), 4);
  EXPECT_EQ(self_tuned_gain(0.5, 4, 0, 0), 4) << "a code that keeps nothing";
}

TEST(Gain, TravelsIn4Bits) {
  EXPECT_EQ(gain_code(0.3), 0);
  EXPECT_EQ(gain_code(4), 15);
  EXPECT_NEAR(gain_of(15), 4, 1e-12);
  for (double gain = 0.3; gain <= 4; gain *= 1.01) {
    EXPECT_LT(gain_code(gain), 16);
    EXPECT_NEAR(std::log(gain_of(gain_code(gain)) / gain), 0, std::log(1.1884911) / 2 + 1e-9);
  }
}

}  // namespace
}  // namespace hybridsync
