#include "hybridsync/observe/share.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hybridsync {
namespace {

// Two nodes, six steps, a round at steps 2, 4 and 6; the last one is ten times as large. What node
// 1 owns, it sends in the step after.
std::vector<StepRecord> two_nodes() {
  std::vector<StepRecord> records;
  const auto add = [&](int node, int64_t step, int64_t sent, int64_t received) {
    StepRecord record;
    record.node = node;
    record.step = step;
    record.bytes_sent_slow = sent;
    record.bytes_received_slow = received;
    records.push_back(record);
  };
  for (const int64_t step : {2, 4}) {
    add(0, step, 30, 10);
    add(0, step + 1, 0, 20);
    add(1, step, 10, 30);
    add(1, step + 1, 20, 0);
  }
  add(0, 6, 300, 100);
  add(1, 6, 100, 300);
  add(1, 6, 200, 0);  // of finish(), also of step 6
  return records;
}

TEST(Share, SpreadIsMeanAndEnds) {
  const Spread spread = spread_of({3, 1, 5});
  EXPECT_EQ(spread.mean, 3);
  EXPECT_EQ(spread.low, 1);
  EXPECT_EQ(spread.high, 5);
  EXPECT_TRUE(std::isnan(spread_of({}).mean));
}

TEST(Share, GapIsAboveSynchronous) {
  EXPECT_DOUBLE_EQ(loss_gap(2.5, 2.0), 0.25);
  EXPECT_DOUBLE_EQ(loss_gap(2.0, 2.0), 0);
  EXPECT_DOUBLE_EQ(loss_gap(1.5, 2.0), -0.25);
}

TEST(Share, OfBenefitByHand) {
  EXPECT_DOUBLE_EQ(share_of_benefit(2.25, 2.5, 2.0), 0.5);
  EXPECT_DOUBLE_EQ(share_of_benefit(2.5, 2.5, 2.0), 0);
  EXPECT_DOUBLE_EQ(share_of_benefit(2.0, 2.5, 2.0), 1);
  EXPECT_DOUBLE_EQ(share_of_benefit(1.75, 2.5, 2.0), 1.5);   // better than synchronous
  EXPECT_DOUBLE_EQ(share_of_benefit(2.75, 2.5, 2.0), -0.5);  // worse than alone
}

TEST(Share, BitsWithoutTheLastRound) {
  // Rounds at 2 and 4 cover four steps: 120 bytes sent by two nodes, of 5 parameters.
  const Bits bits = steady_bits(two_nodes(), 6, 2, 5);
  EXPECT_DOUBLE_EQ(bits.sent, 120 * 8 / (2.0 * 4 * 5));
  EXPECT_DOUBLE_EQ(bits.received, 120 * 8 / (2.0 * 4 * 5));
}

TEST(Share, BitsOfTheWholeRun) {
  const Bits bits = whole_bits(two_nodes(), 6, 5);
  EXPECT_DOUBLE_EQ(bits.sent, 720 * 8 / (2.0 * 6 * 5));
  EXPECT_DOUBLE_EQ(bits.received, 520 * 8 / (2.0 * 6 * 5));
}

TEST(Share, NoRoundBeforeTheLastHasNoBits) {
  EXPECT_TRUE(std::isnan(steady_bits(two_nodes(), 6, 6, 5).sent));
  EXPECT_TRUE(std::isnan(steady_bits(two_nodes(), 6, 100, 5).received));
  EXPECT_TRUE(std::isnan(whole_bits({}, 6, 5).sent));
  EXPECT_TRUE(std::isnan(whole_bits(two_nodes(), 6, 0).sent));
}

TEST(Share, RingAllReduceOfFourNodes) {
  EXPECT_EQ(all_reduce_bits(4), 48);
  EXPECT_EQ(all_reduce_bits(2), 32);
  EXPECT_EQ(all_reduce_bits(1), 0);
}

}  // namespace
}  // namespace hybridsync
