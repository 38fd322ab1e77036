#include "hybridsync/decide/codec_worth.h"

#include <gtest/gtest.h>

namespace hybridsync {
namespace {

// Ten rounds, a tenth of the bytes: what is left of the wait without coding would be ten times as
// long.
CodecTimes times(double coding, double waiting) { return {10, 1000, 100, coding, waiting}; }

TEST(CodecWorth, SavesTheWaitForTheBytesThatAreGone) {
  EXPECT_DOUBLE_EQ(most_saved_seconds(times(1, 3)), 18);
  EXPECT_EQ(most_saved_seconds(times(3, 1)), 0) << "all of the wait was coding";
  EXPECT_EQ(most_saved_seconds({}), 0);
}

TEST(CodecWorth, IsSaidOnlyWhereCodingTakesLonger) {
  EXPECT_EQ(codec_complaint(times(1, 3)), "");
  EXPECT_EQ(codec_complaint(times(1, 1.01)),
            "coding takes 100 ms per round and saves at most 9 ms: on a link as fast as this one "
            "codec = \"fp32\" is faster");
  CodecTimes early = times(1, 1.01);
  early.rounds = kRoundsToJudgeCodec - 1;
  EXPECT_EQ(codec_complaint(early), "") << "too early to tell";
}

}  // namespace
}  // namespace hybridsync
