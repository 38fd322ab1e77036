// Buckets hold every parameter once, whole, in the order in which backward finishes them.
#include "hybridsync/decide/buckets.h"

#include <gtest/gtest.h>

namespace hybridsync {
namespace {

std::vector<ParameterShape> f32(std::initializer_list<int64_t> counts) {
  std::vector<ParameterShape> shapes;
  for (int64_t n : counts) shapes.push_back({Real::f32, n});
  return shapes;
}

std::vector<int> buckets_of(const Layout& layout) {
  std::vector<int> of;
  for (const Slice& s : layout.slices) of.push_back(s.bucket);
  return of;
}

void expect_whole(const Layout& layout) {
  for (const Slice& s : layout.slices) {
    const Bucket& b = layout.buckets[static_cast<size_t>(s.bucket)];
    EXPECT_EQ(s.type, b.type);
    EXPECT_GE(s.offset, b.offset);
    EXPECT_LE(s.offset + s.count, b.offset + b.count);
    EXPECT_EQ(s.offset * static_cast<int64_t>(size_of(s.type)) % 64, 0);
  }
  int64_t end[2] = {0, 0};
  int parameters = 0;
  for (const Bucket& b : layout.buckets) {
    EXPECT_EQ(b.offset, end[static_cast<int>(b.type)]);
    end[static_cast<int>(b.type)] += b.count;
    parameters += b.parameters;
  }
  EXPECT_EQ(end[0], layout.count_f32);
  EXPECT_EQ(end[1], layout.count_f64);
  EXPECT_EQ(parameters, static_cast<int>(layout.slices.size()));
}

// Capacities in elements of 4 bytes; a parameter takes multiples of 16 of them.
TEST(Buckets, SizesThreeAndThreeAtCapacityFour) {
  const Layout layout = plan_buckets(f32({48, 48}), 4 * 64);
  EXPECT_EQ(buckets_of(layout), (std::vector<int>{0, 1}));
  expect_whole(layout);
}

TEST(Buckets, OneLargerThanTheCapacityTravelsAlone) {
  const Layout layout = plan_buckets(f32({80, 16, 16}), 4 * 64);
  EXPECT_EQ(buckets_of(layout), (std::vector<int>{0, 1, 1}));
  expect_whole(layout);
}

TEST(Buckets, TypesDoNotMix) {
  const Layout layout =
      plan_buckets({{Real::f32, 3}, {Real::f64, 5}, {Real::f32, 1}, {Real::f64, 1}}, 1 << 20);
  EXPECT_EQ(buckets_of(layout), (std::vector<int>{0, 1, 0, 1}));
  expect_whole(layout);
}

TEST(Buckets, ScalarsAndEmptyTensorsHaveAPlace) {
  const Layout layout = plan_buckets(f32({1, 0, 7}), 1 << 20);
  ASSERT_EQ(layout.buckets.size(), 1u);
  EXPECT_EQ(layout.buckets[0].parameters, 3);
  expect_whole(layout);
}

TEST(Buckets, NoParametersNoBuckets) { EXPECT_TRUE(plan_buckets({}, 1 << 20).buckets.empty()); }

}  // namespace
}  // namespace hybridsync
