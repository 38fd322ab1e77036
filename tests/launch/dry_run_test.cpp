#include "hybridsync/launch/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hybridsync/config/load.h"

namespace hybridsync {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ModelNeeds needs(int64_t parameters) {
  ModelNeeds needs;
  needs.layout = plan_buckets({{Real::f32, parameters}}, 4 << 20);
  needs.buffer_bytes = 100;
  needs.data_bytes = 5000;
  return needs;
}

Json figures(const std::string& text, const ModelNeeds& model) {
  return to_json(outlook(parse(text, "a.toml"), model));
}

TEST(DryRun, OneRankNeedsNoRounds) {
  const Json json = figures("train.momentum = 0.0", needs(1600));
  EXPECT_FALSE(json.contains("between nodes"));
  const Json& memory = json["memory per rank"];
  EXPECT_EQ(memory["parameters"], 6500);
  EXPECT_EQ(memory["gradients"], 6400);
  EXPECT_EQ(memory["optimizer state"], 0);
  EXPECT_FALSE(memory.contains("anchor"));
  EXPECT_EQ(memory["sum"], 6500 + 6400 + 5000);
}

constexpr const char* kThreeNodes =
    "train.optimizer = 'adam'\n"
    "tier = [{size = 2, overlap = 'next_window', timeout = 90}, {size = 3, strategy = 'periodic', "
    "every = 5, outer = {momentum = 0.9}, emulate = {rate = '1 Mbit/s', rtt = '200 ms'}}]";

TEST(DryRun, CountsWhatOptionsAdd) {
  const Json json = figures(kThreeNodes, needs(6000));
  const Json& memory = json["memory per rank"];
  EXPECT_EQ(memory["gradients"], 2 * 24000);
  EXPECT_EQ(memory["optimizer state"], 2 * 24000);
  EXPECT_EQ(memory["anchor"], 3 * 12000);
  EXPECT_EQ(memory["outer state"], 12000);
  EXPECT_EQ(memory["rounds in flight"], 2 * 12000);
  EXPECT_FALSE(memory.contains("result log"));
  EXPECT_FALSE(json.contains("rounds"));
  EXPECT_EQ(json["limits of waits"]["a silent rank of the node"], 90);
  EXPECT_TRUE(json["limits of waits"]["a silent node"].is_null());
}

TEST(DryRun, ForeseesTheTrafficOfARound) {
  const Json json = figures(kThreeNodes, needs(96000));
  const Json& between = json["between nodes"];
  const double sent = between["sent by a node per round"];
  // Owners share the work evenly, but for rounding to whole fragments: 2 b N (M - 1) / M.
  EXPECT_NEAR(sent, 2 * 4 * 96000 * 2 / 3., 2000);
  EXPECT_EQ(between["sent by a node per step"], sent / 5);
  EXPECT_DOUBLE_EQ(between["a round on the emulated link"], sent * 8 / 1e6 + 0.2);
}

TEST(DryRun, ForeseesWhatCodesSave) {
  const std::string tiers =
      "tier = [{size = 2}, {size = 3, strategy = 'periodic', every = 5, codec = 'int4'}]";
  const Json json = figures(tiers, needs(96000));
  const Json& between = json["between nodes"];
  EXPECT_EQ(between["bits per number"], 4 + 1 / 64.);
  EXPECT_NEAR(double(between["sent by a node per round"]), 2 * (4 + 1 / 64.) / 8 * 96000 * 2 / 3.,
              300);
  EXPECT_EQ(json["memory per rank"]["residuals"], (2 + 2 / 3.) * 4 * 96000 / 2);
  EXPECT_FALSE(figures(kThreeNodes, needs(6000))["between nodes"].contains("bits per number"));
}

TEST(DryRun, OneAnchorIsEnoughForGradients) {
  const Json json = figures("tier = [{size = 2}, {size = 3}]", needs(6000));
  EXPECT_EQ(json["memory per rank"]["anchor"], 12000);
  EXPECT_EQ(json["between nodes"]["steps between rounds"], 1);
}

TEST(DryRun, ForeseesCodedGradients) {
  const std::string tiers = "tier = [{size = 2}, {size = 3, strategy = 'top_k'";
  const Json json = figures(tiers + ", density_warmup = 60}]", needs(96000));
  const Json& between = json["between nodes"];
  EXPECT_NEAR(between["bits per number"], 0.01 * 16 + 0.0808, 1e-3);
  EXPECT_EQ(between["density at first"], "0.25, 0.0625, 0.0156");
  EXPECT_NEAR(double(between["sent by a node per step"]), 2 * 0.2408 / 8 * 96000 * 2 / 3., 100);
  const Json& memory = json["memory per rank"];
  EXPECT_EQ(memory["residuals"], (3 + 2 / 3.) * 4 * 96000 / 2);
  EXPECT_EQ(memory["optimizer state"], 0) << "the momentum is at the senders";
  EXPECT_EQ(figures("train.weight_decay = 0.1\n" + tiers + "}]",
                    needs(96000))["memory per rank"]["optimizer state"],
            4 * 96000);
  EXPECT_FALSE(figures(tiers + "}]", needs(96000))["between nodes"].contains("density at first"));
  const Json adam =
      figures("train.optimizer = 'adam'\n" + tiers + ", momentum_correction = false}]",
              needs(96000))["memory per rank"];
  EXPECT_EQ(adam["residuals"], (1 + 2 / 3.) * 4 * 96000 / 2);
  EXPECT_EQ(adam["optimizer state"], 2 * 4 * 96000);
}

std::string delayed(const std::string& keys) {
  return "tier = [{size = 2}, {size = 3, strategy = 'delayed', every = 5, " + keys + "}]";
}

TEST(DryRun, CountsWhatDelayedHolds) {
  const Json json = figures(delayed("staleness = 2"), needs(6000));
  EXPECT_EQ(json["between nodes"]["steps between rounds"], 5);
  const Json& memory = json["memory per rank"];
  EXPECT_EQ(memory["anchor"], 3 * 12000);
  EXPECT_EQ(memory["rounds in flight"], (3 + 1) * 12000);
  EXPECT_EQ(memory["result log"], 4 * 12000 / 3);
  EXPECT_EQ(memory["contributions to restore"], 12 * 12000);
  double sum = 0;
  for (const auto& [name, value] : memory.items()) sum += name == "sum" ? 0 : value.get<double>();
  EXPECT_EQ(memory["sum"], sum);
}

TEST(DryRun, DerivesWhatRoundsMayDo) {
  const Json rounds = figures(delayed("staleness = 2, deadline = '2 s', late = 'return', "
                                      "emulate = {rtt = '200 ms'}"),
                              needs(6000))["rounds"];
  EXPECT_EQ(rounds["staleness"], 2);
  EXPECT_EQ(rounds["deadline"], 2);
  EXPECT_EQ(rounds["quorum"], 2);
  EXPECT_EQ(rounds["late"], "return");
  EXPECT_EQ(rounds["round trip"], 0.2);
  EXPECT_EQ(rounds["grace"], 0.4);
  EXPECT_EQ(rounds["remind_after"], 4);
  EXPECT_EQ(rounds["heartbeat"], 0.2);
  EXPECT_EQ(rounds["suspect_after"], 1);
  EXPECT_EQ(rounds["results kept"], 4);
  EXPECT_EQ(rounds["unresolved contributions"], 3);
  EXPECT_EQ(rounds.size(), 11u);
}

TEST(DryRun, AQuorumIsANumberOfNodes) {
  const auto quorum = [](const std::string& value) {
    return figures(delayed("quorum = " + value), needs(6000))["rounds"]["quorum"].get<int>();
  };
  EXPECT_EQ(quorum("'all'"), 3);
  EXPECT_EQ(quorum("'majority'"), 2);
  EXPECT_EQ(quorum("1"), 1);
}

TEST(DryRun, ASilentNodeIsSkippedOnlyWithADeadline) {
  const auto limits = [](const std::string& keys) {
    return figures(delayed(keys), needs(6000))["limits of waits"];
  };
  const Json with = limits("staleness = 1, deadline = '2 s', emulate = {rtt = '200 ms'}");
  EXPECT_EQ(with["a node behind"], 2);
  EXPECT_EQ(with["a silent node"], 2);
  const Json without = limits("staleness = 1");
  EXPECT_FALSE(without.contains("a node behind"));
  EXPECT_TRUE(without["a silent node"].is_null());
}

TEST(DryRun, SaysWhatTheStartWillChangeAndRefuse) {
  const auto text = [](const std::string& keys) {
    return to_text(outlook(parse(delayed("staleness = 1, " + keys), "a.toml"), needs(6000)));
  };
  const std::string unknown = text("deadline = '400 ms'");
  EXPECT_THAT(unknown, HasSubstr("(not known yet; the measured one replaces it at start"));
  EXPECT_THAT(unknown, Not(HasSubstr("the run would end")));
  const std::string emulated = text("deadline = '400 ms', emulate = {rtt = '200 ms'}");
  EXPECT_THAT(emulated, HasSubstr("(emulated; the measured one replaces it at start"));
  EXPECT_THAT(emulated, HasSubstr("the run would end: a.toml: tier[1].deadline = \"400 ms\": "));
}

TEST(DryRun, PrintsReasons) {
  const std::string text = to_text(outlook(parse(kThreeNodes, "a.toml"), needs(6000)));
  EXPECT_THAT(text, HasSubstr("\nmemory per rank\n"));
  EXPECT_THAT(text, HasSubstr("overlap = \"next_window\""));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace hybridsync
