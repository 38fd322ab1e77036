// Nodes that need not wait for each other: real threads, real sockets, steps padded by sleeping.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <thread>

#include "hybridsync/math/hash.h"
#include "tests/sync/vector_replica.h"

namespace hybridsync {
namespace {

Config delayed(int ranks, int nodes, int staleness, int64_t every) {
  Config config = two_tiers(ranks, nodes, Strategy::delayed, every);
  config.tiers[1].staleness = staleness;
  config.tiers[1].fragment_bytes = 64;
  return config;
}

// What is left of a rank when it has finished.
struct End {
  std::vector<float> theta;
  StepRecord last;
  int64_t samples = 0;
  int64_t own_steps = 0;
};

// Every rank trains until all nodes together have had so many samples; each node pulls towards a
// target of its own.
std::vector<End> train(
    const Config& config, int64_t samples,
    const std::function<void(TestRank&)>& after_step = [](TestRank&) {}, size_t parameters = 40) {
  std::vector<End> ends(static_cast<size_t>(config.ranks()));
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, parameters, {});
    End& end = ends[static_cast<size_t>(e.rank)];
    rank.on_record = [&](const StepRecord& r) { end.last = r; };
    while (rank.sync.samples() < samples) {
      rank.sync.pad();
      (void)rank.step(0.01f * static_cast<float>(1 + e.node), 8);
      after_step(rank);
      ++end.own_steps;
    }
    rank.finish();
    end.theta = rank.replica.theta;
    end.samples = rank.sync.samples();
  });
  return ends;
}

void expect_balanced(const std::vector<End>& ends, const Config& config) {
  int64_t applied = 0, trained = 0;
  for (const End& end : ends) {
    EXPECT_EQ(end.theta, ends[0].theta);
    EXPECT_EQ(end.samples, ends[0].samples);
  }
  for (size_t r = 0; r < ends.size(); r += static_cast<size_t>(config.ranks_per_node())) {
    const LedgerRecord& l = ends[r].last.ledger;
    EXPECT_EQ(l.contributed, l.applied + l.returned + l.dropped) << "node " << r;
    EXPECT_EQ(l.mismatches, 0);
    EXPECT_EQ(l.lost, 0);
    EXPECT_LE(l.ages.size(), static_cast<size_t>(config.tiers[1].staleness) + 1);
    EXPECT_EQ(std::accumulate(l.ages.begin(), l.ages.end(), int64_t{0}), l.applied);
    applied += l.samples_applied;
  }
  for (const End& end : ends) trained += 8 * end.own_steps;
  const int64_t fragments = 3;  // of 40 numbers in pieces of 16
  EXPECT_EQ(ends[0].samples, trained) << "every sample is counted once";
  EXPECT_EQ(applied, fragments * trained) << "and applied once in every fragment";
}

TEST(Delayed, ASlowNodeIsNotWaitedForAndNothingIsLost) {
  Config config = delayed(1, 4, 2, 4);
  config.tiers[1].emulate.step = 0.004;
  config.tiers[1].emulate.speeds = "1 1 1 0.25";
  const auto ends = train(config, 8 * 4 * 100);
  expect_balanced(ends, config);
  EXPECT_GT(ends[0].own_steps, 2 * ends[3].own_steps);
}

// What is waited for is taken: a contribution that was in time for its node is in time for its
// round.
TEST(Delayed, ANodeThatIsSlowerThanAWholeRoundIsWaitedForAndTaken) {
  for (const int staleness : {1, 2, 3}) {
    Config config = delayed(1, 3, staleness, 2);
    config.tiers[1].emulate.step = 0.002;
    config.tiers[1].emulate.speeds = "1 1 0.05";
    int64_t before_the_end = 0;
    const auto ends = train(config, 8 * 3 * 60, [&](TestRank& rank) {
      if (rank.node == 2) before_the_end = rank.sync.ledger().applied.contributions;
    });
    expect_balanced(ends, config);
    EXPECT_EQ(ends[2].last.ledger.returned, 0) << staleness;
    EXPECT_GT(before_the_end, 0) << staleness;
  }
}

// Otherwise it would only ever be given back.
TEST(Delayed, ANodeWhoseLateWorkComesBackIsWaitedForInTheEnd) {
  Config config = delayed(1, 2, 2, 2);
  config.tiers[1].late = Late::return_;
  config.tiers[1].emulate.step = 0.002;
  config.tiers[1].emulate.speeds = "1 0.2";
  int64_t before_the_end = 0;
  const auto ends = train(config, 8 * 2 * 100, [&](TestRank& rank) {
    if (rank.node == 1) before_the_end = rank.sync.ledger().applied.samples;
  });
  expect_balanced(ends, config);
  EXPECT_GT(before_the_end, 0);
}

TEST(Delayed, EveryNodesIdeaOfTheSamplesOfAllIsNearTheTruth) {
  for (const Late late : {Late::fold, Late::return_}) {
    Config config = delayed(1, 3, 2, 2);
    config.tiers[1].late = late;
    config.tiers[1].emulate.step = 0.003;
    config.tiers[1].emulate.speeds = "1 1 0.1";
    std::atomic<int64_t> trained = 0;
    // Everything that may be under way: s + 1 rounds of everybody.
    constexpr int64_t kUnderWay = 3 * 3 * 2 * 8;
    (void)train(config, 8 * 3 * 80, [&](TestRank& rank) {
      trained += 8;
      EXPECT_LE(rank.sync.samples(), trained + kUnderWay) << "node " << rank.node;
      EXPECT_GE(rank.sync.samples(), trained - 2 * kUnderWay) << "node " << rank.node;
    });
  }
}

TEST(Delayed, WhoStaysLongForTheOthersTellsItsNodeOnce) {
  Config config = delayed(2, 2, 1, 1);
  config.tiers[1].fragment_bytes = 8;
  std::vector<End> ends(4);
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 400, {});
    rank.on_record = [&](const StepRecord& r) { ends[static_cast<size_t>(e.rank)].last = r; };
    for (int step = 0; step < (e.node == 0 ? 120 : 2); ++step) (void)rank.step(0.01f, 8);
    rank.finish();
    ends[static_cast<size_t>(e.rank)].theta = rank.replica.theta;
  });
  for (const End& end : ends) EXPECT_EQ(end.theta, ends[0].theta);
}

TEST(Delayed, FragmentsMayBeManyAndSmall) {
  Config config = delayed(1, 2, 1, 2);
  config.tiers[1].fragment_bytes = 8;
  const auto ends = train(
      config, 8 * 2 * 8, [](TestRank&) {}, 3000);
  for (const End& end : ends) EXPECT_EQ(end.theta, ends[0].theta);
}

TEST(Delayed, ALaneMayHaveNothingToDo) {
  Config config = delayed(2, 2, 1, 2);
  config.tiers[1].fragment_bytes = 4096;
  const auto ends = train(
      config, 8 * 4 * 20, [](TestRank&) {}, 1);
  for (const End& end : ends) EXPECT_EQ(end.theta, ends[0].theta);
}

TEST(Delayed, RanksOfANodeApplyTheSameAtTheSameStep) {
  Config config = delayed(2, 2, 1, 2);
  config.tiers[1].emulate.step = 0.002;
  config.tiers[1].emulate.speeds = "1 0.3";
  std::mutex mutex;
  std::map<std::pair<int, int64_t>, std::vector<float>> seen;  // by node and step
  const auto ends = train(config, 8 * 4 * 60, [&](TestRank& rank) {
    const std::lock_guard lock(mutex);
    const auto key = std::pair(rank.node, rank.sync.steps());
    const auto [at, fresh] = seen.emplace(key, rank.replica.theta);
    if (!fresh) {
      EXPECT_EQ(at->second, rank.replica.theta) << "node " << key.first;
    }
  });
  expect_balanced(ends, config);
}

TEST(Delayed, WithoutStalenessItIsPeriodic) {
  const auto one = train(delayed(1, 3, 0, 4), 8 * 3 * 24);
  Config config = delayed(1, 3, 0, 4);
  config.tiers[1].strategy = Strategy::periodic;
  const auto other = train(config, 8 * 3 * 24);
  EXPECT_EQ(one[0].theta, other[0].theta);
  EXPECT_EQ(one[0].own_steps, other[0].own_steps);
}

TEST(Delayed, LateContributionsComeBackWhenConfigured) {
  Config config = delayed(1, 3, 2, 2);
  config.tiers[1].late = Late::return_;
  config.tiers[1].emulate.step = 0.002;
  config.tiers[1].emulate.speeds = "1 1 0.1";
  const auto ends = train(config, 8 * 3 * 60);
  expect_balanced(ends, config);
  EXPECT_GT(ends[2].last.ledger.returned, 0);
}

TEST(Delayed, DroppedWorkIsCountedAndNobodyCountsOnIt) {
  Config config = delayed(1, 3, 2, 2);
  config.tiers[1].late = Late::drop;
  config.tiers[1].emulate.step = 0.002;
  config.tiers[1].emulate.speeds = "1 1 0.1";
  const auto ends = train(config, 8 * 3 * 60);
  for (const End& end : ends) {
    EXPECT_EQ(end.theta, ends[0].theta);
    EXPECT_EQ(end.samples, ends[0].samples);
    const LedgerRecord& l = end.last.ledger;
    EXPECT_EQ(l.contributed, l.applied + l.returned + l.dropped);
  }
  EXPECT_GT(ends[2].last.ledger.dropped, 0);
}

// So many times longer than a step that the others come to the end of what they may do without it.
constexpr auto kAway = std::chrono::milliseconds(400);

Config with_deadline(double deadline) {
  Config config = delayed(1, 3, 1, 2);
  config.tiers[1].deadline = deadline;
  config.tiers[1].emulate.step = 0.002;
  return config;
}

int64_t skips_of(const std::vector<End>& ends, size_t node) {
  int64_t skips = 0;
  for (const End& end : ends) {
    const auto& by_node = end.last.ledger.skipped_by_node;
    if (node < by_node.size()) skips += by_node[node];
  }
  return skips;
}

TEST(Delayed, ASilentNodeIsSkippedAtTheDeadlineAndLosesNothing) {
  const Config config = with_deadline(0.11);
  const auto ends = train(config, 8 * 3 * 200, [](TestRank& rank) {
    if (rank.node == 2 && rank.sync.steps() == 20) std::this_thread::sleep_for(kAway);
  });
  expect_balanced(ends, config);
  EXPECT_GT(skips_of(ends, 2), 0);
}

TEST(Delayed, ABusyNodeAbstainsAndNobodyWaitsForADeadline) {
  const Config config = with_deadline(1);
  const auto ends = train(config, 8 * 3 * 200, [](TestRank& rank) {
    if (rank.node != 0 || rank.sync.steps() != 20) return;
    rank.sync.set_busy(true);
    std::this_thread::sleep_for(std::chrono::seconds(3));
    rank.sync.set_busy(false);
  });
  expect_balanced(ends, config);
  EXPECT_EQ(skips_of(ends, 0), 0);
  EXPECT_GT(ends[1].own_steps, ends[0].own_steps);
}

}  // namespace
}  // namespace hybridsync
