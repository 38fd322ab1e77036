// The rules by which K changes, each against a twin or numbers by hand.
#include "hybridsync/decide/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace hybridsync {
namespace {

Schedule schedule(Adapt rule, int64_t every = 8, int64_t least = 1, int64_t most = 64) {
  return {Strategy::periodic, 0, every, 0, {rule, least, most, 100}};
}

// Rounds in a row: what a rule makes of them, and what it says.
struct Course {
  explicit Course(const Schedule& schedule) : interval(schedule), k(schedule.every) {}

  int64_t round(RoundFacts facts) {
    facts.interval = k;
    facts.total_samples = samples += 10 * k;
    const Wish wish = interval.next(facts);
    EXPECT_EQ(wish.why.empty(), wish.interval == k) << wish.why;
    if (!wish.why.empty()) said = wish.why, all_said += wish.why + "\n";
    if (!wish.warning.empty()) warnings.push_back(wish.warning);
    return k = wish.interval;
  }
  int64_t of_loss(double loss) {
    RoundFacts facts;
    facts.loss = loss;
    return round(facts);
  }
  int64_t of_drift(double drift, std::optional<double> loss = {}, double lr = 0) {
    RoundFacts facts;
    facts.drift = drift;
    facts.loss = loss;
    facts.lr = lr;
    return round(facts);
  }

  Interval interval;
  int64_t k;
  int64_t samples = 0;
  std::string said, all_said;
  std::vector<std::string> warnings;
};

Contribution delta(double weight, double squared_norm, int64_t samples = 10, int64_t steps = 5) {
  Contribution c;
  c.weight = weight;
  c.squared_norm = squared_norm;
  c.samples = samples;
  c.steps = steps;
  return c;
}

TEST(RoundFacts, DriftIsTheDistanceFromTheMean) {
  // (3, 4) and (0, 0): 2.5 from their mean, before an anchor of length 5.
  EXPECT_DOUBLE_EQ(*drift({delta(1, 25), delta(1, 0)}, {6.25, 25}), 0.5);
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  const double weights[] = {1, 2, 5}, total = 8;
  double d[3][7], mean_norm = 0, apart = 0;
  std::vector<Contribution> all;
  for (int i = 0; i < 3; ++i) {
    double square = 0;
    for (double& x : d[i]) x = normal(random), square += x * x;
    all.push_back(delta(weights[i], square));
  }
  all.push_back(delta(0, 1e9));  // abstains
  for (int j = 0; j < 7; ++j) {
    double mean = 0;
    for (int i = 0; i < 3; ++i) mean += weights[i] / total * d[i][j];
    mean_norm += mean * mean;
    for (int i = 0; i < 3; ++i) apart += weights[i] / total * (d[i][j] - mean) * (d[i][j] - mean);
  }
  EXPECT_NEAR(*drift(all, {mean_norm, 9}), std::sqrt(apart) / 3, 1e-12);
}

TEST(RoundFacts, DriftNeedsTwoDeltasAndNorms) {
  EXPECT_FALSE(drift({delta(1, 25), delta(0, 0)}, {25, 25}));
  EXPECT_FALSE(drift({delta(1, 25), delta(1, 25)}, {}));
  EXPECT_EQ(*drift({delta(1, 25), delta(1, 25)}, {25.001, 25}), 0) << "rounding";
}

TEST(RoundFacts, AreOfTheRoundAndTheLineage) {
  Lineage lineage;
  lineage.interval = 5;
  lineage.total_samples = 80;
  Contribution a = delta(10, 1), b = delta(20, 1, 20, 5);
  a.loss_sum = 30, a.loss_weight = 10, a.lr = 0.3;
  b.loss_sum = 90, b.loss_weight = 20, b.lr = 0.1;
  const RoundFacts f = facts_of({a, b}, lineage, {}, 2, 20);
  EXPECT_EQ(f.interval, 5);
  EXPECT_EQ(f.total_samples, 110);
  EXPECT_EQ(*f.loss, 4);
  EXPECT_EQ(f.lr, 0.3);
  EXPECT_DOUBLE_EQ(f.progress, 110.0 / (2 * 20 * 3)) << "3 samples in a step";
  const RoundFacts nothing = facts_of({}, lineage, {}, 2, 20);
  EXPECT_FALSE(nothing.loss || nothing.drift);
  EXPECT_EQ(nothing.progress, 0);
}

TEST(Smooth, IsTheMeanAndThenFollows) {
  Smooth s;
  for (double x : {1.0, 2.0, 3.0}) s.add(x);
  EXPECT_FALSE(s.full());
  s.add(4);
  EXPECT_TRUE(s.full());
  EXPECT_DOUBLE_EQ(s.value(), 2.5);
  s.add(6.5);
  EXPECT_DOUBLE_EQ(s.value(), 3.5);
}

// The bound by the normal equations, with sums of powers instead of centred ones.
double bound_of(const std::vector<double>& x, const std::vector<double>& y) {
  double n = 8, sx = 0, sy = 0, sxx = 0, sxy = 0, rest = 0, far = 0;
  for (int i = 0; i < 8; ++i) sx += x[i], sy += y[i], sxx += x[i] * x[i], sxy += x[i] * y[i];
  const double b = (n * sxy - sx * sy) / (n * sxx - sx * sx), a = (sy - b * sx) / n;
  for (int i = 0; i < 8; ++i) rest += std::pow(y[i] - a - b * x[i], 2);
  for (int i = 8; i < 12; ++i) far += x[i] / 4;
  const double end = a + b * x[7], fall = std::max(0.0, end - (a + b * far));
  const double e = std::sqrt(rest / 6 * (0.375 + std::pow(far - sx / n, 2) / (sxx - sx * sx / n)));
  return end - fall / 2 + 2 * e;
}

TEST(LossTrend, IsARegressionOverTheLogarithmOfTheSamples) {
  std::mt19937 random(2);
  std::normal_distribution<double> noise(0, 0.1);
  LossTrend trend;
  std::vector<double> x, y;
  for (int64_t round = 1; round <= 60; ++round) {
    const int64_t samples = 100 * round * round;
    x.push_back(std::log(double(samples)));
    y.push_back(5 - 0.3 * x.back() + noise(random));
    trend.add(samples, y.back());
    const auto found = trend.finding();
    if (round < 12) {
      EXPECT_EQ(found.verdict, LossTrend::Verdict::unknown);
      continue;
    }
    const std::vector<double> last_x(x.end() - 12, x.end()), last_y(y.end() - 12, y.end());
    EXPECT_NEAR(found.bound, bound_of(last_x, last_y), 1e-9) << round;
    EXPECT_NEAR(found.loss, (last_y[8] + last_y[9] + last_y[10] + last_y[11]) / 4, 1e-12);
    EXPECT_EQ(found.verdict == LossTrend::Verdict::behind, found.loss > found.bound);
  }
}

TEST(LossTrend, ASlowerFallKeepsUpAndAStandstillDoesNot) {
  LossTrend power, halves, stops;
  for (int64_t round = 1; round <= 40; ++round) {
    power.add(100 * round, std::pow(100 * round, -0.3));
    halves.add(100 * round, 1 + std::pow(0.8, round));
    if (round >= 12) {
      EXPECT_EQ(power.finding().verdict, LossTrend::Verdict::keeps_up) << round;
      EXPECT_EQ(halves.finding().verdict, LossTrend::Verdict::keeps_up) << round;
    }
    stops.add(100 * round, 5 - 0.1 * std::log(100 * std::min<int64_t>(round, 20)));
  }
  LossTrend at_once;
  for (int64_t round = 1; round <= 24; ++round)
    at_once.add(100 * round, 5 - std::log(100 * std::min<int64_t>(round, 20)));
  EXPECT_EQ(at_once.finding().verdict, LossTrend::Verdict::behind);
  EXPECT_EQ(stops.finding().verdict, LossTrend::Verdict::keeps_up) << "the trend is flat by now";
  at_once.add(2400, -100);
  EXPECT_EQ(at_once.finding().verdict, LossTrend::Verdict::behind) << "no samples, no round";
}

TEST(Interval, OffNeverChanges) {
  Course run(schedule(Adapt::off, 500));
  for (int i = 0; i < 30; ++i) EXPECT_EQ(run.of_drift(1.0 / (i + 1), 1.0 / (i + 1), 0.1), 500);
}

TEST(GrowInterval, DoublesAtEqualPartsOfTraining) {
  const std::pair<double, int64_t> expected[] = {{0, 4},     {0.249, 4}, {0.25, 8}, {0.5, 16},
                                                 {0.74, 16}, {0.75, 32}, {1, 32},   {1.3, 32}};
  Course run(schedule(Adapt::grow, 4, 1, 32)), uneven(schedule(Adapt::grow, 4, 1, 24));
  for (const auto& [progress, k] : expected) {
    RoundFacts facts;
    facts.progress = progress;
    EXPECT_EQ(run.round(facts), k) << progress;
    EXPECT_EQ(uneven.round(facts), std::min<int64_t>(k, 24)) << progress;
  }
  RoundFacts back;
  back.progress = 0.1;
  EXPECT_EQ(run.round(back), 32) << "never shrinks";
  EXPECT_EQ(run.said, "K = 32, was 16: 75 % of training are done");
}

TEST(QsrInterval, IsTheInverseSquareOfTheLearningRate) {
  Course run(schedule(Adapt::qsr, 4, 2, 100));
  const std::pair<double, int64_t> expected[] = {{0.1, 4},  {0.2, 4},  {0.4, 4},
                                                 {0.2, 16}, {0, 16},   {0.15, 28},
                                                 {0.4, 4},  {0.1, 64}, {0.01, 100}};
  for (const auto& [lr, k] : expected) {
    RoundFacts facts;
    facts.lr = lr;
    EXPECT_EQ(run.round(facts), k) << lr;
  }
  EXPECT_EQ(run.said, "K = 100, was 64: the learning rate is 0.025 of its peak");
}

TEST(AdacommInterval, IsTheRootOfTheLoss) {
  Course run(schedule(Adapt::adacomm, 10, 4, 12));
  std::vector<double> losses = {9, 7, 8, 8, 8, 6, 4, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 50, 50};
  double smooth = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    smooth = i < 4 ? (smooth * double(i) + losses[i]) / double(i + 1)
                   : smooth + (losses[i] - smooth) / 4;
    const double twin = i < 3 ? 10 : std::ceil(std::sqrt(smooth / 8) * 10);
    EXPECT_EQ(run.of_loss(losses[i]), int64_t(std::clamp(twin, 4.0, 12.0))) << i;
  }
  EXPECT_EQ(run.k, 12);
  EXPECT_EQ(run.of_loss(-1e6), 12) << "has no root";
}

// Drift of c sqrt(K), where c falls as training calms down.
TEST(DivergenceInterval, KGrowsAsTrainingCalmsDown) {
  Course run(schedule(Adapt::divergence, 8, 1, 64));
  int64_t k = 8, count = 0;
  double smooth = 0, target = 0;
  for (int round = 0; round < 200; ++round) {
    const double drift = std::exp(-round / 60.0) * std::sqrt(double(k));
    ++count;
    smooth += (drift - smooth) / std::min<double>(4, double(count));
    if (target == 0 && count == 4) target = smooth;
    const int64_t before = k;
    if (count >= 4 && smooth < 0.7 * target) k = std::min<int64_t>(64, 2 * k);
    if (count >= 4 && smooth > 1.4 * target) k = std::max<int64_t>(1, k / 2);
    if (k != before) count = 0, smooth = 0;
    EXPECT_EQ(run.of_drift(drift), k) << round;
  }
  EXPECT_EQ(k, 64);
  EXPECT_TRUE(run.warnings.empty());
}

TEST(DivergenceInterval, HalvesWhereNodesDriftApartAndSaysWhy) {
  Course run(schedule(Adapt::divergence, 8, 4, 64));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(run.of_drift(0.1), 8);
  EXPECT_EQ(run.of_drift(0.25), 8) << "smoothed 1.375 times";
  EXPECT_EQ(run.of_drift(0.2), 4);
  EXPECT_EQ(run.said, "K = 4, was 8: nodes drift 1.53 times their target of 0.1");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(run.of_drift(0.2), 4) << "the bound";
}

TEST(DivergenceInterval, AWarmUpDoesNotCountForTheTarget) {
  Course run(schedule(Adapt::divergence));
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(run.of_drift(0.01 * i, {}, 0.001 * i), 8);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(run.of_drift(0.2, {}, 0.02), 8) << i;
}

TEST(DivergenceInterval, StaleParametersAreSaidOncePerExcursion) {
  Course run(schedule(Adapt::divergence, 16, 16, 16));
  for (int i = 0; i < 4; ++i) (void)run.of_drift(0.1);
  for (int i = 0; i < 9; ++i) (void)run.of_drift(0.19);
  ASSERT_EQ(run.warnings.size(), 0u);
  for (int i = 0; i < 9; ++i) (void)run.of_drift(0.25);
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_EQ(run.warnings[0],
            "K = 16: nodes drift 2.12 times their target, parameters are stale; try 8");
  for (int i = 0; i < 9; ++i) (void)run.of_drift(0.1);
  for (int i = 0; i < 9; ++i) (void)run.of_drift(0.4);
  EXPECT_EQ(run.warnings.size(), 2u);
  EXPECT_EQ(run.k, 16);
}

TEST(DivergenceInterval, TheLossIsAGuard) {
  Course run(schedule(Adapt::divergence, 8, 2, 64)), free(schedule(Adapt::divergence, 8, 2, 64));
  const auto loss = [](int round) { return 5 - std::log(std::min(round, 14)); };
  std::vector<int64_t> with, without;
  for (int round = 1; round <= 24; ++round) {
    const double drift = round <= 16 ? 0.1 : 0.01;
    with.push_back(run.of_drift(drift, loss(round)));
    without.push_back(free.of_drift(drift));
  }
  EXPECT_EQ(with[14], 8);
  EXPECT_EQ(*std::max_element(with.begin(), with.end()), 8) << "it must not grow";
  EXPECT_EQ(*std::min_element(with.begin(), with.end()), 4) << "and shrinks where that lasts";
  EXPECT_EQ(run.all_said.find("K = 4, was 8: the loss has been behind its trend for 4 rounds"), 0u)
      << run.all_said;
  EXPECT_GT(without.back(), 8);
}

TEST(LossInterval, DoublesWhileTheLossKeepsUpAndHalvesWhenItFallsBehind) {
  Course run(schedule(Adapt::loss, 4, 2, 32));
  std::vector<int64_t> ks;
  for (int round = 1; round <= 30; ++round)
    ks.push_back(run.of_loss(6 - 0.5 * std::log(double(run.samples + 10 * run.k))));
  // 12 rounds to know the trend, the last of them is the first of three.
  const std::vector<int64_t> first(ks.begin(), ks.begin() + 21);
  std::vector<int64_t> expected(13, 4);
  expected.insert(expected.end(), {8, 8, 8, 16, 16, 16, 32, 32});
  EXPECT_EQ(first, expected);
  EXPECT_EQ(run.said, "K = 32, was 16: the loss has kept up with its trend for 3 rounds");
  const double last = 6 - 0.5 * std::log(double(run.samples));
  ks.clear();
  for (int round = 0; round < 8; ++round) ks.push_back(run.of_loss(last + 1));
  EXPECT_EQ(ks.front(), 16) << "at once";
  EXPECT_EQ(std::vector<int64_t>(ks.begin(), ks.begin() + 4), (std::vector<int64_t>(4, 16)))
      << "the next look at the new K takes 4 rounds";
  EXPECT_NE(run.all_said.find("K = 16, was 32: the loss is "), std::string::npos) << run.all_said;
}

TEST(LossInterval, NoiseIsNoReason) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.2);
  Course run(schedule(Adapt::loss, 4, 1, 64));
  int halved = 0;
  for (int round = 1; round <= 200; ++round) {
    const int64_t before = run.k;
    if (run.of_loss(6 - 0.3 * std::log(double(run.samples + 10 * run.k)) + noise(random)) < before)
      ++halved;
  }
  EXPECT_LE(halved, 6);
  EXPECT_GE(run.k, 32);
}

TEST(Interval, StaysWithinItsBounds) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> any(0, 1);
  for (const Adapt rule :
       {Adapt::divergence, Adapt::loss, Adapt::grow, Adapt::qsr, Adapt::adacomm}) {
    Course run(schedule(rule, 5, 3, 17));
    std::set<int64_t> seen;
    for (int round = 0; round < 400; ++round) {
      RoundFacts facts;
      facts.progress = round / 400.0;
      facts.loss = 0.1 + any(random) * (round / 40 % 2 + 0.2);
      facts.drift = any(random) * (round / 40 % 2 + 0.2);
      facts.lr = any(random);
      seen.insert(run.round(facts));
    }
    EXPECT_GE(*seen.begin(), 3);
    EXPECT_LE(*seen.rbegin(), 17);
    EXPECT_GT(seen.size(), 1u);
  }
}

TEST(Interval, IsAValue) {
  for (const Adapt rule :
       {Adapt::divergence, Adapt::loss, Adapt::grow, Adapt::qsr, Adapt::adacomm}) {
    Course run(schedule(rule));
    for (int i = 1; i <= 6; ++i) (void)run.of_drift(0.1, 1.0 / i, 0.1);
    Course copy = run;
    EXPECT_EQ(copy.interval, run.interval);
    for (int i = 1; i <= 30; ++i)
      EXPECT_EQ(copy.of_drift(0.1 / i, 1.0 / i, 0.1 / i), run.of_drift(0.1 / i, 1.0 / i, 0.1 / i));
    EXPECT_EQ(copy.interval, run.interval);
  }
}

}  // namespace
}  // namespace hybridsync
