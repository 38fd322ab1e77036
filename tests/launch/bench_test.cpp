#include "hybridsync/launch/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "hybridsync/config/error.h"
#include "hybridsync/config/load.h"
#include "hybridsync/launch/train_command.h"

namespace hybridsync {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Config config(const std::string& name, const std::string& text) { return parse(text, name); }

constexpr const char* kFour =
    "train.steps=10\ntrain.micro_batch=8\naccumulate.steps=3\n"
    "tier=[{size=2},{size=2}]\n";

TEST(Bench, CountsTheSamplesOfAllRanks) {
  EXPECT_EQ(total_samples(config("a.toml", kFour)), 10 * 8 * 3 * 4);
}

TEST(Bench, AcceptsEqualSamplesOfOtherShape) {
  check_equal_samples(
      {config("a.toml", kFour),
       config("b.toml", "train.steps=40\ntrain.micro_batch=8\naccumulate.steps=3\n")});
}

TEST(Bench, NamesBothConfigurationsAndTheirSamples) {
  try {
    check_equal_samples({config("a.toml", kFour), config("b.toml", "train.steps=1\n")});
    FAIL() << "accepted";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("b.toml trains on 32 samples, but a.toml on 960"));
  }
}

TEST(Bench, RefusesTwoConfigurationsOfOneName) {
  BenchOptions options;
  options.configs = {CONFIG_FOLDER "/single.toml", CONFIG_FOLDER "/../examples/single.toml"};
  std::ostringstream progress;
  EXPECT_THROW(bench(options, progress), ConfigError);
  EXPECT_EQ(progress.str(), "");
}

TEST(TrainCommand, RepeatsWhatTheUserSaid) {
  EXPECT_THAT(rank_argv({"a b.toml", {"train.lr=1", "train.seed=2"}, true, false}),
              ElementsAre("/proc/self/exe", "train", "a b.toml", "--set", "train.lr=1", "--set",
                          "train.seed=2", "--json"));
}

}  // namespace
}  // namespace hybridsync
