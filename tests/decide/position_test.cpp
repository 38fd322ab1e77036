// Where training stands: when it contributes, what a contribution says, and when it waits.
#include "hybridsync/decide/position.h"

#include <gtest/gtest.h>

namespace hybridsync {
namespace {

constexpr Learned kStep{4, 5, 8, 4};

Position after(int steps, Version version = 0) {
  Position p;
  p.move(version);
  for (int i = 0; i < steps; ++i) p.step(kStep);
  return p;
}

TEST(Position, AContributionSaysWhatWasLearnedSinceTheLast) {
  Position p = after(3, 7);
  p.step({0, 6, 0, 0});  // skipped: trained on, nothing learned
  const Contribution c = p.contribute();
  EXPECT_EQ(c.base, 7);
  EXPECT_EQ(c.at, 7);
  EXPECT_EQ(c.weight, 12);
  EXPECT_EQ(c.samples, 21);
  EXPECT_EQ(c.steps, 4);
  EXPECT_EQ(c.loss_sum, 24);
  EXPECT_EQ(c.loss_weight, 12);
  EXPECT_EQ(p.since(), Learned{});
  EXPECT_EQ(p.steps(), 0);
  EXPECT_EQ(p.unresolved(), 1);
}

TEST(Position, BaseIsTheOldestVersionThatAStepWasComputedOn) {
  Position p = after(1, 2);
  p.move(3);
  p.step(kStep);
  p.move(4);
  const Contribution c = p.contribute();
  EXPECT_EQ(c.base, 2);
  EXPECT_EQ(c.at, 4);
  p.move(5);
  p.step(kStep);
  EXPECT_EQ(p.contribute().base, 5);
}

TEST(Position, WithoutStepsItIsBasedOnWhatThereIs) {
  Position p = after(1, 2);
  (void)p.contribute();
  p.move(6);
  const Contribution c = p.contribute();
  EXPECT_EQ(c.base, 6);
  EXPECT_EQ(c.weight, 0);
}

TEST(Position, IsDueByItsIntervalOrByCall) {
  EXPECT_FALSE(after(3).due(4, false));
  EXPECT_TRUE(after(4).due(4, false));
  EXPECT_TRUE(after(3).due(4, false, 1));
  EXPECT_TRUE(after(1).due(4, true));
  EXPECT_FALSE(after(0).due(4, true)) << "with nothing to give";
  EXPECT_TRUE(after(0).due(4, true, 1));
}

TEST(Position, ContributesOncePerVersion) {
  Position p = after(1);
  ASSERT_TRUE(p.may_contribute(5));
  (void)p.contribute();
  EXPECT_FALSE(p.may_contribute(5));
  p.move(1);
  EXPECT_TRUE(p.may_contribute(5));
}

TEST(Position, KeepsAtMostOneMoreUnresolvedThanTheStaleness) {
  for (const int s : {0, 1, 3}) {
    Position p;
    for (int i = 0; i <= s; ++i) {
      p.move(i);
      ASSERT_TRUE(p.may_contribute(s)) << s;
      EXPECT_FALSE(p.must_wait(4, s)) << s;
      (void)p.contribute();
    }
    p.move(s + 1);
    EXPECT_FALSE(p.may_contribute(s)) << s;
    EXPECT_TRUE(p.must_wait(4, s)) << s;
    p.settle(1);
    EXPECT_TRUE(p.may_contribute(s)) << s;
    EXPECT_FALSE(p.must_wait(4, s)) << s;
  }
}

TEST(Position, WaitsWhenSoManyIntervalsHavePassedSinceTheNewestResult) {
  Position p = after(4);
  (void)p.contribute();
  for (int i = 0; i < 3; ++i) p.step(kStep);
  EXPECT_FALSE(p.must_wait(4, 1));
  EXPECT_TRUE(p.must_wait(4, 1, 1));
  p.step(kStep);
  EXPECT_TRUE(p.must_wait(4, 1));
  EXPECT_FALSE(p.must_wait(4, 2));
  p.move(1);
  EXPECT_FALSE(p.must_wait(4, 1)) << "counted anew";
}

TEST(Position, ACalledNodeDoesNotWaitForBeingEarly) {
  Position p = after(7);  // of 8 on this version
  (void)p.contribute();   // called before its interval was over
  p.step(kStep);
  EXPECT_FALSE(p.must_wait(4, 1)) << "8 steps on this version, but only one of a new interval";
}

TEST(Position, WhatComesBackIsProgressAgainAndOpensItsVersion) {
  Position p = after(2, 3);
  const Contribution c = p.contribute();
  p.step(kStep);
  p.take_back(c, true);
  EXPECT_EQ(p.unresolved(), 0);
  EXPECT_EQ(p.steps(), 3);
  EXPECT_EQ(p.since(), (Learned{12, 15, 24, 12}));
  EXPECT_TRUE(p.may_contribute(0)) << "on top of the same version";
}

TEST(Position, TellsTheLearningRateOfItsNewestStep) {
  Position p;
  EXPECT_EQ(p.contribute().lr, 0);
  p.move(1);
  for (double lr : {0.2, 0.1, 0.0}) p.step({4, 5, 8, 4, lr});
  const Contribution c = p.contribute();
  EXPECT_EQ(c.lr, 0.1) << "the last step was skipped";
  p.take_back(c, true);
  EXPECT_EQ(p.since().lr, 0.1);
  p.step({4, 5, 8, 4, 0.05});
  p.take_back(c, false);
  EXPECT_EQ(p.contribute().lr, 0.05) << "what comes back is older";
}

TEST(Position, WhatComesBackAloneIsAsOldAsItsOffer) {
  Position p = after(2, 3);
  const Contribution c = p.contribute();
  p.move(9);
  p.take_back(c, true);
  const Contribution again = p.contribute();
  EXPECT_EQ(again.base, 9);
  EXPECT_EQ(again.weight, c.weight);
  EXPECT_EQ(again.samples, c.samples);
  EXPECT_EQ(again.steps, c.steps);
}

TEST(Position, WhatWasAppliedAndIsRestoredWasNotUnresolved) {
  Position p = after(2, 3);
  const Contribution c = p.contribute();
  p.move(4);
  p.settle(1);
  p.move(3);
  p.take_back(c, false);
  EXPECT_EQ(p.unresolved(), 0);
  EXPECT_EQ(p.since().weight, 8);
}

TEST(Position, WhatIsDroppedIsGoneAndOpensItsVersion) {
  Position p = after(2, 3);
  p.drop(p.contribute());
  EXPECT_EQ(p.unresolved(), 0);
  EXPECT_EQ(p.since(), Learned{});
  EXPECT_EQ(p.steps(), 0);
  EXPECT_TRUE(p.may_contribute(0));
}

TEST(Position, AnOlderLineageOpensItsVersionsAndMakesProgressNoYounger) {
  Position p = after(1, 5);
  (void)p.contribute();
  p.settle(1);
  p.step(kStep);
  p.move(4);
  EXPECT_TRUE(p.may_contribute(0));
  const Contribution c = p.contribute();
  EXPECT_EQ(c.at, 4);
  EXPECT_EQ(c.base, 4) << "never newer than what it is offered on";
}

}  // namespace
}  // namespace hybridsync
