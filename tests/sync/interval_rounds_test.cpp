// Rounds whose interval adapts: every rank of every node has the same K for the same version, and
// they stay in step. Real threads, real sockets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "tests/sync/vector_replica.h"

namespace hybridsync {
namespace {

constexpr int64_t kSteps = 60;
constexpr size_t kParameters = 40;  // in three fragments

Config adaptive(Adapt adapt, int64_t every = 2, int64_t most = 16) {
  Config config = two_tiers(2, 3, Strategy::periodic, every);
  TierConfig& tier = config.tiers[1];
  tier.adapt = adapt;
  tier.every_max = most;
  tier.fragment_bytes = 64;
  config.train.steps = kSteps;
  return config;
}

// What a rank saw.
struct Seen {
  std::vector<float> theta;
  std::map<int64_t, int64_t> interval;    // by rounds so far
  std::vector<int64_t> at;                // steps with a round
  std::vector<double> drift;              // of these
  std::vector<std::vector<float>> after;  // them, the parameters
};
struct World {
  std::vector<Seen> ranks;
  std::vector<std::string> changes;  // as reported, by whichever node
};

// Ranks pull towards targets of their own, ever more weakly; `steps` each, or until all nodes have
// had so many samples.
World train(const Config& config, int64_t steps, int64_t samples = 0) {
  World world;
  world.ranks.resize(static_cast<size_t>(config.ranks()));
  std::mutex mutex;
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, kParameters, {});
    Seen& seen = world.ranks[static_cast<size_t>(e.rank)];
    seen.interval[0] = rank.sync.interval();
    for (int64_t step = 1; samples > 0 ? rank.sync.samples() < samples : step <= steps; ++step) {
      if (samples > 0) rank.sync.pad();
      const int64_t before = rank.sync.rounds();
      const auto record =
          rank.step(0.02f * static_cast<float>(1 + e.node) / static_cast<float>(1 + step / 8), 8);
      seen.interval[rank.sync.rounds()] = rank.sync.interval();
      if (rank.sync.rounds() == before) continue;
      seen.at.push_back(step);
      seen.drift.push_back(record->drift);
      seen.after.push_back(rank.replica.theta);
    }
    rank.finish();
    seen.theta = rank.replica.theta;
    const std::lock_guard lock(mutex);
    for (const Report& report : rank.sync.reports())
      if (report.kind == Report::Kind::interval) world.changes.push_back(report.text);
  });
  return world;
}

// Equal K for equal versions, equal numbers in the end; gives the different Ks.
std::vector<int64_t> agreed(const World& world) {
  std::map<int64_t, int64_t> all;
  for (const Seen& seen : world.ranks) {
    EXPECT_EQ(seen.theta, world.ranks[0].theta);
    for (const auto& [version, k] : seen.interval)
      EXPECT_EQ(all.emplace(version, k).first->second, k) << "version " << version;
  }
  std::vector<int64_t> ks;
  for (const auto& [version, k] : all)
    if (ks.empty() || ks.back() != k) ks.push_back(k);
  return ks;
}

// Where every round waits for everybody: K steps between two rounds, and one model after each.
void expect_in_step(const World& world) {
  for (const Seen& seen : world.ranks) {
    EXPECT_EQ(seen.at, world.ranks[0].at);
    EXPECT_EQ(seen.after, world.ranks[0].after);
    for (size_t i = 0; i < seen.at.size(); ++i)
      EXPECT_EQ(seen.at[i] - (i > 0 ? seen.at[i - 1] : 0),
                seen.interval.at(static_cast<int64_t>(i)));
  }
}

TEST(IntervalRounds, AreWhereTheRuleSays) {
  const World world = train(adaptive(Adapt::grow), kSteps + 4);
  EXPECT_EQ(agreed(world), (std::vector<int64_t>{2, 4, 8, 16}));
  expect_in_step(world);
  const std::vector<int64_t> expected = {2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64};
  for (const Seen& seen : world.ranks) EXPECT_EQ(seen.at, expected);
  ASSERT_EQ(world.changes.size(), 3u) << "the owner of the first fragment says it, once";
  EXPECT_EQ(world.changes[0], "K = 4, was 2: 26.7 % of training are done");
}

TEST(IntervalRounds, FollowTheLearningRateAfterASynchronousStart) {
  Config config = adaptive(Adapt::qsr);
  config.start.every_step = 3;
  config.learning_rate.schedule = LrSchedule::cosine;
  const World world = train(config, kSteps);
  const std::vector<int64_t> ks = agreed(world);
  ASSERT_GT(ks.size(), 3u);
  EXPECT_EQ(ks[0], 1) << "of the start";
  EXPECT_EQ(ks[1], 2);
  EXPECT_EQ(ks.back(), 16);
  EXPECT_TRUE(std::any_of(ks.begin() + 1, ks.end(), [](int64_t k) { return k % 2 == 1; }));
  expect_in_step(world);
}

TEST(IntervalRounds, FollowTheDrift) {
  const World world = train(adaptive(Adapt::divergence, 4, 64), 200);
  const std::vector<int64_t> ks = agreed(world);
  ASSERT_GT(ks.size(), 1u);
  EXPECT_EQ(ks[1], 8);
  expect_in_step(world);
  // Each number moves by 0.5 * 4 * 0.02 * (1 + node) from 1.
  EXPECT_NEAR(world.ranks[0].drift[0], 0.04 * std::sqrt(2.0 / 3), 1e-6);
  for (const Seen& seen : world.ranks) EXPECT_EQ(seen.drift, world.ranks[0].drift);
}

TEST(IntervalRounds, FollowTheLoss) {
  for (const Adapt rule : {Adapt::loss, Adapt::adacomm}) {
    Config config = adaptive(rule, 8, 32);
    const World world = train(config, 300);
    EXPECT_GT(agreed(world).size(), 1u) << static_cast<int>(rule);
    expect_in_step(world);
  }
}

TEST(IntervalRounds, AreEqualWhereNodesLag) {
  for (const Adapt rule : {Adapt::grow, Adapt::divergence, Adapt::adacomm}) {
    Config config = adaptive(rule, 4, 16);
    TierConfig& tier = config.tiers[1];
    tier.strategy = Strategy::delayed;
    tier.staleness = 2;
    tier.emulate.step = 0.001;
    tier.emulate.speeds = "1 1 0.4";
    config.train.steps = 100;
    const World world = train(config, 0, 100 * 8 * config.ranks());
    EXPECT_GT(agreed(world).size(), 1u) << static_cast<int>(rule);
  }
}

}  // namespace
}  // namespace hybridsync
