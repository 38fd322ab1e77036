// The small texts under the configuration: units, numbers, quotes, near words.
#include <gtest/gtest.h>

#include "hybridsync/config/nearest.h"
#include "hybridsync/config/units.h"
#include "hybridsync/config/value.h"

namespace hybridsync {
namespace {

TEST(Units, Parse) {
  EXPECT_EQ(parse_quantity("50 ms", duration_units()), 50e-3);
  EXPECT_EQ(parse_quantity("50ms", duration_units()), 50e-3);
  EXPECT_EQ(parse_quantity("50", duration_units()), std::nullopt);
  EXPECT_EQ(parse_quantity("ms", duration_units()), std::nullopt);
  EXPECT_EQ(parse_quantity("50 ms ", duration_units()), std::nullopt);
  EXPECT_EQ(parse_quantity("1 Gbit/s", rate_units()), 1e9);
  EXPECT_EQ(parse_quantity("1 gbit/s", rate_units()), std::nullopt);
}

TEST(Units, NumbersInARow) {
  EXPECT_EQ(parse_numbers("1 0.25  4e1 "), (std::vector<double>{1, 0.25, 40}));
  for (const char* text :
       {"", "  ", "1 0", "1 -1", "1,2", "1 x", "1x", "1.5.5", "inf", "nan", "1\t2"}) {
    EXPECT_EQ(parse_numbers(text), std::nullopt) << text;
  }
}

TEST(Units, Print) {
  EXPECT_EQ(quantity_text(600, duration_units()), "\"10 min\"");
  EXPECT_EQ(quantity_text(0.05, duration_units()), "\"50 ms\"");
  EXPECT_EQ(quantity_text(1e8, rate_units()), "\"100 Mbit/s\"");
  EXPECT_EQ(quantity_text(0, rate_units()), "0.0");
}

TEST(Numbers, ReadBackAsTheSameBits) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(3), "3.0");
  EXPECT_EQ(std::stod(number_text(1.0 / 3)), 1.0 / 3);
  EXPECT_EQ(std::stod(number_text(1e300)), 1e300);
}

TEST(Quotes, Escapes) { EXPECT_EQ(quoted("a\"b\\c\n"), R"("a\"b\\c\u000A")"); }

TEST(Nearest, Distance) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("evry", "every"), 1u);
  EXPECT_EQ(edit_distance("trian", "train"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Nearest, PrefersTheSameTable) {
  const std::vector<std::string> names = {"train.steps", "accumulate.steps", "train.lr"};
  EXPECT_EQ(nearest("accumulate.step", names), "accumulate.steps");
  EXPECT_EQ(nearest("train.step", names), "train.steps");
  EXPECT_EQ(nearest("start.lr", names), "train.lr");
  EXPECT_EQ(nearest("train.elephant", names), "");
}

}  // namespace
}  // namespace hybridsync
