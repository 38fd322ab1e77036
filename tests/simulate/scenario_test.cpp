#include "hybridsync/simulate/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "hybridsync/config/error.h"
#include "hybridsync/config/load.h"
#include "hybridsync/simulate/replay.h"
#include "hybridsync/sync/coder.h"

namespace hybridsync {
namespace {

using testing::HasSubstr;

TEST(Scenario, FollowsFromItsSeed) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Scenario a = random_scenario(seed), b = random_scenario(seed);
    EXPECT_EQ(a.to_text(), b.to_text());
    EXPECT_EQ(a.faults, b.faults);
    EXPECT_EQ(a.policy, b.policy);
    EXPECT_EQ(a.link, b.link);
  }
  EXPECT_NE(random_scenario(1).to_text(), random_scenario(2).to_text());
}

TEST(Scenario, SeedsCoverWhatThereIs) {
  std::set<size_t> nodes, fragments;
  std::set<int> staleness;
  std::set<FaultKind> kinds;
  std::set<Late> late;
  std::set<bool> views, deadlines;
  std::set<CodecKind> codecs;
  std::set<Residual> residuals;
  std::set<double> feedbacks, gammas;
  std::set<Adapt> rules;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const Scenario s = random_scenario(seed);
    nodes.insert(s.nodes.size());
    fragments.insert(s.table.fragments.size());
    staleness.insert(s.policy.staleness);
    late.insert(s.policy.late);
    views.insert(s.views);
    deadlines.insert(s.policy.deadline > 0);
    for (const Fault& f : s.faults) kinds.insert(f.kind);
    codecs.insert(s.codec.kind);
    rules.insert(s.schedule.adaptation.rule);
    if (s.codec.kind == CodecKind::fp32) continue;
    residuals.insert(Coder(s.codec).residual());
    feedbacks.insert(s.codec.error_feedback);
    gammas.insert(s.codec.gamma);
  }
  EXPECT_EQ(nodes, (std::set<size_t>{2, 3, 4, 5, 6}));
  EXPECT_EQ(fragments, (std::set<size_t>{1, 2, 3, 4}));
  EXPECT_EQ(staleness, (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(kinds.size(), kFaultNames.size());
  EXPECT_EQ(late.size(), 3u);
  EXPECT_EQ(rules.size(), 6u);
  EXPECT_EQ(views.size(), 2u);
  EXPECT_EQ(deadlines.size(), 2u);
  EXPECT_EQ(codecs.size(), 9u);
  EXPECT_EQ(residuals.size(), 2u);
  EXPECT_EQ(feedbacks, (std::set<double>{0, 0.9, 1}));
  EXPECT_EQ(gammas, (std::set<double>{0.9, 1}));
}

TEST(Scenario, TheCoordinatorsNodeComesBackAndFaultsWithoutViewsCanBeMended) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Scenario s = random_scenario(seed);
    for (const Fault& f : s.faults) {
      const bool down = f.kind == FaultKind::crash || f.kind == FaultKind::power_off ||
                        f.kind == FaultKind::leave;
      EXPECT_TRUE(!down || f.lasts > 0 || f.nodes[0] != 0) << "seed " << seed << to_text(f);
      EXPECT_TRUE(!down || s.views) << "seed " << seed << to_text(f);
    }
  }
}

constexpr const char* kFile = R"([[fault]]
at = "2 s"
kind = "partition"
nodes = [2, 0]
for = "300 ms"

[[fault]]
at = "0.5 s"
kind = "slow"
node = 1
factor = 3
)";

TEST(Faults, OfAFileAreSortedByTime) {
  const auto faults = parse_faults(kFile, "f.toml", 3);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0], (Fault{500'000, FaultKind::slow, {1}, 3, 0}));
  EXPECT_EQ(faults[1], (Fault{2'000'000, FaultKind::partition, {0, 2}, 1, 300'000}));
  EXPECT_EQ(to_text(faults[1]), "2 s: partition of node 0, 2 for 300 ms");
}

TEST(Faults, AreWrittenWithFewDigits) {
  const auto text = [](Micros at, Micros lasts) {
    return to_text({at, FaultKind::freeze, {1}, 1, lasts});
  };
  EXPECT_EQ(text(679'940, 1), "679.94 ms: freeze of node 1 for 1 us");
  EXPECT_EQ(text(100'000'000'000, 0), "27.7778 h: freeze of node 1 for good");
  EXPECT_EQ(text(0, 61'000'001), "0 s: freeze of node 1 for 1.01667 min");
  EXPECT_EQ(to_text({2'500'000, FaultKind::leave, {1}, 1, 0}), "2.5 s: leave of node 1");
}

TEST(Faults, AnEmptyFileHoldsNone) {
  const std::string path = testing::TempDir() + "no_faults.toml";
  std::ofstream(path).flush();
  EXPECT_TRUE(load_faults(path, 3).empty());
  EXPECT_THROW(load_faults(path + ".none", 3), ConfigError);
  EXPECT_THROW(load_faults(testing::TempDir(), 3), ConfigError);
}

TEST(Replay, NamesEverythingThatTheRunFollowsFrom) {
  EXPECT_EQ(replay_command({}, 7), "hybridsync simulate --seed 7 --trace");
  EXPECT_EQ(
      replay_command({"my runs/a.toml", {"tier.1.every=8", "tier.1.late=\"drop\""}, "it's"}, 1),
      "hybridsync simulate 'my runs/a.toml' --set tier.1.every=8 "
      "--set 'tier.1.late=\"drop\"' --faults 'it'\\''s' --seed 1 --trace");
}

std::string mistake(const std::string& fault) {
  try {
    parse_faults("[[fault]]\n" + fault, "f.toml", 3);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "nothing is wrong";
}

TEST(Faults, MistakesNameLineKeyAndRemedy) {
  const std::string at = "at = 1\n";
  EXPECT_THAT(mistake("kind = \"crash\"\nnode = 1"),
              HasSubstr("f.toml:1: fault[0].at: is missing"));
  EXPECT_THAT(mistake(at + "kind = \"crush\"\nnode = 1"), HasSubstr("f.toml:3: fault[0].kind"));
  EXPECT_THAT(mistake(at + "kind = \"crash\"\nnode = 3"), HasSubstr("there are 3 nodes"));
  EXPECT_THAT(mistake(at + "kind = \"crash\"\nnodes = [1]"), HasSubstr("has `node`"));
  EXPECT_THAT(mistake(at + "kind = \"cut\"\nnodes = [1, 1]"), HasSubstr("two different nodes"));
  EXPECT_THAT(mistake(at + "kind = \"partition\"\nnodes = [0, 1, 2]"), HasSubstr("not all"));
  EXPECT_THAT(mistake(at + "kind = \"slow\"\nnode = 1"), HasSubstr("fault[0].factor: is missing"));
  EXPECT_THAT(mistake(at + "kind = \"busy\"\nnode = 1\nfactor = 2"), HasSubstr("only slow and"));
  EXPECT_THAT(mistake(at + "kind = \"leave\"\nnode = 1\nfor = 1"), HasSubstr("does not come back"));
  EXPECT_THAT(mistake(at + "kind = \"busy\"\nnode = 1\nfor = 0"), HasSubstr("more than 0"));
  EXPECT_THAT(mistake(at + "kind = \"busy\"\nnode = 1\nfro = 2"), HasSubstr("did you mean for?"));
  EXPECT_THAT(mistake(at + "kind = \"leave\"\nnode = 0"), HasSubstr("the coordinator"));
  EXPECT_THAT(mistake(at + "kind = \"crash\"\nnode = 0"), HasSubstr("the coordinator"));
}

constexpr const char* kConfig = R"([[tier]]
size = 1
[[tier]]
size = 3
strategy = "delayed"
staleness = 1
deadline = "1 s"
codec = "int4"
emulate = { rate = "8 Mbit/s", rtt = "20 ms", step = "10 ms", speeds = "1 1 0.5" }
)";

TEST(Scenario, ComesFromAConfiguration) {
  const Scenario s = random_scenario(parse(kConfig, "c.toml"), 5);
  EXPECT_EQ(s.nodes.size(), 3u);
  EXPECT_EQ(s.link.delay, 10'000);
  EXPECT_EQ(s.link.bytes_per_second, 1e6);
  EXPECT_EQ(s.nodes[0].step, 10'000);
  EXPECT_EQ(s.nodes[2].step, 20'000);
  EXPECT_EQ(s.policy.staleness, 1);
  EXPECT_EQ(s.policy.deadline, 1'000'000);
  EXPECT_TRUE(s.views);
  EXPECT_EQ(s.codec.kind, CodecKind::int4);
  EXPECT_THAT(s.to_text(), HasSubstr("codec int4 (residual auto, error_feedback 1.0, gamma 0.9)"));
  const Fault crash{100, FaultKind::crash, {1}, 1, 200};
  EXPECT_EQ(scripted_scenario(parse(kConfig, "c.toml"), {crash}, 5).faults,
            std::vector<Fault>{crash});
}

TEST(Scenario, WithoutViewsNobodyGoes) {
  std::string text = kConfig;
  text.erase(text.find("deadline = \"1 s\""), 16);
  const Config config = parse(text, "c.toml");
  EXPECT_NO_THROW(scripted_scenario(config, {{100, FaultKind::freeze, {1}, 1, 200}}, 5));
  EXPECT_THROW(scripted_scenario(config, {{100, FaultKind::crash, {1}, 1, 200}}, 5), ConfigError);
}

TEST(Scenario, WhatTrainingRefusesIsRefused) {
  std::string text = kConfig;
  text.replace(text.find("1 s"), 3, "90 ms");
  try {
    (void)random_scenario(parse(text, "c.toml"), 1);
    ADD_FAILURE() << "a deadline shorter than a heartbeat was accepted";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("time between two heartbeats"));
  }
}

TEST(Scenario, OneNodeIsNothingToSimulate) {
  EXPECT_THROW(random_scenario(parse("[[tier]]\nsize = 2", "c.toml"), 1), ConfigError);
}

}  // namespace
}  // namespace hybridsync
