// Parts share every tensor, and their rounds are spread over the interval.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hybridsync/decide/fragments.h"
#include "hybridsync/decide/schedule.h"

namespace hybridsync {
namespace {

FragmentTable table_of(int64_t count, int parts, uint64_t seed = 1, int lanes = 2) {
  return plan_parts(count, 4097, 3, lanes, 64 << 10, parts, seed);
}

TEST(Parts, EveryElementIsInExactlyOnePieceOfOneFragment) {
  for (int64_t count : {0, 1, 255, 256, 5000, 300'001, 5'000'011})
    for (int parts : {1, 2, 7, 64}) {
      const FragmentTable table = table_of(count, parts);
      std::vector<Piece> all;
      for (const Fragment& f : table.fragments) {
        int64_t sum = 0;
        for (const Piece& piece : table.pieces(f)) {
          sum += piece.count;
          if (f.type == Real::f32) all.push_back(piece);
        }
        EXPECT_EQ(sum, f.count);
        EXPECT_LE(f.bytes(), 64 << 10);
      }
      std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.offset < b.offset; });
      int64_t end = 0;
      for (const Piece& piece : all) {
        EXPECT_EQ(piece.offset, end);
        end += piece.count;
      }
      EXPECT_EQ(end, count) << parts;
    }
}

TEST(Parts, AreNearlyEqualAndEachHasItsShareOfEveryStretch) {
  const FragmentTable table = table_of(1'000'000, 10);
  EXPECT_EQ(table.parts(), 10);
  std::vector<int64_t> size(10), in_first_tenth(10);
  for (const Fragment& f : table.fragments) {
    if (f.type != Real::f32) continue;
    size[f.part] += f.count;
    for (const Piece& piece : table.pieces(f))
      if (piece.offset < 100'000) in_first_tenth[f.part] += piece.count;
  }
  for (int part = 0; part < 10; ++part) {
    EXPECT_NEAR(size[part], 100'000, 256);
    EXPECT_NEAR(in_first_tenth[part], 10'000, 300);
  }
}

TEST(Parts, AreDealtAtRandomByTheSeed) {
  EXPECT_EQ(table_of(100'000, 5, 7).order, table_of(100'000, 5, 7).order);
  EXPECT_NE(table_of(100'000, 5, 7).order, table_of(100'000, 5, 8).order);
  EXPECT_TRUE(table_of(100'000, 1).order.empty()) << "one part is the vector as it is";
}

TEST(Schedule, PartsTakeTurns) {
  const Schedule schedule{Strategy::periodic, 5, 6};
  for (int64_t step = 1; step <= 30; ++step) {
    int due = 0;
    for (int part = 0; part < 6; ++part) due += schedule.of_part(part, 6).due(step);
    EXPECT_EQ(due, 1) << "as many as steps: one at each";
  }
  std::set<int64_t> firsts;
  for (int part = 0; part < 4; ++part) firsts.insert(schedule.of_part(part, 4).first);
  EXPECT_EQ(firsts, (std::set<int64_t>{2, 3, 5, 6}));
}

TEST(Schedule, TheFirstIntervalOfAPartIsItsOwn) {
  const Schedule part = Schedule{Strategy::periodic, 5, 6}.of_part(2, 3);
  EXPECT_EQ(part.interval(4), 1) << "a synchronous round";
  EXPECT_EQ(part.interval(5), 2);
  EXPECT_EQ(part.interval(6), 6);
  EXPECT_EQ((Schedule{Strategy::periodic, 5, 6}.of_part(0, 1).interval(5)), 6);
  EXPECT_EQ((Schedule{Strategy::every_step, 0, 1}.of_part(0, 1).interval(0)), 1);
}

}  // namespace
}  // namespace hybridsync
