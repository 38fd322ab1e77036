#include "hybridsync/launch/suite_results.h"

#include <gmock/gmock.h>

#include <cmath>

namespace hybridsync {
namespace {

using testing::HasSubstr;
using testing::Not;

// Synchronous and alone at two rates each, and one row; two seeds.
class SuiteResults : public testing::Test {
 protected:
  SuiteResults() {
    SuitePart part{.task = "cnn", .name = "steep", .toml = "[train]\nsteps = 4\n"};
    part.rows = {{"synchronous", {}, {0.1, 0.2}, Role::synchronous},
                 {"no exchange", {}, {0.1, 0.2}, Role::alone},
                 {"row", {"train.clip=1"}, {0.1}}};
    suite_ = {"small", {part}};
    runs_ = plan(suite_, {.seeds = 2});
    measured_.resize(runs_.size());
  }

  void set(const std::string& key, double rate, std::vector<double> losses) {
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].key != "cnn-steep-" + key || runs_[i].rate != rate) continue;
      const double loss = losses.at(runs_[i].seed - 1);
      measured_[i].state = std::isfinite(loss) ? RunState::done : RunState::diverged;
      measured_[i].loss = loss;
      measured_[i].steady = {4.8, 2.4};
    }
  }

  void set_all(double alone) {
    set("synchronous", 0.1, {2.0, 3.0});
    set("synchronous", 0.2, {1.0, NAN});  // better, where it does not diverge
    set("no-exchange", 0.1, {5.0, 5.0});
    set("no-exchange", 0.2, {2.0 * alone, 3.0 * alone});
    set("row", 0.1, {2.0 + 0.5 * (alone - 1), 3.0});
  }

  PartResult result() const { return part_results(suite_, runs_, measured_).at(0); }

  Suite suite_;
  std::vector<PlannedRun> runs_;
  std::vector<Measured> measured_;
};

TEST_F(SuiteResults, SharesArePairedBySeedAgainstTheBestRates) {
  set_all(1.5);
  const PartResult part = result();
  ASSERT_EQ(part.rows.size(), 3u);
  EXPECT_EQ(part.rows[0].rate, 0.1);
  EXPECT_EQ(part.rows[1].rate, 0.2);
  EXPECT_DOUBLE_EQ(part.cost_of_none.mean, 0.5);
  const RowResult& row = part.rows[2];
  EXPECT_DOUBLE_EQ(row.loss.mean, (2.25 + 3.0) / 2);
  EXPECT_DOUBLE_EQ(row.gap.mean, (0.125 + 0) / 2);
  EXPECT_DOUBLE_EQ(row.share.low, 0.75);
  EXPECT_DOUBLE_EQ(row.share.high, 1);
  EXPECT_DOUBLE_EQ(row.share.mean, 0.875);
  EXPECT_THAT(part_notes(part), HasSubstr("costs 50.00 % of the loss"));
}

TEST_F(SuiteResults, WhereExchangeIsWorthLittleThereAreNoShares) {
  set_all(1.019);
  EXPECT_FALSE(result().counts());
  EXPECT_THAT(part_notes(result()), HasSubstr("less than 2 %, so shares would be noise"));
  EXPECT_EQ(part_table(result()).rows[2].cells[5], "-");
  set_all(1.021);
  EXPECT_TRUE(result().counts());
  EXPECT_NE(part_table(result()).rows[2].cells[5], "-");
}

TEST_F(SuiteResults, ARunThatDivergedOrFailedIsAWordOfItsRow) {
  set_all(1.5);
  set("row", 0.1, {NAN, 3.0});
  EXPECT_EQ(part_table(result()).rows[2].cells[0], "row (1 diverged)");
  measured_.back().state = RunState::failed;
  EXPECT_EQ(part_table(result()).rows[2].cells[0], "row (1 diverged, 1 failed)");
  EXPECT_EQ(part_table(result()).rows[2].cells[2], "-");
}

TEST_F(SuiteResults, RowsWithoutARunAreLeftOut) {
  EXPECT_THAT(part_results(suite_, runs_, measured_), testing::IsEmpty());
  set("row", 0.1, {2.0, 3.0});
  EXPECT_EQ(result().rows.size(), 1u);
  EXPECT_THAT(part_notes(result()), HasSubstr("Without both references"));
  set("row", 0.1, {2.0, 3.0});
  measured_.back().state = RunState::missing;
  EXPECT_EQ(part_table(result()).rows[0].cells[0], "row (1 to come)");
}

TEST_F(SuiteResults, TheTextNamesWhereItComesFrom) {
  set_all(1.5);
  Origin origin{"hybridsync bench --suite small", "2030-01-02 03:04", "abc", "9.9"};
  const auto parts = part_results(suite_, runs_, measured_);
  EXPECT_THAT(
      results_markdown(suite_, origin, parts),
      HasSubstr("`hybridsync bench --suite small`, 2030-01-02 03:04, commit abc, torch 9.9."));
  origin.commit.clear();
  EXPECT_THAT(results_markdown(suite_, origin, parts), Not(HasSubstr("commit")));
  EXPECT_EQ(results_json(suite_, origin, parts)["parts"][0]["rows"][2]["share"]["mean"], 0.875);
}

}  // namespace
}  // namespace hybridsync
