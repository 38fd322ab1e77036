// Good configurations: values, defaults, units, sizes that are filled in.
#include "hybridsync/config/load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/config/message_of.h"

namespace hybridsync {
namespace {

constexpr const char* kHybrid = R"([train]
model = "char-gpt"
lr = 1
steps = 300
seed = 7
[accumulate]
steps = 4
weighting = "mean_of_means"
[batch_norm]
running_stats = "per_micro_batch"
at_sync = "first"
[learning_rate]
scaling = "linear"
schedule = "cosine"
warmup = 10
[start]
every_step = 20
[[tier]]
size = 2
overlap = "next_window"
timeout = "10 min"
[[tier]]
name = "far"
size = 3
strategy = "periodic"
every = 8
overlap = 0
outer = { lr = 0.7, momentum = 0.9, nesterov = true }
emulate = { rate = "100 Mbit/s", rtt = "50 ms" }
[record]
folder = "out"
)";

TEST(Load, EmptyTextIsOneProcessWithDefaults) {
  Config expected;
  expected.source = "empty.toml";
  EXPECT_EQ(parse("", "empty.toml"), expected);
  EXPECT_EQ(expected.ranks(), 1);
  EXPECT_TRUE(expected.tiers.empty());
}

TEST(Load, ReadsTheRunsTables) {
  const Config c = parse(kHybrid, "hybrid.toml");
  EXPECT_EQ(c.source, "hybrid.toml");
  EXPECT_EQ(c.train.model, "char-gpt");
  EXPECT_EQ(c.train.lr, 1.0);
  EXPECT_EQ(c.train.seed, 7u);
  EXPECT_EQ(c.accumulate.steps, 4);
  EXPECT_EQ(c.accumulate.weighting, Weighting::mean_of_means);
  EXPECT_EQ(c.batch_norm.running_stats, RunningStats::per_micro_batch);
  EXPECT_EQ(c.batch_norm.at_sync, StatsAtSync::first);
  EXPECT_EQ(c.learning_rate.scaling, LrScaling::linear);
  EXPECT_EQ(c.learning_rate.schedule, LrSchedule::cosine);
  EXPECT_EQ(c.learning_rate.warmup, 10);
  EXPECT_EQ(c.start.every_step, 20);
  EXPECT_EQ(c.record.folder, "out");
}

TEST(Load, ReadsTiers) {
  const Config c = parse(kHybrid, "hybrid.toml");
  ASSERT_EQ(c.tiers.size(), 2u);
  EXPECT_EQ(c.tiers[0].name, "node");
  EXPECT_EQ(c.tiers[0].overlap, Overlap::next_window);
  EXPECT_EQ(c.tiers[0].timeout, 600);
  EXPECT_EQ(c.tiers[1].name, "far");
  EXPECT_EQ(c.tiers[1].strategy, Strategy::periodic);
  EXPECT_EQ(c.tiers[1].every, 8);
  EXPECT_EQ(c.tiers[1].outer, (OuterConfig{0.7, 0.9, true}));
  EXPECT_EQ(c.tiers[1].emulate, (EmulateConfig{100e6, 50e-3}));
  EXPECT_EQ(c.ranks(), 6);
  EXPECT_EQ(c.nodes(), 3);
}

TierConfig delayed(const std::string& keys) {
  return parse("[[tier]]\n[[tier]]\nsize = 3\nstrategy = \"delayed\"\n" + keys, "t").tiers[1];
}

TEST(Load, DelayedWaitsForEverybodyByDefault) {
  const TierConfig tier = delayed("");
  EXPECT_EQ(tier.strategy, Strategy::delayed);
  EXPECT_EQ(tier.staleness, 0);
  EXPECT_EQ(tier.deadline, 0);
  EXPECT_EQ(tier.quorum, kQuorumMajority);
  EXPECT_EQ(tier.late, Late::fold);
}

TEST(Load, ReadsKeysOfDelayed) {
  const TierConfig tier =
      delayed("staleness = 2\ndeadline = \"1500 ms\"\nquorum = 3\nlate = \"return\"");
  EXPECT_EQ(tier.staleness, 2);
  EXPECT_EQ(tier.deadline, 1.5);
  EXPECT_EQ(tier.quorum, 3);
  EXPECT_EQ(tier.late, Late::return_);
  EXPECT_EQ(delayed("staleness = 64").staleness, 64);
  EXPECT_EQ(delayed("deadline = \"none\"").deadline, 0);
  EXPECT_EQ(delayed("quorum = \"all\"").quorum, kQuorumAll);
  EXPECT_EQ(delayed("quorum = \"majority\"").quorum, kQuorumMajority);
  EXPECT_EQ(delayed("late = \"drop\"").late, Late::drop);
}

TEST(Load, EmulatedStepsFollowTheSpeedsOfNodes) {
  const EmulateConfig even = delayed("emulate.step = \"50 ms\"").emulate;
  EXPECT_EQ(even.step_seconds(2), 0.05);
  EXPECT_FALSE(even.on()) << "the link is as it is";
  const EmulateConfig uneven =
      delayed("emulate = { step = \"50 ms\", speeds = \" 1  2 0.25 \" }").emulate;
  EXPECT_EQ(uneven.step_seconds(0), 0.05);
  EXPECT_EQ(uneven.step_seconds(1), 0.025);
  EXPECT_EQ(uneven.step_seconds(2), 0.2);
  EXPECT_EQ(EmulateConfig{}.step_seconds(7), 0);
}

TEST(Load, StepsAreEmulatedUnderEveryStrategy) {
  const Config c =
      parse("[[tier]]\n[[tier]]\nsize = 2\nemulate = {step = 1, speeds = '1 0.5'}", "t");
  EXPECT_EQ(c.tiers[1].emulate.step_seconds(1), 2);
}

double timeout_of(const std::string& value) {
  return parse("[[tier]]\ntimeout = " + value, "t").tiers[0].timeout;
}

TEST(Load, DurationsHaveUnits) {
  EXPECT_EQ(timeout_of("\"10 min\""), 600);
  EXPECT_EQ(timeout_of("\"600 s\""), 600);
  EXPECT_EQ(timeout_of("\"1.5h\""), 5400);
  EXPECT_EQ(timeout_of("\"250 ms\""), 0.25);
  EXPECT_EQ(timeout_of("\"20 us\""), 20e-6);
  EXPECT_EQ(timeout_of("90"), 90);
  EXPECT_EQ(timeout_of("0.5"), 0.5);
}

double rate_of(const std::string& value) {
  return parse("[[tier]]\n[[tier]]\nemulate.rate = " + value, "t").tiers[1].emulate.rate;
}

TEST(Load, RatesHaveUnits) {
  EXPECT_EQ(rate_of("\"64 kbit/s\""), 64e3);
  EXPECT_EQ(rate_of("\"100 Mbit/s\""), 100e6);
  EXPECT_EQ(rate_of("\"2.5 Gbit/s\""), 2.5e9);
  EXPECT_EQ(rate_of("1000"), 1000);
}

TEST(Load, AutoSizeIsWhatRanksLeave) {
  const Config nodes = parse("train.ranks = 8\n[[tier]]\nsize = 2\n[[tier]]\nsize = \"auto\"", "t");
  EXPECT_EQ(nodes.tiers[1].size, 4);
  const Config inner = parse("train.ranks = 8\n[[tier]]\nsize = \"auto\"\n[[tier]]\nsize = 2", "t");
  EXPECT_EQ(inner.tiers[0].size, 4);
  EXPECT_EQ(inner.ranks(), 8);
}

TEST(Load, StartIsAcceptedWithoutAPeriodicTier) {
  EXPECT_EQ(parse("start.every_step = 5", "t").start.every_step, 5);
  EXPECT_EQ(parse("start.every_step = 5\n[[tier]]\nsize = 2\n[[tier]]\nsize = 2", "t").ranks(), 4);
}

TEST(Load, ReadsAFile) {
  const std::string path =
      testing::TempDir() + "hybridsync_load_test_" + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << "[train]\nsteps = 12\n";
  const Config c = load(path, {"train.steps=13"});
  EXPECT_EQ(c.train.steps, 13);
  EXPECT_EQ(c.source, path);
  std::remove(path.c_str());
}

TEST(Load, FilesThatCannotBeRead) {
  EXPECT_EQ(message_of([] { load("/nowhere/hybrid.toml"); }),
            "/nowhere/hybrid.toml: cannot be read: No such file or directory");
  EXPECT_EQ(message_of([] { load("/"); }), "/: is a folder; name a configuration file");
}

}  // namespace
}  // namespace hybridsync
