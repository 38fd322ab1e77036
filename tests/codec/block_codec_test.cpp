// What holds for every codec that works block by block, on every instruction set of this CPU.
#include "hybridsync/math/codec/block_codec.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cstring>

#include "tests/codec/block_twins.h"
#include "tests/codec/cases.h"

namespace hybridsync {
namespace {

// Codecs made while it lives use this instruction set.
class Target {
 public:
  explicit Target(int64_t target) { choose(target); }
  ~Target() { choose(0); }

 private:
  static void choose(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// As bits, so that both zeros differ.
std::vector<uint32_t> bits(const std::vector<float>& v) {
  std::vector<uint32_t> all(v.size());
  if (!v.empty()) std::memcpy(all.data(), v.data(), 4 * v.size());
  return all;
}

std::vector<uint8_t> octets(const std::vector<std::byte>& v) {
  std::vector<uint8_t> all;
  for (std::byte b : v) all.push_back(static_cast<uint8_t>(b));
  return all;
}

// Blocks of 1,024 whose mean is half way between two magnitudes but for noise of the last bits, so
// that it shows in which order they are summed. The odd ones are `second` times as large.
Case ties(float second) {
  Case one{"ties", normal(1 << 16, 21, 0x1p-20F)};
  for (size_t i = 0; i < one.values.size(); ++i)
    one.values[i] = (one.values[i] + 1 + 0x1p-8F) * (i % 2 ? second : 1.0F) * (i % 3 ? 1 : -1);
  return one;
}

class EveryBlockCodec : public testing::TestWithParam<CodecKind> {
 protected:
  std::unique_ptr<Codec> codec() const { return codec_of(GetParam()); }

  void equals_twin(const Case& one, float beta, const std::vector<float>& residual) {
    SCOPED_TRACE(one.name + ", beta " + std::to_string(beta));
    const auto twin = twin::encode(GetParam(), one.values, beta, residual);
    auto rest = residual;
    const auto codec = this->codec();
    const auto code = encoded(*codec, one.values, beta, rest);
    ASSERT_TRUE(code);
    ASSERT_EQ(octets(*code), twin.code);
    ASSERT_EQ(code->size(), codec->bound(one.values.size()));
    if (!residual.empty()) {
      ASSERT_EQ(bits(rest), bits(twin.residual));
    }
    const auto back = decoded(*codec, *code, one.values.size());
    ASSERT_TRUE(back);
    for (size_t i = 0; i < back->size(); ++i) {
      const float u =
          residual.empty() || beta == 0 ? one.values[i] : one.values[i] + beta * residual[i];
      ASSERT_EQ(u - (*back)[i], twin.residual[i]) << i;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, EveryBlockCodec,
                         testing::Values(CodecKind::fp32, CodecKind::bf16, CodecKind::fp16,
                                         CodecKind::int8, CodecKind::int4, CodecKind::int2,
                                         CodecKind::sign),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(EveryBlockCodec, GivesItsTwinsBytesOnEveryInstructionSet) {
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const Target chosen(target);
    for (size_t count : {0, 1, 2, 15, 16, 17, 31, 129, 1023, 1024, 1025, 2048}) {
      SCOPED_TRACE(count);
      for (const Case& one : cases(count)) {
        equals_twin(one, 1, {});
        equals_twin(one, 1, std::vector<float>(count));
      }
      for (float beta : {0.0F, 0.9F, 1.0F})
        equals_twin({"normal", normal(count, 11)}, beta, normal(count, 12));
    }
    equals_twin({"normal", normal(100'003, 13)}, 0.9F, normal(100'003, 14));
    for (float second : {1.0F, 16.0F}) equals_twin(ties(second), 1, {});
  }
}

TEST_P(EveryBlockCodec, ReadsNoResidualWithBetaZero) {
  const auto values = normal(1100, 1);
  std::vector<float> nan(values.size(), NAN), zero(values.size());
  EXPECT_EQ(encoded(*codec(), values, 0, nan), encoded(*codec(), values, 1, zero));
  EXPECT_EQ(bits(nan), bits(zero));
}

TEST_P(EveryBlockCodec, RefusesWhatIsNotFinite) {
  for (size_t count : {1, 1024, 1500, 2048}) {
    for (size_t at : {size_t{0}, count / 2, count - 1}) {
      for (float bad : {INFINITY, -INFINITY, NAN, -NAN}) {
        auto values = normal(count, 1), residual = normal(count, 2);
        residual[at] = bad;
        EXPECT_FALSE(encoded(*codec(), values, 0.5F, residual));
        values[at] = bad;
        std::vector<float> none;
        EXPECT_FALSE(encoded(*codec(), values, 1, none));
      }
    }
  }
}

TEST_P(EveryBlockCodec, RefusesASumThatOverflows) {
  std::vector<float> residual(1300), values(1300);
  residual[1299] = values[1299] = FLT_MAX;
  EXPECT_FALSE(encoded(*codec(), values, 1, residual));
}

TEST_P(EveryBlockCodec, LosesNothingOverManyRounds) {
  constexpr size_t kCount = 1500, kRounds = 1000;
  std::vector<float> residual(kCount);
  std::vector<double> put(kCount), sent(kCount);
  double largest = 0;
  const auto codec = this->codec();
  for (size_t round = 0; round < kRounds; ++round) {
    const auto values = normal(kCount, static_cast<unsigned>(round));
    for (size_t i = 0; i < kCount; ++i)
      largest = std::max(largest, std::fabs(double(values[i]) + residual[i]));
    const auto code = encoded(*codec, values, 1, residual);
    ASSERT_TRUE(code);
    const auto back = decoded(*codec, *code, kCount);
    ASSERT_TRUE(back);
    for (size_t i = 0; i < kCount; ++i) put[i] += values[i], sent[i] += (*back)[i];
  }
  for (size_t i = 0; i < kCount; ++i)
    ASSERT_NEAR(sent[i] + residual[i], put[i], kRounds * largest * FLT_EPSILON);
  EXPECT_LT(largest, 0.1);  // 100 times the numbers' size: the residual does not run away
}

TEST_P(EveryBlockCodec, RefusesEveryOtherLength) {
  const auto codec = this->codec();
  for (size_t count : {1, 17, 1300}) {
    std::vector<float> none;
    auto code = *encoded(*codec, normal(count, 1), 1, none);
    for (size_t length = 0; length < code.size(); ++length)
      ASSERT_FALSE(decoded(*codec, std::span(code).first(length), count)) << length;
    code.push_back({});
    ASSERT_FALSE(decoded(*codec, code, count));
  }
}

TEST_P(EveryBlockCodec, GivesFiniteNumbersOrNoneWhateverIsInTheCode) {
  const auto codec = this->codec();
  std::mt19937 rng(1);
  std::vector<float> none;
  const auto whole = *encoded(*codec, normal(1300, 1), 1, none);
  size_t refused = 0;
  constexpr size_t kDamages = 5000;
  for (size_t damage = 0; damage < kDamages; ++damage) {
    auto code = whole;
    const size_t bytes = damage % 5 == 0 ? code.size() : 1 + rng() % 4;
    for (size_t k = 0; k < bytes; ++k)
      code[rng() % code.size()] = static_cast<std::byte>(damage % 7 ? rng() : 0xff);
    const auto back = decoded(*codec, code, 1300);
    refused += !back;
    for (float x : back.value_or(none)) ASSERT_TRUE(std::isfinite(x));
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, kDamages);
}

}  // namespace
}  // namespace hybridsync
