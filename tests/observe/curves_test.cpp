#include "hybridsync/observe/curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace hybridsync {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

const double kNan = std::nan("");

StepRecord record(int node, int64_t step, double loss, int64_t bytes) {
  StepRecord r;
  r.node = node;
  r.step = step;
  r.samples = step * 10;
  r.seconds = double(step) + 0.1 * node;
  r.loss = loss;
  r.bytes_sent_slow = bytes;
  r.compute_seconds = 1 + node;
  return r;
}

TEST(Curves, NodesOfAStepAreMerged) {
  const auto merged = merge_nodes(
      {record(0, 2, 1, 5), record(0, 1, 2, 5), record(1, 1, 4, 7), record(1, 2, kNan, 7)});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].step, 1);
  EXPECT_EQ(merged[0].loss, 3);
  EXPECT_EQ(merged[1].loss, 1);  // a skipped node's loss does not count
  EXPECT_EQ(merged[0].bytes_sent_slow, 12);
  EXPECT_EQ(merged[0].seconds, 1.1);
  EXPECT_EQ(merged[0].samples, 10);
  EXPECT_EQ(time_by_part(merged).compute, 1.5);
}

TEST(Curves, TheRoundOfFinishBelongsToTheLastStep) {
  StepRecord closing = record(0, 2, 1, 100);
  closing.compute_seconds = 0;
  closing.exchange_seconds = 4;
  closing.seconds = 9;
  const auto merged = merge_nodes({record(0, 1, 2, 5), record(0, 2, 3, 5), closing});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[1].bytes_sent_slow, 105);
  EXPECT_EQ(merged[1].loss, 3);
  EXPECT_EQ(merged[1].compute_seconds, 1);
  EXPECT_EQ(merged[1].exchange_seconds, 4);
  EXPECT_EQ(merged[1].seconds, 9);
}

TEST(Curves, NodesOfDifferentSpeedAreMergedByTime) {
  std::vector<StepRecord> steps;
  for (int64_t step : {1, 2, 3, 4}) steps.push_back(record(0, step, 1, 5));
  for (int64_t step : {1, 2, 3}) {
    StepRecord slow = record(1, step, 3, 7);
    slow.seconds = 1.5 * double(step);  // 1.5, 3, 4.5: in steps 2, 3 and after the last
    slow.samples = 1000;                // of the whole run, so far along
    steps.push_back(slow);
  }
  for (StepRecord& r : steps) r.mode = "delayed";
  const auto merged = merge_nodes(steps);
  ASSERT_EQ(merged.size(), 4u);
  std::vector<double> losses, bytes;
  for (const StepRecord& r : merged) losses.push_back(r.loss);
  for (const StepRecord& r : merged) bytes.push_back(double(r.bytes_sent_slow));
  EXPECT_THAT(losses, ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(bytes, ElementsAre(5, 12, 12, 12));
  EXPECT_EQ(merged[0].samples, 10);
}

TEST(Curves, ThinningAverages) {
  EXPECT_THAT(thinned({1, 2, 3, 4, 5, 6}, 3), ElementsAre(1.5, 3.5, 5.5));
  EXPECT_THAT(thinned({1, 3, kNan, 6}, 2), ElementsAre(2, 6));
  EXPECT_THAT(thinned({1, 2}, 3), ElementsAre(1, 2));
  std::vector<double> many(12'345);
  std::iota(many.begin(), many.end(), 0);
  EXPECT_EQ(thinned(many, 2000).size(), 2000u);
}

TEST(Curves, SmoothingKeepsAConstantAndStepsOverNan) {
  EXPECT_THAT(smoothed({2, 2, kNan, 2}, 5),
              ElementsAre(DoubleEq(2), DoubleEq(2), DoubleEq(2), DoubleEq(2)));
  EXPECT_THAT(smoothed({1, 5}, 1), ElementsAre(1, 5));
  // keep = 1/2: (0 * 1/4 + 3 * 1/2) / (3/4)
  EXPECT_THAT(smoothed({0, 3}, 3), ElementsAre(0, DoubleEq(2)));
  EXPECT_TRUE(std::isnan(smoothed({kNan}, 3)[0]));
}

TEST(Curves, BytesAddUpAndEvaluationsFindTheirs) {
  const auto merged = merge_nodes({record(0, 1, 1, 5), record(0, 2, 1, 0), record(0, 3, 1, 5)});
  const Curves c = curves_of(merged, {{2, 20, 2.0, 0.5, 0.9}, {3, 30, 3.0, 0.4, 0.91}}, 100);
  EXPECT_THAT(c.bytes, ElementsAre(5, 5, 10));
  EXPECT_THAT(c.eval_bytes, ElementsAre(5, 10));
  EXPECT_THAT(c.eval_accuracy, ElementsAre(0.9, 0.91));
  EXPECT_EQ(c.steps_per_point, 1);
}

TEST(Curves, NothingRecordedIsNoCurve) {
  const Curves c = curves_of({}, {{2, 20, 2.0, 0.5, 0.9}}, 100);
  EXPECT_TRUE(c.loss.empty());
  EXPECT_THAT(c.eval_bytes, ElementsAre(0));
  EXPECT_EQ(time_by_part({}).total(), 0);
}

}  // namespace
}  // namespace hybridsync
