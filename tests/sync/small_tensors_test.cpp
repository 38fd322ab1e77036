#include "hybridsync/sync/small_tensors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hybridsync/decide/codec_cost.h"
#include "tests/sync/vector_replica.h"

namespace hybridsync {
namespace {

using Ranges = std::vector<IndexRange>;

Layout layout_of(const std::vector<int64_t>& counts, Real type = Real::f32) {
  std::vector<ParameterShape> shapes;
  for (int64_t n : counts) shapes.push_back({type, n});
  return plan_buckets(shapes, 1 << 20);
}

Fragment fragment(int64_t offset, int64_t count, Real type = Real::f32) {
  return {0, type, offset, count};
}

TEST(SmallRanges, OfParametersBelowTheLimit) {
  const Layout layout = layout_of({4096, 4095, 4096});
  EXPECT_EQ(small_ranges(layout, {}, fragment(0, 3 * 4096)), (Ranges{{4096, 4096}}));
}

TEST(SmallRanges, NeighboursAreOneWithThePaddingBetweenThem) {
  const Layout layout = layout_of({5, 0, 17, 5000, 3, 1});
  const int64_t all = layout.count_f32;
  EXPECT_EQ(all, 16 + 32 + 5008 + 16 + 16);
  EXPECT_EQ(small_ranges(layout, {}, fragment(0, all)), (Ranges{{0, 48}, {48 + 5008, 32}}));
}

TEST(SmallRanges, AreCutToTheFragmentAndRelativeToIt) {
  const Layout layout = layout_of({5000, 100, 5000, 50});  // at 0, 5008, 5120, 10128
  EXPECT_EQ(small_ranges(layout, {}, fragment(0, 5008)), Ranges{});
  EXPECT_EQ(small_ranges(layout, {}, fragment(4992, 32)), (Ranges{{16, 16}}));
  EXPECT_EQ(small_ranges(layout, {}, fragment(5024, 112)), (Ranges{{0, 96}}));
  EXPECT_EQ(small_ranges(layout, {}, fragment(5024, 32)), (Ranges{{0, 32}}));
  EXPECT_EQ(small_ranges(layout, {}, fragment(5120, 5008)), Ranges{});
  EXPECT_EQ(small_ranges(layout, {}, fragment(5104, 5072)), (Ranges{{0, 16}, {5024, 48}}));
}

TEST(SmallRanges, OfTheFragmentsTypeOnly) {
  const Layout layout = plan_buckets({{Real::f64, 16}, {Real::f32, 5000}, {Real::f64, 8}}, 1 << 20);
  EXPECT_EQ(small_ranges(layout, {}, fragment(0, 5008)), Ranges{});
  EXPECT_EQ(small_ranges(layout, {}, fragment(0, 24, Real::f64)), (Ranges{{0, 24}}));
  EXPECT_EQ(small_ranges(Layout{}, {}, fragment(0, 100)), Ranges{}) << "no layout";
}

TEST(SmallTensors, OnlyWhereACodeIsCoarserThan16Bits) {
  const Layout layout = layout_of({100, 9000});
  const FragmentTable table = plan_fragments(layout.count_f32, 0, 1, 1, 4096 * 4);
  ASSERT_GT(table.fragments.size(), 2u);
  CodecOptions codec;
  for (const CodecKind kind : {CodecKind::fp32, CodecKind::bf16, CodecKind::fp16}) {
    codec.kind = kind;
    EXPECT_TRUE(small_tensors(layout, table, codec).empty());
  }
  for (const CodecKind kind : {CodecKind::int8, CodecKind::levels, CodecKind::top_k}) {
    codec.kind = kind;
    EXPECT_EQ(small_tensors(layout, table, codec), (SmallTensors{{0, {{0, 112}}}}));
  }
  codec.small_tensors = SmallTensorCode::coded;
  EXPECT_TRUE(small_tensors(layout, table, codec).empty());
}

// --- in rounds

const std::vector<ParameterShape> kModel = {
    {Real::f32, 9000}, {Real::f32, 100}, {Real::f32, 4000}, {Real::f32, 12000}, {Real::f32, 7}};
constexpr int64_t kEvery = 4, kRounds = 5;

struct Trace {
  std::vector<std::vector<float>> after;  // the parameters, by round
  int64_t sent = 0;
};

float pull(size_t i) { return std::sin(static_cast<float>(7 * i)); }

Trace train(const CodecOptions& codec) {
  Config config = two_tiers(2, 3, Strategy::periodic, kEvery);
  config.tiers[1].codec = codec;
  config.tiers[1].fragment_bytes = 12 * 1024;
  Trace trace;
  run_all(config, [&](const Environment& e) {
    TestRank rank(config, e, kModel, {});
    rank.shape = pull;
    if (e.rank == 0) rank.on_record = [&](const StepRecord& r) { trace.sent += r.bytes_sent_slow; };
    for (int64_t step = 1; step <= kEvery * kRounds; ++step) {
      (void)rank.step(0.01f * static_cast<float>(1 + e.node), 8);
      if (e.rank == 0 && step % kEvery == 0) trace.after.push_back(rank.replica.theta);
    }
    rank.finish();
  });
  return trace;
}

// Both roundings have so many steps, of the number itself or of the largest one.
void expect_rounded(SmallTensorCode code, double steps, bool of_itself) {
  CodecOptions codec;
  codec.small_tensors = code;
  codec.kind = CodecKind::top_k;
  codec.density = 0.05;
  codec.residual = Residual::buffer;
  const Trace plain = train({}), coded = train(codec);
  ASSERT_EQ(coded.after.size(), static_cast<size_t>(kRounds));
  const Layout layout = plan_buckets(kModel, 1 << 20);
  size_t rounded = 0;
  for (size_t round = 0; round < coded.after.size(); ++round)
    for (const Slice& slice : layout.slices) {
      const auto begin = static_cast<size_t>(slice.offset), n = static_cast<size_t>(slice.count);
      size_t far = 0;
      for (size_t i = begin; i < begin + n; ++i) {
        // A round's delta of any node, rounded there and once more at the owner.
        const double most = kEvery * 0.5 * 0.03 * (of_itself ? std::abs(pull(i)) : 1);
        const double off = std::abs(double(coded.after[round][i]) - plain.after[round][i]);
        far += off > 2 * most / steps + 1e-6;
        rounded += n < 4096 && off > 1e-5;
      }
      if (n < 4096) {
        EXPECT_EQ(far, 0u) << "round " << round << ", " << n << " numbers";
      } else {
        EXPECT_GT(far, n / 2) << "round " << round << ", " << n << " numbers";
      }
    }
  EXPECT_GT(rounded, 0u) << "nor are they plain";
  EXPECT_LT(coded.sent, plain.sent / 2);
}

TEST(SmallTensors, ComeThroughEveryRoundAsBf16) {
  expect_rounded(SmallTensorCode::bf16, 256, true);
}

TEST(SmallTensors, ComeThroughEveryRoundAsInt8) {
  const Layout layout = plan_buckets(kModel, 1 << 20);
  CodecOptions codec;
  codec.kind = CodecKind::top_k;
  EXPECT_EQ(small_tensor_code(codec, layout), SmallTensorCode::int8) << "a sixth of all numbers";
  codec.kind = CodecKind::int8;
  const Layout large = plan_buckets({{Real::f32, 1'000'000}, {Real::f32, 4000}}, 1 << 20);
  EXPECT_EQ(small_tensor_code(codec, large), SmallTensorCode::bf16);
  codec.small_tensors = SmallTensorCode::coded;
  EXPECT_EQ(small_tensor_code(codec, layout), SmallTensorCode::coded) << "as set";
  expect_rounded(SmallTensorCode::int8, 200, false);
}

}  // namespace
}  // namespace hybridsync
