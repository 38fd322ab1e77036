// Whole runs by seed: every promise holds, a seed is a run to the bit, and broken rules are found.
#include <gtest/gtest.h>

#include "hybridsync/config/error.h"
#include "hybridsync/config/load.h"
#include "hybridsync/simulate/seeds.h"

namespace hybridsync {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kSeeds = 60;
#elif defined(NDEBUG)
constexpr int64_t kSeeds = 3000;
#else
constexpr int64_t kSeeds = 300;
#endif

SeedsResult run(int64_t seeds, int threads, uint64_t first = 1) {
  Seeds options;
  options.first = first;
  options.count = seeds;
  options.threads = threads;
  return run_seeds(options, [](uint64_t seed) { return random_scenario(seed); });
}

TEST(Simulator, EverySeedKeepsEveryPromise) {
  const SeedsResult result = run(kSeeds, 0);
  for (const SimulatedRun& failed : result.failed)
    ADD_FAILURE() << "seed " << failed.seed << ": " << name(failed.breach->rule) << ": "
                  << failed.breach->text << "\nhybridsync simulate --seed " << failed.seed
                  << " --trace";
  const Tally& t = result.tally;
  EXPECT_EQ(result.failures, 0);
  EXPECT_EQ(t.runs, kSeeds);
  std::cout << t.runs << " seeds, " << t.events << " events, " << t.rounds << " results, "
            << t.views << " view changes, " << t.intervals << " of K\n";
  const Oracle::Sums& s = t.samples;
  EXPECT_EQ(s.trained, s.applied + s.dropped + s.open + s.progress + s.lost_with_processes +
                           s.lost_with_tails);
  EXPECT_GT(t.views, 0);
  EXPECT_GT(t.messages_lost, 0);
  EXPECT_GT(t.intervals, 0);
  for (const char* kind : {"crash", "freeze", "partition", "cut", "busy", "drift"})
    EXPECT_GT(t.faults.at(kind), 0) << kind;
}

struct Coding {
  const char* name;
  CodecKind kind;
};
class CodedRuns : public testing::TestWithParam<Coding> {};

// Identical anchors, exactly once and the accounts of what codes leave out, whatever goes wrong.
TEST_P(CodedRuns, KeepEveryPromise) {
  Seeds options;
  options.first = 20'001;
  options.count = std::min<int64_t>(kSeeds, 250);
  const SeedsResult result =
      run_seeds(options, [](uint64_t seed) { return random_scenario(seed, GetParam().kind); });
  for (const SimulatedRun& failed : result.failed)
    ADD_FAILURE() << "seed " << failed.seed << ": " << name(failed.breach->rule) << ": "
                  << failed.breach->text;
  const Tally& t = result.tally;
  EXPECT_EQ(result.failures, 0);
  EXPECT_GE(t.rounds, 1000);
  EXPECT_GT(t.faults.size(), 5u);
  std::cout << t.runs << " seeds, " << t.rounds << " results, " << t.views << " view changes\n";
}

INSTANTIATE_TEST_SUITE_P(
    Each, CodedRuns,
    testing::Values(Coding{"bf16", CodecKind::bf16}, Coding{"fp16", CodecKind::fp16},
                    Coding{"int8", CodecKind::int8}, Coding{"int4", CodecKind::int4},
                    Coding{"int2", CodecKind::int2}, Coding{"sign", CodecKind::sign},
                    Coding{"levels", CodecKind::levels}, Coding{"top_k", CodecKind::top_k}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Simulator, ASeedIsARunToTheBitWhateverTheThreads) {
  const int64_t seeds = std::min<int64_t>(kSeeds, 200);
  const SeedsResult one = run(seeds, 1);
  EXPECT_EQ(one.course, run(seeds, 2).course);
  EXPECT_EQ(one.course, run(seeds, 7).course);
  EXPECT_NE(one.course, run(seeds, 1, 2).course);
}

Config four_nodes() {
  Config config;
  TierConfig node, site;
  site.name = "site";
  site.size = 4;
  site.strategy = Strategy::delayed;
  site.staleness = 2;
  site.deadline = 2;
  site.emulate.step = 0.05;
  site.emulate.speeds = "1 1 1 0.25";
  config.tiers = {node, site};
  validate(config);
  return config;
}

TEST(Simulator, ASlowNodeIsFoldedInAndNothingIsOlderThanTheBound) {
  const SimulatedRun run = simulate(scripted_scenario(four_nodes(), {}, 1), false);
  ASSERT_FALSE(run.breach) << run.breach->text;
  const Oracle::Sums& s = run.tally.samples;
  EXPECT_EQ(s.trained, s.applied);
  EXPECT_LE(run.tally.ledger.ages.size(), 3u);
}

TEST(Simulator, FaultsFromAFileHappen) {
  const auto faults = parse_faults(R"(
[[fault]]
at = "2 s"
kind = "crash"
node = 1
for = "500 ms"
)",
                                   "faults.toml", 4);
  ASSERT_EQ(faults.size(), 1u);
  const SimulatedRun run = simulate(scripted_scenario(four_nodes(), faults, 1), true);
  ASSERT_FALSE(run.breach) << run.breach->text;
  EXPECT_EQ(run.tally.faults.at("crash"), 1);
  EXPECT_EQ(run.tally.processes, 5) << "it came back";
  EXPECT_GE(run.tally.views, 2) << "without it, and with it again";
  EXPECT_FALSE(run.trace.empty());
}

std::string mistake_in(const std::string& faults) {
  try {
    (void)parse_faults(faults, "faults.toml", 2);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(Faults, MistakesNameFileLineAndKey) {
  const std::string kind = mistake_in("[[fault]]\nat = \"1 s\"\nkind = \"crahs\"\nnode = 1\n");
  EXPECT_NE(kind.find("faults.toml:3"), std::string::npos) << kind;
  EXPECT_NE(kind.find("did you mean crash"), std::string::npos) << kind;
  EXPECT_NE(mistake_in("[[fault]]\nat = \"1 s\"\nkind = \"crash\"\nnode = 2\n"), "");
  EXPECT_NE(mistake_in("[[fault]]\nkind = \"crash\"\nnode = 1\n"), "");
  EXPECT_NE(mistake_in("[[fault]]\nat = \"1 s\"\nkind = \"crash\"\nnode = 1\nfro = 2\n"), "");
}

TEST(Simulator, AConfigurationsCodecIsRun) {
  Config config = four_nodes();
  config.tiers[1].codec.kind = CodecKind::top_k;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Scenario scenario = random_scenario(config, seed);
    EXPECT_EQ(scenario.codec, config.tiers[1].codec);
    const SimulatedRun run = simulate(scenario, false);
    EXPECT_FALSE(run.breach) << "seed " << seed << ": " << run.breach->text;
  }
}

TEST(Simulator, AConfigurationsIntervalAdapts) {
  for (const int staleness : {0, 2}) {
    Config config = four_nodes();
    TierConfig& site = config.tiers[1];
    site.staleness = staleness;
    if (staleness == 0) site.deadline = 0;
    for (const Adapt rule : {Adapt::grow, Adapt::qsr}) {
      site.adapt = rule;
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        const SimulatedRun run = simulate(random_scenario(config, seed), false);
        EXPECT_FALSE(run.breach) << "seed " << seed << ": " << run.breach->text;
        EXPECT_GT(run.tally.intervals, 0) << "seed " << seed;
      }
    }
  }
}

TEST(Seeds, WhatAThreadThrowsReachesTheCaller) {
  Seeds seeds;
  seeds.count = 40;
  seeds.threads = 4;
  try {
    run_seeds(seeds, [](uint64_t seed) {
      if (seed >= 5) throw ConfigError("seed " + std::to_string(seed));
      return random_scenario(seed);
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ConfigError& e) {
    EXPECT_STREQ(e.what(), "seed 5") << "the first, whatever the threads";
  }
}

// The note of a run with this fault from 1 s on; of one that breaks a promise, that.
std::string end_of(FaultKind kind, std::vector<int> nodes, bool views, double factor = 1) {
  Config config = four_nodes();
  if (!views) config.tiers.back().deadline = 0;
  const Fault fault{1'000'000, kind, std::move(nodes), factor, 0};
  const SimulatedRun run = simulate(scripted_scenario(config, {fault}, 1), false);
  EXPECT_TRUE(run.missed.empty());
  if (run.breach) return std::string(name(run.breach->rule)) + ": " + run.breach->text;
  return run.tally.notes.empty() ? "" : run.tally.notes.begin()->first;
}

TEST(FaultsForGood, EndARunWithoutABreachWhereNothingIsPromised) {
  using enum FaultKind;
  EXPECT_EQ(end_of(cut, {1, 2}, false), "stood still: 1 s: cut of node 1, 2 for good");
  EXPECT_EQ(end_of(freeze, {1}, false), "stood still: 1 s: freeze of node 1 for good");
  EXPECT_EQ(end_of(freeze, {0}, true), "stood still: 1 s: freeze of node 0 for good");
  EXPECT_EQ(end_of(busy, {1}, false), "stood still: 1 s: busy of node 1 for good");
  EXPECT_EQ(end_of(busy, {0}, true), "stood still: 1 s: busy of node 0 for good");
}

TEST(FaultsForGood, LeaveTheOthersGoingOnWhereThatIsPromised) {
  using enum FaultKind;
  EXPECT_EQ(end_of(cut, {0, 2}, true), "ended without node 2: 1 s: cut of node 0, 2 for good");
  EXPECT_EQ(end_of(cut, {1, 2}, true), "ended without node 2: 1 s: cut of node 1, 2 for good");
  EXPECT_EQ(end_of(broken, {1, 2}, true),
            "ended without node 2: 1 s: broken of node 1, 2 for good");
  EXPECT_EQ(end_of(partition, {0, 2}, true),
            "ended without node 1, 3: 1 s: partition of node 0, 2 for good");
  EXPECT_EQ(end_of(freeze, {3}, true), "ended without node 3: 1 s: freeze of node 3 for good");
  for (const bool views : {false, true}) {
    EXPECT_EQ(end_of(slow, {0}, views, 1000), "");
    EXPECT_EQ(end_of(drift, {0}, views, 1e5), "");
    EXPECT_EQ(end_of(drift, {1}, views, -1e5), "");
    EXPECT_EQ(end_of(finish, {1}, views), "");
  }
  EXPECT_EQ(end_of(crash, {1}, true), "");
  EXPECT_EQ(end_of(leave, {2}, true), "");
}

TEST(Simulator, AFarAwayFaultIsNotWaitedFor) {
  const Fault far{100'000'000'000, FaultKind::crash, {1}, 1, 1'000'000};
  const SimulatedRun run = simulate(scripted_scenario(four_nodes(), {far}, 1), false);
  ASSERT_FALSE(run.breach) << run.breach->text;
  EXPECT_EQ(run.missed, std::vector<size_t>{0});
  EXPECT_EQ(run.tally.missed.at("crash"), 1);
  EXPECT_LT(run.length, far.at);
}

TEST(Simulator, AFaultOfALateMomentHappens) {
  const Fault late{60'000'000, FaultKind::freeze, {1}, 1, 500'000};
  const SimulatedRun run = simulate(scripted_scenario(four_nodes(), {late}, 1), false);
  ASSERT_FALSE(run.breach) << run.breach->text;
  EXPECT_EQ(run.tally.faults.at("freeze"), 1);
}

TEST(Simulator, LongStepsAndWaysAreNoStandstill) {
  for (const int staleness : {0, 2}) {
    Config config = four_nodes();
    TierConfig& site = config.tiers.back();
    site.staleness = staleness;
    site.deadline = staleness > 0 ? 300 : 0;
    site.emulate.step = 30;
    site.emulate.rtt = 5;
    const SimulatedRun run = simulate(scripted_scenario(config, {}, 1), false);
    EXPECT_FALSE(run.breach) << run.breach->text;
    EXPECT_TRUE(run.tally.notes.empty()) << run.tally.notes.begin()->first;
  }
}

TEST(Simulator, NearlyAllFaultsOfASeedHappen) {
  for (const int staleness : {0, 2}) {
    Config config = four_nodes();
    config.tiers.back().staleness = staleness;
    if (staleness == 0) config.tiers.back().deadline = 0;
    Seeds seeds;
    seeds.count = 50;
    const SeedsResult result =
        run_seeds(seeds, [&](uint64_t seed) { return random_scenario(config, seed); });
    EXPECT_EQ(result.failures, 0);
    int64_t happened = 0, missed = 0;
    for (const auto& [kind, times] : result.tally.faults) happened += times;
    for (const auto& [kind, times] : result.tally.missed) missed += times;
    EXPECT_GT(happened, 100);
    EXPECT_LT(missed * 10, happened) << "only those of nodes that are down";
  }
}

TEST(Simulator, GradientRoundsAreRefused) {
  Config config = four_nodes();
  config.start.every_step = 10;
  EXPECT_THROW((void)random_scenario(config, 1), ConfigError);
}

}  // namespace
}  // namespace hybridsync
