// Launchers' variables: good ones, contradictions, and a run that is not the configuration's.
#include "hybridsync/config/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "hybridsync/config/load.h"
#include "tests/config/message_of.h"

namespace hybridsync {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* kNames[] = {
    "RANK",        "WORLD_SIZE",       "LOCAL_RANK",        "GROUP_RANK",           "MASTER_ADDR",
    "MASTER_PORT", "LOCAL_WORLD_SIZE", "HYBRIDSYNC_RUN_ID", "HYBRIDSYNC_RUN_FOLDER"};

class EnvironmentTest : public testing::Test {
 protected:
  EnvironmentTest() { clear(); }
  ~EnvironmentTest() override { clear(); }

  static void clear() {
    for (const char* name : kNames) unsetenv(name);
  }

  // Rank 3 of 2 nodes with 2 ranks each, with changes; an empty value unsets.
  static Environment read(const Variables& changes = {}) {
    Variables all = {{"RANK", "3"},
                     {"WORLD_SIZE", "4"},
                     {"LOCAL_RANK", "1"},
                     {"GROUP_RANK", "1"},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", "29500"},
                     {"LOCAL_WORLD_SIZE", "2"},
                     {"HYBRIDSYNC_RUN_ID", "r1"}};
    for (const auto& [name, value] : changes) all[name] = value;
    clear();
    for (const auto& [name, value] : all) {
      if (!value.empty()) setenv(name.c_str(), value.c_str(), 1);
    }
    return from_environment();
  }

  static std::string mistake(const Variables& changes) {
    return message_of([&] { read(changes); });
  }
};

TEST_F(EnvironmentTest, NothingIsOneProcess) {
  const Environment e = from_environment();
  EXPECT_EQ(e.rank, 0);
  EXPECT_EQ(e.world_size, 1);
  EXPECT_EQ(e.local_world_size, 1);
  EXPECT_EQ(e.rendezvous, "");
}

TEST_F(EnvironmentTest, ReadsALaunchersVariables) {
  const Environment e = read({{"HYBRIDSYNC_RUN_FOLDER", "runs/a"}});
  EXPECT_EQ(e.rank, 3);
  EXPECT_EQ(e.world_size, 4);
  EXPECT_EQ(e.local_rank, 1);
  EXPECT_EQ(e.local_world_size, 2);
  EXPECT_EQ(e.node, 1);
  EXPECT_EQ(e.rendezvous, "127.0.0.1:29500");
  EXPECT_EQ(e.run_id, "r1");
  EXPECT_EQ(e.run_folder, "runs/a");
  EXPECT_EQ(read({{"MASTER_ADDR", "::1"}}).rendezvous, "[::1]:29500");
}

TEST_F(EnvironmentTest, OneRankNeedsNoRendezvous) {
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "1", 1);
  EXPECT_EQ(from_environment().world_size, 1);
}

TEST_F(EnvironmentTest, OneNodeNeedsNoGroupRank) {
  EXPECT_EQ(read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"GROUP_RANK", ""}}).node, 0);
}

TEST_F(EnvironmentTest, MissingHalves) {
  const std::string remedy = "; start through a launcher that sets both, or unset all";
  EXPECT_EQ(mistake({{"WORLD_SIZE", ""}}), "WORLD_SIZE is not set, but RANK is 3" + remedy);
  EXPECT_EQ(mistake({{"RANK", ""}}), "RANK is not set, but WORLD_SIZE is 4" + remedy);
  EXPECT_EQ(mistake({{"LOCAL_WORLD_SIZE", ""}}),
            "LOCAL_WORLD_SIZE is not set, but WORLD_SIZE is 4" + remedy);
  EXPECT_EQ(mistake({{"LOCAL_RANK", ""}}),
            "LOCAL_RANK is not set, but LOCAL_WORLD_SIZE is 2" + remedy);
  EXPECT_EQ(mistake({{"GROUP_RANK", ""}}),
            "GROUP_RANK is not set, but WORLD_SIZE is 4 and LOCAL_WORLD_SIZE is 2" + remedy);
  EXPECT_EQ(mistake({{"MASTER_ADDR", ""}}),
            "MASTER_ADDR is not set, but WORLD_SIZE is 4; set it to 127.0.0.1");
  EXPECT_EQ(mistake({{"MASTER_PORT", ""}}), "MASTER_PORT is not set, but WORLD_SIZE is 4" + remedy);
  EXPECT_EQ(
      mistake({{"HYBRIDSYNC_RUN_ID", ""}}),
      "HYBRIDSYNC_RUN_ID is not set, but WORLD_SIZE is 4; set it to one word, the same on all "
      "ranks and new for each run");
}

TEST_F(EnvironmentTest, ContradictionsShowBothValues) {
  EXPECT_EQ(mistake({{"RANK", "4"}}), "RANK is 4, but WORLD_SIZE is 4; ranks are counted from 0");
  EXPECT_EQ(mistake({{"LOCAL_RANK", "2"}}),
            "LOCAL_RANK is 2, but LOCAL_WORLD_SIZE is 2; ranks are counted from 0");
  EXPECT_EQ(mistake({{"LOCAL_WORLD_SIZE", "8"}}),
            "LOCAL_WORLD_SIZE is 8, but WORLD_SIZE is 4; a node has no more ranks than the run");
}

TEST_F(EnvironmentTest, ValuesThatCannotBe) {
  EXPECT_EQ(mistake({{"RANK", "one"}}), "RANK is 'one', but must be an integer of at least 0");
  EXPECT_EQ(mistake({{"RANK", "-1"}}), "RANK is '-1', but must be an integer of at least 0");
  EXPECT_EQ(mistake({{"WORLD_SIZE", "0"}}), "WORLD_SIZE is 0, but must be at least 1");
  EXPECT_EQ(mistake({{"LOCAL_WORLD_SIZE", "0"}}), "LOCAL_WORLD_SIZE is 0, but must be at least 1");
  EXPECT_EQ(mistake({{"MASTER_PORT", "70000"}}),
            "MASTER_PORT is 70000, but must be from 1 to 65535");
  EXPECT_EQ(
      mistake({{"MASTER_ADDR", "10.0.0.7"}}),
      "MASTER_ADDR is 10.0.0.7, but only ranks on this machine can join in this version; set it "
      "to 127.0.0.1");
}

Config two_by_two() { return parse("[[tier]]\nsize = 2\n[[tier]]\nsize = 2\n", "h.toml"); }

TEST_F(EnvironmentTest, CheckAcceptsTheConfigurationsRanks) {
  EXPECT_EQ(message_of([] { check(read(), two_by_two()); }), "");
  EXPECT_EQ(message_of([] { check(Environment{}, Config{}); }), "");
}

std::string mismatch(Environment e) {
  return message_of([&] { check(e, two_by_two()); });
}

TEST_F(EnvironmentTest, CheckShowsBothSides) {
  Environment e = read();
  e.world_size = 8;
  EXPECT_EQ(
      mismatch(e),
      "WORLD_SIZE is 8, but h.toml has 4 ranks (2 nodes of 2 ranks); change the tiers' sizes or "
      "start 4");
  e = read();
  e.local_world_size = 4;
  EXPECT_EQ(
      mismatch(e),
      "LOCAL_WORLD_SIZE is 4, but h.toml has 2 nodes of 2 ranks; change tier[0].size or start 2 "
      "per node");
  e = read();
  e.node = 2;
  EXPECT_EQ(mismatch(e),
            "GROUP_RANK is 2, but h.toml has 2 nodes of 2 ranks; nodes are counted from 0");
  e = read();
  e.local_rank = 2;
  EXPECT_EQ(mismatch(e), "LOCAL_RANK is 2, but LOCAL_WORLD_SIZE is 2; ranks are counted from 0");
}

}  // namespace
}  // namespace hybridsync
