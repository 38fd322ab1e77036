// The learning rate's rules by value.
#include "hybridsync/math/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hybridsync {
namespace {

TEST(LearningRate, ScalesFromTheReferenceBatch) {
  LearningRateConfig c;
  EXPECT_EQ(lr_scale(c, 512), 1);  // no reference
  c.reference_batch = 128;
  EXPECT_EQ(lr_scale(c, 512), 2);
  EXPECT_EQ(lr_scale(c, 32), 0.5);
  c.scaling = LrScaling::linear;
  EXPECT_EQ(lr_scale(c, 512), 4);
  c.scaling = LrScaling::none;
  EXPECT_EQ(lr_scale(c, 512), 1);
}

TEST(LearningRate, WarmsUpThenIsConstant) {
  LearningRateConfig c;
  c.warmup = 4;
  EXPECT_EQ(lr_schedule(c, 0, 100), 0.25);
  EXPECT_EQ(lr_schedule(c, 3, 100), 1);
  EXPECT_EQ(lr_schedule(c, 99, 100), 1);
}

TEST(LearningRate, CosineEndsAtTheFinalFactor) {
  LearningRateConfig c;
  c.schedule = LrSchedule::cosine;
  c.warmup = 10;
  c.final_factor = 0.1;
  EXPECT_EQ(lr_schedule(c, 10, 111), 1);
  EXPECT_NEAR(lr_schedule(c, 60, 111), 0.55, 1e-12);
  EXPECT_NEAR(lr_schedule(c, 110, 111), 0.1, 1e-12);
  EXPECT_NEAR(lr_schedule(c, 500, 111), 0.1, 1e-12);  // past the end it stays
  EXPECT_EQ(lr_schedule(c, 10, 11), 1);               // one step after the warm-up
}

TEST(LearningRate, StepsDown) {
  LearningRateConfig c;
  c.schedule = LrSchedule::step;
  c.decay_every = 3;
  c.decay_factor = 0.5;
  EXPECT_EQ(lr_schedule(c, 2, 100), 1);
  EXPECT_EQ(lr_schedule(c, 3, 100), 0.5);
  EXPECT_EQ(lr_schedule(c, 6, 100), 0.25);
}

}  // namespace
}  // namespace hybridsync
