#include "hybridsync/math/codec/blocks.h"

#include <gtest/gtest.h>

#include <bit>
#include <stdexcept>

#include "tests/codec/cases.h"

namespace hybridsync {
namespace {

float magnitude_at(const std::vector<std::byte>& code, size_t at) {
  const auto low = static_cast<uint32_t>(code[at]), high = static_cast<uint32_t>(code[at + 1]);
  return std::bit_cast<float>((low | high << 8) << 16);
}

struct Sent {
  std::vector<std::byte> code;
  std::vector<float> numbers;
};

Sent sent(CodecKind kind, const std::vector<float>& values) {
  const auto codec = make_blocks(kind);
  std::vector<float> none;
  const auto code = encoded(*codec, values, 1, none);
  return {*code, *decoded(*codec, *code, values.size())};
}

double squared_error(CodecKind kind, const std::vector<float>& values) {
  const auto numbers = sent(kind, values).numbers;
  double left = 0, all = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    left += std::pow(double(values[i]) - numbers[i], 2);
    all += std::pow(double(values[i]), 2);
  }
  return left / all;
}

TEST(Blocks, CostWhatTheirHeaderSays) {
  const auto bits = [](CodecKind kind) {
    return 8 * static_cast<double>(make_blocks(kind)->bound(1 << 20)) / (1 << 20);
  };
  EXPECT_EQ(bits(CodecKind::int8), 8 + 16.0 / 1024);
  EXPECT_EQ(bits(CodecKind::int4), 4 + 16.0 / 1024);
  EXPECT_EQ(bits(CodecKind::int2), 2 + 32.0 / 1024);
  EXPECT_EQ(bits(CodecKind::sign), 1 + 16.0 / 1024);
  for (CodecKind kind : kBlocks) EXPECT_LE(make_blocks(kind)->bound(1), 5);
}

TEST(Blocks, ErrByHalfALevelAtMost) {
  for (CodecKind kind : {CodecKind::int8, CodecKind::int4}) {
    const float top = kind == CodecKind::int8 ? 127 : 7;
    for (size_t count : {1, 17, 1023, 1024})
      for (const Case& one : cases(count)) {
        const Sent its = sent(kind, one.values);
        const double step = magnitude_at(its.code, 0);
        const double most = step > 0 ? step / 2 * (1 + 1e-4) : top * FLT_MIN;
        for (size_t i = 0; i < count; ++i)
          ASSERT_LE(std::fabs(double(one.values[i]) - its.numbers[i]), most) << one.name;
      }
  }
}

TEST(Blocks, StepsAreNoLongerThanTheyMustBe) {
  for (const Case& one : {Case{"normal", normal(1024, 1)}, Case{"large", normal(1024, 2, 1e30F)}}) {
    float largest = 0;
    for (float x : one.values) largest = std::max(largest, std::fabs(x));
    for (auto [kind, top] : {std::pair{CodecKind::int8, 127.0F}, {CodecKind::int4, 7.0F}}) {
      const float step = magnitude_at(sent(kind, one.values).code, 0);
      EXPECT_GE(step * top, largest * (1 - FLT_EPSILON));
      EXPECT_LE(step * top, largest * (1 + 0x1p-7F));
    }
  }
}

TEST(Blocks, ZerosAreSentAsZeros) {
  for (CodecKind kind : kBlocks)
    for (float zero : {0.0F, -0.0F})
      for (float x : sent(kind, std::vector<float>(1030, zero)).numbers) EXPECT_EQ(x, 0);
}

TEST(Blocks, BothZerosArePositive) {
  std::vector<float> values(1024, 1.0F);
  values[5] = 0.0F, values[700] = -0.0F;
  for (CodecKind kind : {CodecKind::int2, CodecKind::sign})
    for (float x : sent(kind, values).numbers) EXPECT_GT(x, 0);
}

TEST(Blocks, MagnitudesAreMeans) {
  std::vector<float> values;  // 0.5, -1, 1.5 and 5: mean 2, threshold 3
  for (int i = 0; i < 256; ++i) values.insert(values.end(), {0.5F, -1.0F, 1.5F, 5.0F});
  const auto two = sent(CodecKind::int2, values).numbers;
  const auto one = sent(CodecKind::sign, values).numbers;
  for (size_t i = 0; i < 1024; ++i) {
    EXPECT_EQ(two[i], (i % 4 == 3 ? 5 : i % 4 == 1 ? -1 : 1));
    EXPECT_EQ(one[i], i % 4 == 1 ? -2 : 2);
  }
}

// The best that 4 and 2 levels can do for normal numbers: 0.1175 and 0.3634 (Max 1960); 4 for those
// of Laplace: 0.1762.
TEST(Blocks, AreNearTheBest) {
  auto values = normal(1 << 17, 1);
  EXPECT_NEAR(squared_error(CodecKind::int2, values), 0.1261, 0.001);
  EXPECT_NEAR(squared_error(CodecKind::sign, values), 0.3634, 0.002);
  EXPECT_LT(squared_error(CodecKind::int4, values), 0.022);
  EXPECT_LT(squared_error(CodecKind::int8, values), 0.00007);
  for (float& x : values) x = x < 0 ? std::log(std::erfc(-x * 707)) : -std::log(std::erfc(x * 707));
  EXPECT_NEAR(squared_error(CodecKind::int2, values), 0.1762, 0.003);
}

TEST(Blocks, RefuseTheLevelThatHasNoPartner) {
  for (size_t count : {5, 1024}) {
    const auto int8 = make_blocks(CodecKind::int8), int4 = make_blocks(CodecKind::int4);
    const auto values = normal(count, 1);
    auto code = sent(CodecKind::int8, values).code;
    code[2 + count - 1] = std::byte{0x81};
    EXPECT_TRUE(decoded(*int8, code, count));
    code[2 + count - 1] = std::byte{0x80};
    EXPECT_FALSE(decoded(*int8, code, count));
    for (uint8_t bad : {0x08, 0x80}) {
      code = sent(CodecKind::int4, values).code;
      code.back() = std::byte{0x99};
      EXPECT_TRUE(decoded(*int4, code, count));
      code.back() = std::byte{bad};
      EXPECT_FALSE(decoded(*int4, code, count));
    }
  }
}

TEST(Blocks, RefuseMagnitudesThatAreNotFiniteOrNegative) {
  for (CodecKind kind : kBlocks)
    for (size_t count : {5, 1024})
      for (size_t head : {0, 2}) {
        if (head == 2 && kind != CodecKind::int2) continue;
        for (uint8_t high : {0x7f, 0x80, 0xff}) {
          auto code = sent(kind, normal(count, 1)).code;
          code[head] = std::byte{0x80}, code[head + 1] = std::byte{high};
          EXPECT_FALSE(decoded(*make_blocks(kind), code, count)) << name_of(kind) << int(high);
        }
      }
}

TEST(Blocks, RefuseAStepThatGivesInfinity) {
  for (auto [kind, largest] :
       {std::pair{CodecKind::int8, 0x1.02p121F}, {CodecKind::int4, 0x1.24p125F}}) {
    auto code = sent(kind, std::vector<float>(1024, FLT_MAX)).code;
    EXPECT_EQ(magnitude_at(code, 0), largest);
    code[0] = std::byte(static_cast<uint8_t>(code[0]) + 1);
    EXPECT_FALSE(decoded(*make_blocks(kind), code, 1024));
  }
}

TEST(Blocks, HaveNoOtherKinds) {
  EXPECT_THROW(make_blocks(CodecKind::fp16), std::invalid_argument);
}

}  // namespace
}  // namespace hybridsync
