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
  EXPECT_EQ(memory["anchor"], 12000);
  EXPECT_EQ(memory["outer state"], 12000);
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

TEST(DryRun, PrintsReasons) {
  const std::string text = to_text(outlook(parse(kThreeNodes, "a.toml"), needs(6000)));
  EXPECT_THAT(text, HasSubstr("\nmemory per rank\n"));
  EXPECT_THAT(text, HasSubstr("overlap = \"next_window\""));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace hybridsync
