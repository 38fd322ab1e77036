// An owner's residual belongs to the lineage that it led to, and nothing of it goes without a
// count.
#include "hybridsync/sync/averager.h"

#include <gtest/gtest.h>

#include "hybridsync/math/arithmetic.h"

namespace hybridsync {
namespace {

using F = std::vector<float>;
constexpr size_t kCount = 64;

class AveragerTest : public testing::Test {
 protected:
  explicit AveragerTest(const Schedule& schedule = {Strategy::periodic, 0, 1},
                        double error_feedback = 1)
      : averager(table, schedule, codec(error_feedback)) {}

  static CodecOptions codec(double error_feedback) {
    CodecOptions codec;
    codec.kind = CodecKind::sign;
    codec.error_feedback = error_feedback;
    return codec;
  }

  // A round on top of `onto` that leads to `chain`; what its members get.
  F round(uint64_t onto, Version version, uint64_t chain, const F& mean, bool last = false) {
    const auto bytes = std::as_bytes(std::span<const float>(mean));
    std::vector<Averager::Term> terms;
    if (!mean.empty()) terms.push_back({bytes, 2.0});
    size_t bad = 0;
    const auto code = averager.mean(0, version - 1, onto, terms, last, bad);
    F numbers;
    if (code && !code->empty()) {
      const auto all = std::get<std::span<const float>>(averager.numbers(0, *code));
      numbers.assign(all.begin(), all.end());
    }
    averager.publish(0, version, chain);
    return numbers;
  }
  F left_out(uint64_t chain) const {
    const auto all = averager.left_out(0, chain);
    return {all.begin(), all.end()};
  }
  static double squared(const F& x) { return squared_norm(std::span<const float>(x)); }

  static F ramp() {
    F mean(kCount);
    for (size_t i = 0; i < kCount; ++i) mean[i] = static_cast<float>(i) - 20;
    return mean;
  }

  FragmentTable table{1, 1, {{0, Real::f32, 0, kCount}}};
  Averager averager;
};

TEST_F(AveragerTest, TheNextRoundOnTheSameLineageBringsWhatWasLeftOut) {
  const F first = round(0, 1, 11, ramp());
  const F last = round(11, 2, 12, F(kCount), true);
  for (size_t i = 0; i < kCount; ++i) EXPECT_NEAR(first[i] + last[i], ramp()[i], 1e-5);
  EXPECT_EQ(left_out(12), F(kCount));
}

class FadingAverager : public AveragerTest {
 protected:
  FadingAverager() : AveragerTest({Strategy::periodic, 0, 1}, 0.25) {}
};

TEST_F(FadingAverager, CountsWhatItForgets) {
  (void)round(0, 1, 11, ramp());
  EXPECT_EQ(averager.take_forgotten(), 0) << "nothing was left out before";
  const double before = squared(left_out(11));
  (void)round(11, 2, 12, ramp());
  EXPECT_GT(before, 0);
  EXPECT_NEAR(averager.take_forgotten(), 0.75 * 0.75 * before, 1e-6 * before);
  EXPECT_EQ(averager.take_forgotten(), 0);
}

TEST_F(AveragerTest, AnotherLineageStartsFromNothing) {
  const F first = round(0, 1, 11, ramp());
  EXPECT_NE(round(11, 2, 12, ramp()), first);
  EXPECT_EQ(round(99, 2, 13, ramp()), first);
}

TEST_F(AveragerTest, ADroppedTailRollsItBack) {
  (void)round(0, 1, 11, ramp());
  const F before = left_out(11), tail = round(11, 2, 12, ramp());
  (void)round(12, 3, 13, ramp());
  EXPECT_EQ(round(11, 2, 22, ramp()), tail);
  EXPECT_EQ(left_out(11), before);
  EXPECT_TRUE(left_out(12).empty());
  EXPECT_TRUE(left_out(13).empty());
  EXPECT_EQ(averager.forget(0, 2), 0) << "a round brought it in, and what was dropped is no loss";
  EXPECT_TRUE(left_out(11).empty());
  EXPECT_FALSE(left_out(22).empty());
}

TEST_F(AveragerTest, WhatNobodyBringsInIsCountedAsLost) {
  (void)round(0, 1, 11, ramp());
  const double lost = squared(left_out(11));
  EXPECT_GT(lost, 0);
  EXPECT_EQ(averager.forget(0, 1), 0) << "another result on top of it may still be its own";
  EXPECT_EQ(averager.forget(0, 2), lost);
  EXPECT_EQ(averager.forget(0, 3), 0) << "told once";
}

TEST_F(AveragerTest, ARoundInWhichAllAbstainKeepsItAndALastOneBringsIt) {
  (void)round(0, 1, 11, ramp());
  const F rest = left_out(11);
  EXPECT_TRUE(round(11, 2, 12, {}).empty());
  EXPECT_EQ(left_out(12), rest);
  EXPECT_EQ(round(12, 3, 13, {}, true), rest);
  EXPECT_TRUE(round(13, 4, 14, {}, true).empty()) << "there is nothing any more";
}

class GradientAveragerTest : public AveragerTest {
 protected:
  GradientAveragerTest() : AveragerTest({Strategy::every_step, 2, 1}) {}
};

TEST_F(GradientAveragerTest, CodesBeginAfterTheStart) {
  constexpr size_t kWhole = kCount * sizeof(float);
  for (const Version version : {-1, 0, 1}) {
    EXPECT_TRUE(averager.fits(0, version, kWhole));
    EXPECT_FALSE(averager.fits(0, version, kWhole / 2)) << version;
  }
  EXPECT_TRUE(averager.fits(0, 2, kWhole / 2));
  EXPECT_TRUE(averager.fits(0, 2, kWhole)) << "where a code would not be shorter";
  EXPECT_FALSE(averager.fits(0, 2, 2 * kWhole));
  EXPECT_EQ(round(0, 2, 12, ramp()), ramp());
  EXPECT_NE(round(12, 3, 13, ramp()), ramp());
}

TEST_F(GradientAveragerTest, TheLastRoundForgetsWhatWasLeftOut) {
  (void)round(0, 3, 11, ramp());
  const double waits = squared(left_out(11));
  EXPECT_GT(waits, 0);
  EXPECT_TRUE(round(11, 4, 12, {}, true).empty()) << "nobody steps";
  EXPECT_EQ(averager.take_forgotten(), waits);
  EXPECT_EQ(averager.take_forgotten(), 0) << "told once";
  EXPECT_TRUE(left_out(12).empty());
  EXPECT_EQ(averager.forget(0, 9), 0);
}

TEST_F(GradientAveragerTest, ALastRoundWithGradientsIsStillACode) {
  const F mean = round(0, 3, 11, ramp(), true);
  EXPECT_NE(mean, ramp());
  F rest = ramp();
  for (size_t i = 0; i < kCount; ++i) rest[i] -= mean[i];
  EXPECT_NEAR(averager.take_forgotten(), squared(rest), 1e-2);
}

}  // namespace
}  // namespace hybridsync
