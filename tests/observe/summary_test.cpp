#include "hybridsync/observe/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hybridsync {
namespace {

RunSummary run(const std::string& name, uint64_t seed, double seconds, int64_t slow) {
  RunSummary s{name, seed, 100, 6400, 0.5, 0.875, seconds, slow, 2'000'000, 0.5, 1, 100};
  s.folder = "runs/" + name;
  return s;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(Summary, HasExactlyTheKeysOfBench) {
  EXPECT_THAT(
      keys_of(to_json(run("sync", 1, 10, 0))),
      testing::ElementsAre("name", "seed", "steps", "samples", "final_loss", "final_accuracy",
                           "seconds", "bytes_sent_slow", "bytes_sent_fast", "utilisation",
                           "k_final", "rounds", "contributed", "applied", "returned", "dropped",
                           "lost", "skipped", "mismatches", "ages", "folder"));
}

TEST(Summary, SurvivesJson) {
  RunSummary s = run("sync", 7, 12.5, 123'456'789'012);
  s.k_final = 8;
  s.final_accuracy = std::nan("");
  s.contributed = 21;
  s.applied = 15;
  s.returned = 1;
  s.dropped = 2;
  s.lost = 3;
  s.skipped = 4;
  s.mismatches = 5;
  s.ages = {12, 2, 1};
  const Json json = Json::parse(dump(to_json(s)));
  EXPECT_TRUE(json.at("final_accuracy").is_null());
  const RunSummary back = summary_from_json(json);
  EXPECT_TRUE(std::isnan(back.final_accuracy));
  EXPECT_EQ(dump(to_json(back)), dump(to_json(s)));
  EXPECT_EQ(back.bytes_sent_slow, 123'456'789'012);
  EXPECT_EQ(back.ages, s.ages);
  EXPECT_EQ(back.lost, 3);
}

TEST(Summary, OlderOnesSayNothingOfContributions) {
  Json json = to_json(run("sync", 7, 12.5, 1));
  for (const char* key :
       {"contributed", "applied", "returned", "dropped", "lost", "skipped", "mismatches", "ages"})
    json.erase(key);
  EXPECT_FALSE(summary_from_json(json).lagged());
  json.erase("rounds");
  EXPECT_THROW(summary_from_json(json), Json::exception);
}

TEST(Summary, OnlyARunThatLaggedAddsColumns) {
  RunSummary all = run("periodic", 1, 10, 0);
  all.applied = 400;
  all.ages = {400};
  RunSummary late = run("delayed", 1, 10, 0);
  late.ages = {150, 30, 20};
  late.dropped = 3;
  late.lost = 2;
  EXPECT_FALSE(all.lagged());
  EXPECT_TRUE(late.lagged());
  const Table table = summary_table({all, late});
  const auto last = [&](int row) {
    return std::vector<std::string>(table.rows[row].cells.end() - 3, table.rows[row].cells.end());
  };
  EXPECT_THAT(std::vector<std::string>(table.header.end() - 3, table.header.end()),
              testing::ElementsAre("age", "oldest", "lost"));
  EXPECT_THAT(last(0), testing::ElementsAre("0.00", "0", "0"));
  EXPECT_THAT(last(1), testing::ElementsAre("0.35", "2", "5"));
  EXPECT_EQ(summary_table({all}).header.back(), "rounds");
}

TEST(Summary, OneRunHasNoRatios) {
  EXPECT_EQ(
      to_text(summary_table({run("sync", 1, 12.34, 4'000'000)})),
      "run   samples    loss  accuracy    time  slow link  in nodes  utilisation  K  rounds\n"
      "sync     6400  0.5000   87.50 %  12.3 s    4.00 MB   2.00 MB       50.0 %  1     100\n");
}

TEST(Summary, RatiosAreAgainstTheFirstRowPerSample) {
  RunSummary hybrid = run("hybrid", 1, 10, 1'000'000);
  hybrid.samples = 12800;  // twice the samples in the same time: twice as fast
  EXPECT_EQ(to_text(summary_table({run("sync", 1, 10, 4'000'000), hybrid})),
            "run     samples    loss  accuracy    time  speed-up  slow link  traffic  in nodes  "
            "utilisation  K  rounds\n"
            "sync       6400  0.5000   87.50 %  10.0 s     1.00x    4.00 MB    1.00x   2.00 MB  "
            "     50.0 %  1     100\n"
            "hybrid    12800  0.5000   87.50 %  10.0 s     2.00x    1.00 MB    0.12x   2.00 MB  "
            "     50.0 %  1     100\n");
}

TEST(Summary, SeedsGiveMeanAndSpread) {
  const Table table = summary_table({run("sync", 1, 10, 0), run("sync", 2, 30, 0)});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].cells[0], "sync (2 seeds)");
  EXPECT_EQ(table.rows[0].cells[4], "20.0 s");
  EXPECT_TRUE(table.rows[1].spread);
  EXPECT_EQ(table.rows[1].cells[4], "10.0 s..30.0 s");
  EXPECT_EQ(table.rows[1].cells[1], "");  // samples are equal
}

TEST(Summary, ComparesMeans) {
  const auto c = compare({run("sync", 1, 40, 8'000), run("sync", 2, 20, 8'000),
                          run("hybrid", 1, 10, 1'000), run("hybrid", 2, 10, 1'000)});
  ASSERT_EQ(c.size(), 2u);
  EXPECT_DOUBLE_EQ(c[1].speed_up, 3);
  EXPECT_DOUBLE_EQ(c[1].traffic, 0.125);
  EXPECT_DOUBLE_EQ(c[1].accuracy_gain, 0);
}

TEST(Summary, NothingSentByTheFirstGivesNoTrafficRatio) {
  const Table table = summary_table({run("one node", 1, 10, 0), run("two nodes", 1, 10, 500)});
  ASSERT_EQ(table.header[7], "traffic");
  EXPECT_EQ(table.rows[1].cells[7], "-");
}

}  // namespace
}  // namespace hybridsync
