// Fragments partition the flat vector and share the work of owners and lanes.
#include "hybridsync/decide/fragments.h"

#include <gtest/gtest.h>

#include <map>

namespace hybridsync {
namespace {

void expect_partition(const FragmentTable& table, int64_t f32, int64_t f64) {
  std::map<Real, int64_t> end{{Real::f32, 0}, {Real::f64, 0}};
  for (size_t i = 0; i < table.fragments.size(); ++i) {
    const Fragment& f = table.fragments[i];
    EXPECT_EQ(f.id, static_cast<int>(i));
    EXPECT_EQ(f.offset, end[f.type]);
    end[f.type] += f.count;
  }
  EXPECT_EQ(end[Real::f32], f32);
  EXPECT_EQ(end[Real::f64], f64);
}

TEST(Fragments, EveryElementIsInExactlyOne) {
  for (int64_t f32 : {0, 1, 15, 16, 17, 1023, 5000, 200'000, 1'000'003})
    for (int64_t f64 : {0, 1, 4097})
      for (int nodes : {1, 2, 3, 5})
        for (int lanes : {1, 2, 3})
          for (int64_t bytes : {64, 4096, 4 << 20})
            expect_partition(plan_fragments(f32, f64, nodes, lanes, bytes), f32, f64);
}

TEST(Fragments, NoneIsLargerThanAsked) {
  EXPECT_LE(plan_fragments(1'000'003, 0, 2, 2, 65536).largest_bytes(), 65536);
}

TEST(Fragments, LongVectorsKeepEveryOwnerAndLaneBusy) {
  const FragmentTable table = plan_fragments(200'000, 0, 2, 2, 4 << 20);
  ASSERT_EQ(table.fragments.size(), 4u);
  EXPECT_EQ(table.of_lane(0), (std::vector<int>{0, 2}));
  EXPECT_EQ(table.of_lane(1), (std::vector<int>{1, 3}));
  EXPECT_EQ(table.owner(0), 0);
  EXPECT_EQ(table.owner(1), 0);
  EXPECT_EQ(table.owner(2), 1);
  EXPECT_EQ(table.owner(3), 1);
  EXPECT_EQ(table.fragments[0].count, 50'000);
}

TEST(Fragments, ShortVectorsAreNotCutToPieces) {
  EXPECT_EQ(plan_fragments(1500, 0, 8, 4, 4 << 20).fragments.size(), 1u);
}

TEST(Fragments, FragmentZeroExistsWithoutNumbers) {
  const FragmentTable table = plan_fragments(0, 0, 2, 2, 4 << 20);
  ASSERT_EQ(table.fragments.size(), 1u);
  EXPECT_EQ(table.fragments[0].count, 0);
}

}  // namespace
}  // namespace hybridsync
