// The whole sequence of a window, on all ranks of small runs, against values worked out by hand.
#include "hybridsync/sync/synchronizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>

#include "hybridsync/config/error.h"
#include "tests/sync/vector_replica.h"

namespace hybridsync {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void expect_all(const std::vector<float>& values, float expected) {
  for (float v : values)
    if (std::abs(v - expected) > 1e-6f * std::max(1.0f, std::abs(expected))) {
      ASSERT_FLOAT_EQ(v, expected);
      break;
    }
}

TEST(Synchronizer, RanksOfANodeStepWithTheWeightedMean) {
  Config config;
  config.tiers = {two_tiers(3, 1, Strategy::every_step).tiers[0]};
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 1000, {});
    // Weights 1, 2, 3 and gradients 0, 1, 2: mean (0 + 2 + 6) / 6.
    const auto record = rank.step(float(e.rank), e.rank + 1);
    ASSERT_TRUE(record);
    expect_all(rank.replica.theta, 1 - 0.5f * 8 / 6);
    EXPECT_NEAR(record->loss, 8.0 / 6, 1e-12);
    EXPECT_EQ(record->samples, 6);
    EXPECT_EQ(rank.replica.last_window[0].count, 6);
    EXPECT_NEAR(rank.replica.last_window[0].mean[0], 8.0 / 6, 1e-12);
    rank.finish();
  });
}

TEST(Synchronizer, GradientRoundsWeighNodesBySamples) {
  const Config config = two_tiers(2, 2, Strategy::every_step);
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 5000, {});
    for (int step = 0; step < 3; ++step) (void)rank.step(float(e.rank), e.rank + 1);
    // Weights 1..4, gradients 0..3: mean (0 + 2 + 6 + 12) / 10 = 2; three steps of 0.5 * 2.
    expect_all(rank.replica.theta, 1 - 3);
    EXPECT_NEAR(rank.replica.last_window[0].mean[0], 2, 1e-12);
    EXPECT_EQ(rank.sync.samples(), 30);
    rank.finish();
    EXPECT_EQ(rank.sync.rounds(),
              3);  // that in which all say that they are finished has no content
    EXPECT_EQ(rank.sync.steps(), 3);
  });
}

TEST(Synchronizer, DeltaRoundsAverageEveryKSteps) {
  const Config config = two_tiers(2, 2, Strategy::periodic, 4);
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 5000, {});
    rank.replica.mean = e.node;
    for (int step = 1; step <= 12; ++step) {
      const auto record = rank.step(float(e.node), e.node == 0 ? 1 : 3);
      if (step == 3) expect_all(rank.replica.theta, 1 - 0.5f * 3 * float(e.node));
      EXPECT_EQ(record->rounds, step / 4);
    }
    // Each round moves by the sample-weighted mean of 0 and 4 * 0.5 * 1: 0.75 * 2.
    expect_all(rank.replica.theta, 1 - 3 * 1.5f);
    EXPECT_NEAR(rank.replica.mean, 0.75, 1e-12);  // merged by samples at the first round
    EXPECT_EQ(rank.replica.batches_tracked, 12);
    rank.finish();
  });
}

// DiLoCo's outer optimizer against a serial twin of two nodes.
TEST(Synchronizer, OuterNesterovEqualsItsTwin) {
  Config config = two_tiers(2, 2, Strategy::periodic, 3);
  config.tiers[1].outer = {0.7, 0.9, true};
  double anchor = 1, momentum = 0;
  for (int round = 0; round < 4; ++round) {
    double learned = 0;  // weights 1 and 3: nodes pull by round + 1 and 2 (round + 1) per step
    for (double node : {1.0, 2.0})
      learned += (node == 1 ? 0.25 : 0.75) * 3 * 0.5 * node * (round + 1);
    momentum = 0.9 * momentum + learned;
    anchor -= 0.7 * (learned + 0.9 * momentum);
  }
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 3000, {});
    for (int step = 0; step < 12; ++step)
      (void)rank.step(float(e.node + 1) * float(step / 3 + 1), e.node == 0 ? 1 : 3);
    for (float v : rank.replica.theta) ASSERT_NEAR(v, anchor, 1e-4);
    rank.finish();
  });
}

TEST(Synchronizer, OneNodeIsTheIdentity) {
  for (Strategy strategy : {Strategy::every_step, Strategy::periodic}) {
    const Config config = two_tiers(1, 1, strategy, 3);
    Config alone;
    std::vector<float> expected, theta;
    run_all(alone, [&](const Environment& e) {
      TestRank rank(alone, e, 100, {});
      for (int step = 0; step < 7; ++step) (void)rank.step(0.1f * float(step), 2);
      rank.finish();
      expected = rank.replica.theta;
    });
    run_all(config, [&](const Environment& e) {
      TestRank rank(config, e, 100, {});
      for (int step = 0; step < 7; ++step) (void)rank.step(0.1f * float(step), 2);
      rank.finish();
      theta = rank.replica.theta;
    });
    for (size_t i = 0; i < theta.size(); ++i)
      EXPECT_NEAR(theta[i], expected[i], 7 * std::numeric_limits<float>::epsilon());
  }
}

TEST(Synchronizer, StartsSynchronouslyThenTurnsHybrid) {
  Config config = two_tiers(1, 2, Strategy::periodic, 2);
  config.start.every_step = 3;
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 3000, {});
    std::vector<std::string> modes;
    for (int step = 1; step <= 5; ++step) {
      modes.push_back(rank.step(float(2 * e.node), 1)->mode);
      if (step <= 3) expect_all(rank.replica.theta, 1 - 0.5f * float(step));
      if (step == 4) expect_all(rank.replica.theta, 1 - 0.5f * 3 - 0.5f * 2 * float(e.node));
    }
    expect_all(rank.replica.theta, 1 - 0.5f * 5);
    EXPECT_EQ(modes, (std::vector<std::string>{"every_step", "every_step", "every_step", "periodic",
                                               "periodic"}));
    rank.finish();
  });
}

TEST(Synchronizer, ANonFiniteGradientMakesItsNodeAbstain) {
  const Config config = two_tiers(2, 2, Strategy::every_step);
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 2000, {});
    const auto record = rank.step(e.rank == 3 ? kNaN : float(e.node + 1), 1);
    expect_all(rank.replica.theta, 0.5f);  // node 0's gradient of 1 alone
    EXPECT_FALSE(record->skipped);
    rank.finish();
  });
}

TEST(Synchronizer, ANonFiniteGradientInsideANodeTouchesNothingAndCounts) {
  Config config;
  config.tiers = {two_tiers(2, 1, Strategy::every_step).tiers[0]};
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 100, {});
    (void)rank.step(1, 1);
    const auto record = rank.step(e.rank == 1 ? INFINITY : 1, 1);
    EXPECT_TRUE(record->skipped);
    EXPECT_EQ(record->step, 2);
    EXPECT_EQ(rank.replica.steps, 1);
    EXPECT_EQ(rank.sync.skipped(), 1);
    expect_all(rank.replica.theta, 0.5f);
    rank.finish();
  });
}

TEST(Synchronizer, WhenEveryNodeAbstainsNothingMoves) {
  const Config config = two_tiers(1, 2, Strategy::every_step);
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 100, {});
    EXPECT_TRUE(rank.step(kNaN, 1)->skipped);
    expect_all(rank.replica.theta, 1);
    (void)rank.step(1, 1);
    expect_all(rank.replica.theta, 0.5f);
    rank.finish();
  });
}

TEST(Synchronizer, RanksWithFewerBatchesStayForTheOthers) {
  Config config;
  config.tiers = {two_tiers(2, 1, Strategy::every_step).tiers[0]};
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 100, {});
    for (int step = 0; step < (e.rank == 0 ? 5 : 3); ++step) (void)rank.step(1, 1);
    rank.finish();
    EXPECT_EQ(rank.sync.steps(), 5);
    EXPECT_EQ(rank.sync.samples(), 8);
    expect_all(rank.replica.theta, 1 - 0.5f * 5);
  });
}

TEST(Synchronizer, NodesWithFewerStepsStayForTheOthers) {
  for (Strategy strategy : {Strategy::every_step, Strategy::periodic}) {
    const Config config = two_tiers(2, 2, strategy, strategy == Strategy::periodic ? 4 : 1);
    std::mutex mutex;
    std::vector<std::vector<float>> theta;
    run_all(config, [&](const Environment& e) {
      TestRank rank(config, e, 3000, {});
      for (int step = 0; step < (e.node == 0 ? 10 : 3); ++step) (void)rank.step(1, 1);
      rank.finish();
      EXPECT_EQ(rank.sync.samples(), 2 * 10 + 2 * 3);
      std::lock_guard lock(mutex);
      theta.push_back(rank.replica.theta);
    });
    for (const auto& t : theta) EXPECT_EQ(t, theta.front());
    // Gradient mode: ten steps of the present nodes' mean.
    if (strategy == Strategy::every_step) expect_all(theta.front(), 1 - 0.5f * 10);
  }
}

// A rank that is still reading what the last round agreed on must not see the next one's.
TEST(Synchronizer, RoundsThatFollowEachOtherAtOnceDoNotMix) {
  Config config = two_tiers(2, 2, Strategy::periodic, 1);
  config.start.every_step = 2;
  for (int run = 0; run < 5; ++run)
    run_all(config, [&](const Environment& e) {
      TestRank rank(config, e, 500'000, {});
      for (int step = 1; step <= 4; ++step) {
        (void)rank.step(1, 1);
        expect_all(rank.replica.theta, 1 - 0.5f * float(step));
      }
      if (e.node == 0)
        for (int step = 5; step <= 6; ++step) (void)rank.step(1, 1);
      rank.finish();
      expect_all(rank.replica.theta, 1 - 0.5f * 6);
    });
}

// A finished node counts the others' steps too, those skipped included, or its schedule would lag.
TEST(Synchronizer, AFinishedNodeKeepsStepWithTheSchedule) {
  Config config = two_tiers(1, 2, Strategy::every_step);
  config.train.steps = 6;
  config.learning_rate.schedule = LrSchedule::cosine;
  std::mutex mutex;
  std::vector<std::vector<float>> theta;
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 100, {});
    for (int step = 0; step < 2; ++step) (void)rank.step(1, 1);
    if (e.node == 0)
      for (float gradient : {kNaN, 1.0f, 1.0f}) (void)rank.step(gradient, 1);
    rank.finish();
    EXPECT_EQ(rank.sync.steps(), 5);
    std::lock_guard lock(mutex);
    theta.push_back(rank.replica.theta);
  });
  EXPECT_EQ(theta[0], theta[1]);
}

TEST(Synchronizer, OtherParametersOnOneNodeEndTheRunAndAreNamed) {
  const Config config = two_tiers(1, 2, Strategy::every_step);
  const auto errors = run_world(config, [&](const Environment& e) {
    TestRank rank(config, e, 100, {});
    if (e.node == 1) rank.replica.theta[7] += 1;
    (void)rank.step(1, 1);
  });
  EXPECT_NE((errors[0] + errors[1]).find("has other parameters than node"), std::string::npos)
      << errors[0] << errors[1];
}

// The last result reaches some nodes before others, and the first to have it leave at once.
TEST(Synchronizer, NodesMayLeaveWhileOthersStillWaitForTheLastResult) {
  const Config config = two_tiers(1, 5, Strategy::every_step);
  for (int run = 0; run < 15; ++run)
    run_all(config, [&](const Environment& e) {
      TestRank rank(config, e, 20'000, {});
      (void)rank.step(1, 1);
      rank.finish();
    });
}

TEST(Synchronizer, ANodeThatLeavesEarlyEndsTheRun) {
  const Config config = two_tiers(1, 2, Strategy::periodic, 2);
  const auto errors = run_world(config, [&](const Environment& e) {
    TestRank rank(config, e, 100, {});
    (void)rank.step(1, 1);
    if (e.node == 1) return;
    (void)rank.step(1, 1);
  });
  EXPECT_NE(errors[0].find("node 1"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[1], "");
}

TEST(Synchronizer, SilenceIsShownAndInterruptible) {
  const Config config = two_tiers(1, 2, Strategy::periodic, 1);
  std::atomic<bool> interrupt{false};
  std::atomic<bool> gone{false};
  std::string shown;
  const auto errors = run_world(config, [&](const Environment& e) {
    Patience patience;
    if (e.node == 0) {
      patience.show_after = std::chrono::milliseconds(50);
      patience.show = [&](const Waiting& w) {
        shown = counted("node", w.peers) + ", " + w.what;
        interrupt = true;
      };
      patience.interrupt = &interrupt;
    }
    TestRank rank(config, e, 100, patience);
    if (e.node == 0) {
      try {
        (void)rank.step(1, 1);
      } catch (const Interrupted&) {
        gone = true;
        throw;
      }
    }
    while (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  EXPECT_EQ(shown, "node 1, fragment 0, version 1");
  EXPECT_NE(errors[0].find("interrupted"), std::string::npos) << errors[0];
}

TEST(Synchronizer, BytesAreWhatTheCostFormulaSays) {
  const Config config = two_tiers(2, 2, Strategy::periodic, 2);
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 200'000, {});
    for (int step = 0; step < 2; ++step) (void)rank.step(1, 1);
    const double values = 200'000 * 4;
    // One contribution for half of the fragments and the result of the other half, each way: 2 b N
    // (M-1)/M.
    EXPECT_GE(rank.sync.bytes_sent_slow(), values);
    EXPECT_LE(rank.sync.bytes_sent_slow(), values * 1.01);
    EXPECT_GE(rank.sync.bytes_received_slow(), values);  // perhaps with a quick node's next header
    EXPECT_LE(rank.sync.bytes_received_slow(), values * 1.01);
    rank.finish();
  });
}

TEST(Synchronizer, EveryByteIsInARecordAlsoThoseOfLeaving) {
  for (Strategy strategy : {Strategy::every_step, Strategy::periodic}) {
    const Config config = two_tiers(2, 2, strategy, strategy == Strategy::periodic ? 4 : 1);
    run_all(config, [&](const Environment& e) {
      TestRank rank(config, e, 3000, {});
      int64_t sent = 0, last_step = 0;
      rank.on_record = [&](const StepRecord& r) {
        sent += r.bytes_sent_slow;
        last_step = r.step;
      };
      for (int step = 0; step < 6; ++step) (void)rank.step(1, 1);
      rank.finish();
      EXPECT_EQ(sent, rank.sync.bytes_sent_slow());
      EXPECT_GT(sent, 0);
      EXPECT_EQ(last_step, 6);
    });
  }
}

TEST(Synchronizer, ClippingUsesTheNormOfTheMean) {
  Config config = two_tiers(2, 2, Strategy::every_step);
  config.train.clip = 1;
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, 16, {});
    const auto record = rank.step(float(e.rank), 1);
    EXPECT_NEAR(record->grad_norm, 1.5 * 4, 1e-6);
    for (float v : rank.replica.theta) EXPECT_NEAR(v, 1 - 0.5 * 0.25, 1e-6);
    rank.finish();
  });
}

}  // namespace
}  // namespace hybridsync
