#include "hybridsync/sync/tensor_ranges.h"

#include <gtest/gtest.h>

namespace hybridsync {
namespace {

using Ranges = std::vector<TensorRange>;

TEST(TensorRanges, CoverAFragmentWithoutGaps) {
  const Layout layout = plan_buckets(
      {{Real::f32, 5000}, {Real::f32, 0}, {Real::f64, 9}, {Real::f32, 100}, {Real::f32, 17}},
      1 << 20);  // at 0, 5008, -, 5008, 5120
  const Fragment all{0, Real::f32, 0, layout.count_f32};
  EXPECT_EQ(tensor_ranges(layout, {}, all), (Ranges{{0, 0, 5008}, {3, 5008, 112}, {4, 5120, 32}}));
  EXPECT_EQ(tensor_ranges(layout, {}, {0, Real::f32, 4992, 144}),
            (Ranges{{0, 0, 16}, {3, 16, 112}, {4, 128, 16}}));
  EXPECT_EQ(tensor_ranges(layout, {}, {0, Real::f64, 0, 16}), (Ranges{{2, 0, 16}}));
  EXPECT_EQ(tensor_ranges({}, {}, all), Ranges{}) << "no layout";
}

TEST(TensorRanges, OfAPartFollowItsPieces) {
  const Layout layout = plan_buckets({{Real::f32, 300}, {Real::f32, 1000}}, 1 << 20);  // at 0, 304
  const FragmentTable table = plan_parts(layout.count_f32, 0, 1, 1, 1 << 20, 3, 1);
  std::vector<int64_t> seen(2);
  for (const Fragment& f : table.fragments) {
    size_t at = 0;
    for (const TensorRange& range : tensor_ranges(layout, table, f)) {
      EXPECT_EQ(range.offset, at);
      at += range.count;
      seen[range.tensor] += static_cast<int64_t>(range.count);
    }
    EXPECT_EQ(at, static_cast<size_t>(f.count));
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{304, 1008}));
}

}  // namespace
}  // namespace hybridsync
