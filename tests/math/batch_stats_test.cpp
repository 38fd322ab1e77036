// Merged batch statistics against those of all values at once.
#include "hybridsync/math/batch_stats.h"

#include <gtest/gtest.h>

#include <random>

namespace hybridsync {
namespace {

Moments moments_of(const std::vector<double>& x) {
  Moments m{double(x.size()), {0}, {0}};
  for (double v : x) m.mean[0] += v / m.count;
  for (double v : x) m.var[0] += (v - m.mean[0]) * (v - m.mean[0]) / m.count;
  return m;
}

std::vector<double> values(size_t n, double mean, double deviation, int seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal(mean, deviation);
  std::vector<double> x(n);
  for (double& v : x) v = normal(rng);
  return x;
}

TEST(BatchStats, UnevenPartsWithDifferentMeansGiveTheWhole) {
  std::vector<double> all;
  Moments merged{0, {0}, {0}};
  int seed = 0;
  for (size_t n : {2, 6, 1, 9, 4}) {
    const auto part = values(n, 10.0 * seed, 1, seed);
    ++seed;
    all.insert(all.end(), part.begin(), part.end());
    merge(merged, moments_of(part));
  }
  const Moments whole = moments_of(all);
  EXPECT_EQ(merged.count, 22);
  EXPECT_NEAR(merged.mean[0], whole.mean[0], 1e-12 * whole.mean[0]);
  EXPECT_NEAR(merged.var[0], whole.var[0], 1e-12 * whole.var[0]);
}

TEST(BatchStats, ALargeMeanDoesNotHideTheVariance) {
  const auto a = values(100, 1e6, 1, 1), b = values(300, 1e6 + 1, 1, 2);
  auto all = a;
  all.insert(all.end(), b.begin(), b.end());
  Moments merged = moments_of(a);
  merge(merged, moments_of(b));
  EXPECT_NEAR(merged.var[0], moments_of(all).var[0], 1e-8);
}

TEST(BatchStats, EmptyPartsChangeNothing) {
  const Moments m{3, {1, 2}, {3, 4}};
  Moments a = m, b{0, {9, 9}, {9, 9}};
  merge(a, b);
  EXPECT_EQ(a, m);
  merge(b, m);
  EXPECT_EQ(b, m);
}

TEST(BatchStats, RunningStatisticsAdvanceOnceWithTheUnbiasedVariance) {
  RunningMoments running{{1}, {2}, 5};
  advance(running, {4, {3}, {6}}, 0.1);
  EXPECT_DOUBLE_EQ(running.mean[0], 0.9 * 1 + 0.1 * 3);
  EXPECT_DOUBLE_EQ(running.var[0], 0.9 * 2 + 0.1 * 8);
  EXPECT_EQ(running.batches_tracked, 6);
}

TEST(BatchStats, NoMomentumIsTheCumulativeAverage) {
  RunningMoments running{{0}, {1}, 0};
  for (double mean : {3.0, 5.0, 10.0}) advance(running, {2, {mean}, {1}}, std::nullopt);
  EXPECT_NEAR(running.mean[0], 6, 1e-12);
  EXPECT_NEAR(running.var[0], 2, 1e-12);
}

TEST(BatchStats, AWindowWithoutCallsIsNoBatch) {
  RunningMoments running{{1}, {2}, 5};
  advance(running, {0, {7}, {7}}, 0.1);
  EXPECT_EQ(running.mean[0], 1);
  EXPECT_EQ(running.batches_tracked, 5);
}

}  // namespace
}  // namespace hybridsync
