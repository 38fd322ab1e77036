// to_toml() and parse() are inverse, also for random configurations.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "hybridsync/config/load.h"

namespace hybridsync {
namespace {

Config again(const Config& config) { return parse(to_toml(config), config.source); }

TEST(RoundTrip, Defaults) { EXPECT_EQ(again(Config{}), Config{}); }

TEST(RoundTrip, IsReadable) {
  Config c;
  c.tiers.resize(2);
  c.tiers[1].name = "site";
  c.tiers[1].emulate = {100e6, 50e-3, 20e-3, "1"};
  const std::string text = to_toml(c);
  EXPECT_NE(text.find("[train]\nmodel = \"cnn\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("timeout = \"10 min\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("emulate.rate = \"100 Mbit/s\"\nemulate.rtt = \"50 ms\"\n"
                      "emulate.step = \"20 ms\"\nemulate.speeds = \"1\"\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("staleness = 0\ndeadline = \"none\"\nquorum = \"majority\"\n"
                      "late = \"fold\"\n"),
            std::string::npos)
      << text;
}

TEST(RoundTrip, TextsWithSpecialCharacters) {
  Config c;
  c.train.data = "a \"quoted\" \\ folder\twith\nall \x01 of it, \xc3\xa9";
  EXPECT_EQ(again(c).train.data, c.train.data);
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  double fraction() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  // Over many magnitudes; now and then zero.
  double positive() { return std::ldexp(fraction() + 0.5, static_cast<int>(below(60)) - 30); }
  template <class T>
  T one_of(std::vector<T> values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }

 private:
  std::mt19937_64 random_;
};

TrainConfig random_train(Dice& dice) {
  TrainConfig t;
  t.model = dice.one_of<std::string>({"cnn", "char-gpt"});
  t.data = dice.one_of<std::string>({"fashion-mnist", "../x y", "\"", "\\n"});
  t.optimizer = dice.one_of<std::string>({"sgd", "adam", "adamw"});
  t.lr = dice.positive();
  t.momentum = dice.fraction();
  t.weight_decay = dice.positive();
  t.micro_batch = 1 + dice.below(1000);
  t.steps = 1000 + dice.below(1000);
  t.evaluate_every = dice.below(10);
  t.evaluate_samples = dice.below(1000);
  t.seed = static_cast<uint64_t>(dice.below(int64_t{1} << 62));
  t.clip = dice.positive();
  t.threads = static_cast<int>(1 + dice.below(8));
  t.device = dice.one_of<std::string>({"auto", "cpu", "cuda", "cuda:3"});
  t.start_from = dice.one_of<std::string>({"", "runs/first", "a \"b\""});
  return t;
}

LearningRateConfig random_learning_rate(Dice& dice) {
  LearningRateConfig l;
  l.scaling = dice.one_of<LrScaling>({LrScaling::sqrt, LrScaling::linear, LrScaling::none});
  l.reference_batch = dice.positive();
  l.schedule =
      dice.one_of<LrSchedule>({LrSchedule::constant, LrSchedule::cosine, LrSchedule::step});
  l.warmup = dice.below(1000);
  l.decay_every = 1 + dice.below(100);
  l.decay_factor = dice.positive();
  l.final_factor = dice.fraction();
  return l;
}

TierConfig random_node(Dice& dice) {
  TierConfig t;
  t.size = static_cast<int>(1 + dice.below(8));
  t.group = dice.one_of<std::string>({"auto", "shm"});
  t.overlap = dice.one_of<Overlap>({Overlap::off, Overlap::backward, Overlap::next_window});
  t.bucket_bytes = 8 + dice.below(1 << 30);
  t.timeout = dice.positive() / 1000;
  return t;
}

void randomize_delay(TierConfig& tier, Dice& dice) {
  tier.strategy = Strategy::delayed;
  tier.staleness = static_cast<int>(dice.below(65));
  if (tier.staleness > 0) tier.deadline = dice.one_of<double>({0, 0.25, dice.positive() / 1000});
  tier.quorum =
      dice.one_of<int>({kQuorumMajority, kQuorumAll, static_cast<int>(1 + dice.below(tier.size))});
  tier.late = dice.one_of<Late>({Late::fold, Late::return_, Late::drop});
}

void randomize_speeds(TierConfig& tier, Dice& dice) {
  tier.emulate.step = dice.fraction() + 1e-3;
  for (int node = 0; node < tier.size; ++node) {
    tier.emulate.speeds += dice.one_of<std::string>({"1 ", "0.25 ", "1e2  "});
  }
}

TierConfig random_site(Dice& dice) {
  TierConfig t;
  t.name = "far-away_1";
  t.size = static_cast<int>(1 + dice.below(8));
  t.strategy = dice.one_of<Strategy>({Strategy::every_step, Strategy::periodic});
  t.every = 1 + dice.below(500);
  t.outer = {dice.positive(), dice.fraction() / 2 + 0.25, dice.below(2) == 1};
  t.emulate = {dice.positive(), dice.fraction() * dice.one_of<double>({1e-3, 1, 3600})};
  if (dice.below(2)) randomize_delay(t, dice);
  if (dice.below(2)) randomize_speeds(t, dice);
  t.fragment_bytes = 8 + dice.below(1 << 30);
  return t;
}

Config random_config(uint64_t seed) {
  Dice dice(seed);
  Config c;
  c.source = "random.toml";
  c.train = random_train(dice);
  c.accumulate = {1 + dice.below(16),
                  dice.one_of<Weighting>({Weighting::samples, Weighting::mean_of_means})};
  c.batch_norm = {
      dice.one_of<RunningStats>({RunningStats::per_window, RunningStats::per_micro_batch}),
      dice.one_of<StatsAtSync>({StatsAtSync::merge, StatsAtSync::first, StatsAtSync::none})};
  c.learning_rate = random_learning_rate(dice);
  c.start.every_step = dice.below(100);
  const int64_t tiers = dice.below(3);
  if (tiers > 0) c.tiers.push_back(random_node(dice));
  if (tiers > 1) c.tiers.push_back(random_site(dice));
  if (dice.below(2)) c.train.ranks = c.ranks();
  c.record = {dice.one_of<std::string>({"runs", "/a/b"}), dice.one_of<std::string>({"", "one"})};
  return c;
}

TEST(RoundTrip, RandomConfigurations) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Config c = random_config(seed);
    ASSERT_NO_THROW(validate(c)) << "seed " << seed;
    ASSERT_EQ(again(c), c) << "seed " << seed << "\n" << to_toml(c);
  }
}

}  // namespace
}  // namespace hybridsync
