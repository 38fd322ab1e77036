#include "hybridsync/data/global_order.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "hybridsync/config/error.h"

namespace hybridsync {
namespace {

using testing::ElementsAre;

std::vector<int64_t> copy(std::span<const int64_t> samples) {
  return {samples.begin(), samples.end()};
}

TEST(SplitMix64, EqualsThePublishedSequence) {
  SplitMix64 random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(GlobalOrder, EqualsOneComputedByAnotherProgram) {
  GlobalOrder order(10, 4, 1);
  EXPECT_THAT(order.samples(0), ElementsAre(4, 2, 1, 3));
  EXPECT_THAT(order.samples(1), ElementsAre(7, 9, 5, 0));  // 6 and 8 are dropped
  EXPECT_THAT(order.samples(2), ElementsAre(3, 8, 0, 1));  // the second epoch
  EXPECT_THAT(GlobalOrder(10, 4, 2).samples(0), ElementsAre(9, 5, 3, 7));
}

TEST(GlobalOrder, DependsOnTheIndexAlone) {
  GlobalOrder straight(100, 7, 3);
  GlobalOrder jumping(100, 7, 3);
  std::vector<std::vector<int64_t>> seen;
  for (int64_t i = 0; i < 40; ++i) seen.push_back(copy(straight.samples(i)));
  for (int64_t i = 39; i >= 0; --i) EXPECT_EQ(copy(jumping.samples(i)), seen[i]) << i;
}

TEST(GlobalOrder, AnEpochHoldsNoSampleTwice) {
  GlobalOrder order(1000, 8, 5);
  ASSERT_EQ(order.micro_batches_per_epoch(), 125);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int64_t> seen;
    for (int64_t i = 0; i < 125; ++i) {
      for (int64_t sample : order.samples(epoch * 125 + i)) seen.insert(sample);
    }
    EXPECT_EQ(seen.size(), 1000u);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), 999);
  }
}

// Every rank with an order of its own, as in a run.
std::vector<std::vector<int64_t>> global_batch(int64_t step, int64_t ranks, int64_t accumulate) {
  std::vector<std::vector<int64_t>> batch;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    GlobalOrder order(101, 5, 9);
    for (int64_t i = 0; i < accumulate; ++i) {
      batch.push_back(copy(order.samples(micro_batch_index(step, i, rank, accumulate, ranks))));
    }
  }
  std::ranges::sort(batch);
  return batch;
}

TEST(GlobalOrder, EveryLayoutDealsTheSameMicroBatches) {
  for (int64_t step = 0; step < 12; ++step) {  // 20 per epoch: windows cross its end
    const auto alone = global_batch(step, 1, 8);
    EXPECT_EQ(alone.size(), 8u);
    EXPECT_EQ(global_batch(step, 2, 4), alone);
    EXPECT_EQ(global_batch(step, 4, 2), alone);
    EXPECT_EQ(global_batch(step, 8, 1), alone);
    EXPECT_NE(global_batch(step + 1, 8, 1), alone);
  }
}

TEST(GlobalOrder, AMicroBatchThatTheDataCannotFillIsRefused) {
  EXPECT_THROW(GlobalOrder(10, 11, 1), ConfigError);
  EXPECT_THROW(GlobalOrder(10, 0, 1), ConfigError);
  EXPECT_EQ(GlobalOrder(10, 10, 1).micro_batches_per_epoch(), 1);
}

}  // namespace
}  // namespace hybridsync
