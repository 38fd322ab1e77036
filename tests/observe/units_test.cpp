#include "hybridsync/observe/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace hybridsync {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Units, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.00 kB");
  EXPECT_EQ(human_bytes(12'345'678), "12.3 MB");
  EXPECT_EQ(human_bytes(999'600), "1.00 MB");
  EXPECT_EQ(human_bytes(4e9), "4.00 GB");
  EXPECT_EQ(human_bytes(kNan), "-");
}

TEST(Units, Seconds) {
  EXPECT_EQ(human_seconds(0), "0 s");
  EXPECT_EQ(human_seconds(0.00025), "250 us");
  EXPECT_EQ(human_seconds(0.0014), "1.40 ms");
  EXPECT_EQ(human_seconds(0.0481), "48.1 ms");
  EXPECT_EQ(human_seconds(0.85), "850 ms");
  EXPECT_EQ(human_seconds(4), "4.00 s");
  EXPECT_EQ(human_seconds(12.34), "12.3 s");
  EXPECT_EQ(human_seconds(125), "2 min 05 s");
  EXPECT_EQ(human_seconds(3599.7), "1 h 00 min");
  EXPECT_EQ(human_seconds(3780), "1 h 03 min");
}

TEST(Units, CountsPercentRatio) {
  EXPECT_EQ(human_count(950), "950");
  EXPECT_EQ(human_count(12'345), "12.3k");
  EXPECT_EQ(human_count(4.5e6), "4.50M");
  EXPECT_EQ(percent(0.87314, 2), "87.31 %");
  EXPECT_EQ(percent(kNan, 2), "-");
  EXPECT_EQ(ratio(2.314), "2.31x");
  EXPECT_EQ(ratio(0.125), "0.12x");
  EXPECT_EQ(ratio(0.0417), "0.042x");
  EXPECT_EQ(ratio(std::numeric_limits<double>::infinity()), "-");
}

}  // namespace
}  // namespace hybridsync
