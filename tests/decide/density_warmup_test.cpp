#include "hybridsync/decide/density_warmup.h"

#include <gtest/gtest.h>

namespace hybridsync {
namespace {

CodecOptions falling(double density, int64_t rounds) {
  CodecOptions options;
  options.kind = CodecKind::top_k;
  options.density = density;
  options.density_warmup = rounds;
  return options;
}

std::vector<double> rounds(const CodecOptions& options, int64_t count) {
  std::vector<double> densities;
  for (int64_t round = 0; round < count; ++round)
    densities.push_back(density_after(options, round));
  return densities;
}

using D = std::vector<double>;

TEST(DensityWarmup, FallsByFoursInStagesOfEqualLength) {
  EXPECT_EQ(warmup_densities(falling(0.01, 6)), (D{0.25, 0.0625, 0.015625}));
  EXPECT_EQ(rounds(falling(0.01, 6), 8),
            (D{0.25, 0.25, 0.0625, 0.0625, 0.015625, 0.015625, 0.01, 0.01}));
  EXPECT_EQ(density_after(falling(0.01, 6), int64_t{1} << 60), 0.01);
}

TEST(DensityWarmup, StagesOfUnequalLengthDifferByOneRound) {
  EXPECT_EQ(rounds(falling(0.02, 5), 6), (D{0.25, 0.25, 0.25, 0.0625, 0.0625, 0.02}));
}

TEST(DensityWarmup, IsNeverBelowTheDensity) {
  EXPECT_EQ(rounds(falling(0.0625, 4), 5), (D{0.25, 0.25, 0.25, 0.25, 0.0625}))
      << "1/16 is what it ends with, not a stage";
  EXPECT_EQ(rounds(falling(0.25, 4), 2), (D{0.25, 0.25}));
  EXPECT_EQ(rounds(falling(0.5, 4), 2), (D{0.5, 0.5}));
}

TEST(DensityWarmup, FewerRoundsThanStagesLeaveSomeOut) {
  EXPECT_EQ(rounds(falling(0.001, 2), 3), (D{0.25, 0.015625, 0.001}));
}

TEST(DensityWarmup, OffIsOff) {
  EXPECT_TRUE(warmup_densities(falling(0.01, 0)).empty());
  EXPECT_EQ(rounds(falling(0.01, 0), 2), (D{0.01, 0.01}));
}

TEST(DensityWarmup, HoldsForAnyNumberOfRounds) {
  const int64_t most = int64_t{1} << 40;
  EXPECT_EQ(density_after(falling(1e-300, most), most - 1),
            warmup_densities(falling(1e-300, 1)).back());
}

}  // namespace
}  // namespace hybridsync
