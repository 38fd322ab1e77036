#include "hybridsync/math/codec/dense.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "tests/codec/block_twins.h"
#include "tests/codec/cases.h"

namespace hybridsync {
namespace {

std::vector<uint16_t> halves(CodecKind kind, const std::vector<float>& values) {
  std::vector<float> none;
  const auto code = *encoded(*make_dense(kind), values, 1, none);
  std::vector<uint16_t> bits(values.size());
  std::memcpy(bits.data(), code.data(), code.size());
  return bits;
}

std::vector<std::byte> bytes(const std::vector<uint16_t>& bits) {
  const auto all = std::as_bytes(std::span(bits));
  return {all.begin(), all.end()};
}

TEST(Dense, Fp32LeavesNothingOut) {
  for (const Case& one : cases(1100)) {
    std::vector<float> residual(1100);
    const auto codec = make_dense(CodecKind::fp32);
    const auto code = encoded(*codec, one.values, 1, residual);
    EXPECT_EQ(*decoded(*codec, *code, 1100), one.values) << one.name;
    EXPECT_EQ(residual, std::vector<float>(1100)) << one.name;
  }
}

TEST(Dense, RoundsToNearestEven) {
  EXPECT_EQ(halves(CodecKind::fp16, {1.0F, 1 + 0x1p-11F, 1 + 0x1.8p-10F, 1 + 0x1.002p-11F, -2.0F}),
            (std::vector<uint16_t>{0x3c00, 0x3c00, 0x3c02, 0x3c01, 0xc000}));
  EXPECT_EQ(halves(CodecKind::bf16, {1.0F, 1 + 0x1p-8F, 1 + 0x1.8p-7F, 1 + 0x1.002p-8F, -2.0F}),
            (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xc000}));
}

TEST(Dense, Fp16HasSubnormalNumbers) {
  EXPECT_EQ(halves(CodecKind::fp16, {0x1p-14F, 0x1.ff8p-15F, 0x1.ffcp-15F, 0x1p-24F, 0x1.8p-24F,
                                     0x1p-25F, 0x1.01p-25F, -0x1p-24F, FLT_MIN}),
            (std::vector<uint16_t>{0x400, 0x3ff, 0x400, 1, 2, 0, 1, 0x8001, 0}));
}

TEST(Dense, WhatIsTooLargeStaysInTheResidual) {
  const std::vector<float> values{65504, 65519, 65520, 1e9F, -1e9F, FLT_MAX, -FLT_MAX};
  for (CodecKind kind : {CodecKind::bf16, CodecKind::fp16}) {
    const auto codec = make_dense(kind);
    std::vector<float> residual(values.size());
    const auto code = encoded(*codec, values, 1, residual);
    const auto back = *decoded(*codec, *code, values.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(residual[i], values[i] - back[i]);
    EXPECT_EQ(back[5], kind == CodecKind::fp16 ? 65504 : std::bit_cast<float>(0x7f7f0000));
    EXPECT_EQ(back[6], -back[5]);
  }
}

// Among 1,024 numbers as alone: whole blocks and the rest go different ways.
TEST(Dense, EveryPatternOf16BitsComesBackOrIsRefused) {
  for (CodecKind kind : {CodecKind::bf16, CodecKind::fp16}) {
    const auto codec = make_dense(kind);
    const uint32_t end = kind == CodecKind::fp16 ? 0x7c00 : 0x7f80;
    for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
      std::vector<uint16_t> block(pattern % 16 ? 1 : 1024);
      block.back() = static_cast<uint16_t>(pattern);
      const auto back = decoded(*codec, bytes(block), block.size());
      ASSERT_EQ(bool(back), (pattern & 0x7fff) < end) << pattern;
      if (!back) continue;
      ASSERT_EQ(back->back(), twin::number(kind, {}, pattern)) << pattern;
      ASSERT_EQ(halves(kind, *back), block) << pattern;
    }
  }
}

TEST(Dense, Fp32RefusesCodesThatAreNotFinite) {
  for (float bad : {INFINITY, -INFINITY, NAN})
    for (size_t count : {3, 1024}) {
      std::vector<float> values(count, 1.0F);
      values[count - 2] = bad;
      EXPECT_FALSE(decoded(*make_dense(CodecKind::fp32), std::as_bytes(std::span(values)), count));
    }
}

TEST(Dense, HasNoOtherKinds) { EXPECT_THROW(make_dense(CodecKind::int8), std::invalid_argument); }

}  // namespace
}  // namespace hybridsync
