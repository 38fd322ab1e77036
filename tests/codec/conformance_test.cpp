// What every codec promises. A codec is one line in kCodecs; its own tests are beside this file.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "hybridsync/decide/codec_cost.h"
#include "hybridsync/math/codec/codec.h"
#include "hybridsync/math/codec/mixed.h"

namespace hybridsync {
namespace {

struct Subject {
  const char* name;
  CodecOptions options;
  double most_bits;  // per value, of many that are drawn from a normal distribution
  std::vector<IndexRange> small = {};

  std::unique_ptr<Codec> codec() const { return make_mixed(make_codec(options), small); }
};

CodecOptions of(CodecKind kind, int levels = 5) {
  CodecOptions options;
  options.kind = kind;
  options.levels = levels;
  return options;
}

CodecOptions top_k(Selection selection, int value_bits, double density = 1.0 / 64) {
  CodecOptions options = of(CodecKind::top_k);
  options.selection = selection;
  options.value_bits = value_bits;
  options.density = density;
  return options;
}

// Of few numbers all are small, of 1,024 some at both ends.
const std::vector<IndexRange> kSmall = {{0, 64}, {200, 10}, {1000, 90}, {4096, 2000}};

const Subject kCodecs[] = {
    {"fp32", of(CodecKind::fp32), 32},
    {"bf16", of(CodecKind::bf16), 16},
    {"fp16", of(CodecKind::fp16), 16},
    {"int8", of(CodecKind::int8), 8.02},
    {"int4", of(CodecKind::int4), 4.02},
    {"int2", of(CodecKind::int2), 2.06},
    {"sign", of(CodecKind::sign), 1.02},
    {"levels3", of(CodecKind::levels, 3), 1.7},
    {"levels5", of(CodecKind::levels, 5), 2.4},
    {"levels7", of(CodecKind::levels, 7), 2.9},
    {"top_k16", top_k(Selection::chunks, 16), 24.0 / 64},
    {"top_k8", top_k(Selection::chunks, 8), 16.0 / 64},
    {"top_k4", top_k(Selection::chunks, 4), 12.5 / 64},
    {"top_k2", top_k(Selection::chunks, 2), 10.5 / 64},
    {"top_k1", top_k(Selection::chunks, 1), 9.5 / 64},
    {"top_k_threshold", top_k(Selection::threshold, 8), 1.3 * 16 / 64},
    {"top_k_dense", top_k(Selection::chunks, 8, 1), 16.1},
    {"mixed_top_k", top_k(Selection::chunks, 8), 16.0 / 64 + 0.04, kSmall},
    {"mixed_int4", of(CodecKind::int4), 4.02 + 0.04, kSmall},
};

class Conformance : public testing::TestWithParam<Subject> {
 protected:
  std::unique_ptr<Codec> codec_ = GetParam().codec();
};

using Floats = std::vector<float>;
using Code = std::vector<std::byte>;

Floats normal(size_t count, uint32_t seed, float scale = 1e-3f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, scale);
  Floats values(count);
  for (float& v : values) v = draw(random);
  return values;
}

// Exactly as long as the code, so that a sanitizer sees every byte beyond it.
std::optional<Code> encode(Codec& codec, const Floats& values, float beta, std::span<float> rest) {
  Code room(codec.bound(values.size()));
  const auto length = codec.encode(values, beta, rest, room);
  if (!length) return std::nullopt;
  EXPECT_LE(*length, room.size());
  return Code(room.begin(), room.begin() + static_cast<ptrdiff_t>(*length));
}

constexpr size_t kCounts[] = {0, 1, 2, 3, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097, 100'003};

void expect_exact_split(Codec& codec, const Floats& values, const char* what) {
  Floats rest(values.size(), 0.25f), sent(values.size(), -1);
  const auto code = encode(codec, values, 0, rest);
  ASSERT_TRUE(code) << what;
  ASSERT_TRUE(codec.decode(*code, sent)) << what;
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_TRUE(std::isfinite(sent[i])) << what << ", value " << i;
    ASSERT_EQ(rest[i], values[i] - sent[i]) << what << ", value " << i << " of " << values.size();
  }
}

TEST_P(Conformance, WhatIsNotSentIsLeftOver) {
  for (const size_t count : kCounts) expect_exact_split(*codec_, normal(count, 1), "normal");
}

TEST_P(Conformance, OddValues) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const size_t count : {size_t{1}, size_t{5}, size_t{4097}}) {
    expect_exact_split(*codec_, Floats(count, 0.0f), "zeros");
    expect_exact_split(*codec_, Floats(count, -0.0f), "negative zeros");
    expect_exact_split(*codec_, Floats(count, -2.5f), "ties");
    expect_exact_split(*codec_, Floats(count, tiny), "denormals");
    expect_exact_split(*codec_, Floats(count, 0.5f * std::numeric_limits<float>::max()), "huge");
    Floats one(count, 1e-6f);
    one[count / 2] = -1e4f;
    expect_exact_split(*codec_, one, "one among small ones");
  }
}

TEST_P(Conformance, UsesTheResidual) {
  const Floats values = normal(5000, 2), before = normal(5000, 3);
  Floats rest = before, sent(values.size());
  const auto code = encode(*codec_, values, 0.5f, rest);
  ASSERT_TRUE(code && codec_->decode(*code, sent));
  for (size_t i = 0; i < values.size(); ++i) {
    const float u = values[i] + 0.5f * before[i];
    ASSERT_EQ(rest[i], u - sent[i]) << i;
  }
  Floats summed = values;
  for (size_t i = 0; i < values.size(); ++i) summed[i] += 0.5f * before[i];
  EXPECT_EQ(encode(*GetParam().codec(), summed, 0, {}), code) << "the same code without one";
}

TEST_P(Conformance, RefusesWhatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()})
    for (const size_t at : {size_t{0}, size_t{1025}, size_t{9998}}) {
      Floats values = normal(9999, 4), rest(values.size());
      values[at] = bad;
      EXPECT_FALSE(encode(*codec_, values, 1, rest)) << bad << " at " << at;
    }
}

TEST_P(Conformance, ThousandRoundsLoseNothing) {
  constexpr size_t kCount = 1500;
  std::vector<double> put_in(kCount), got(kCount);
  Floats rest(kCount), sent(kCount);
  double most = 0;
  for (uint32_t round = 0; round < 1000; ++round) {
    const Floats values = normal(kCount, round);
    const auto code = encode(*codec_, values, 1, rest);
    ASSERT_TRUE(code && codec_->decode(*code, sent));
    for (size_t i = 0; i < kCount; ++i) {
      put_in[i] += values[i];
      got[i] += sent[i];
      most = std::max(most, double(std::abs(rest[i])));
    }
  }
  // One rounding of u, and one of the residual, per round.
  const double tolerance = 1000 * 2 * std::numeric_limits<float>::epsilon() * (most + 4e-3);
  for (size_t i = 0; i < kCount; ++i) ASSERT_NEAR(got[i] + rest[i], put_in[i], tolerance) << i;
}

TEST_P(Conformance, CostsWhatItShould) {
  const Floats values = normal(1 << 20, 5);
  const auto code = encode(*codec_, values, 0, {});
  ASSERT_TRUE(code);
  EXPECT_LE(8.0 * static_cast<double>(code->size()) / (1 << 20), GetParam().most_bits);
}

#if defined(NDEBUG)
TEST_P(Conformance, MoreThanAFloatCanCount) {
  Floats values = normal((1 << 24) + 5, 10);
  values.back() = 100;  // found also behind all others
  expect_exact_split(*codec_, values, "more than 2^24");
}
#endif

TEST_P(Conformance, TheSameBytesWhateverTheThread) {
  const Floats values = normal(70'001, 6);
  const auto expected = encode(*codec_, values, 0, {});
  EXPECT_EQ(encode(*codec_, values, 0, {}), expected) << "scratch memory is no state";
  std::vector<std::optional<Code>> codes(3);
  std::vector<std::thread> threads;
  for (auto& code : codes)
    threads.emplace_back([&] { code = encode(*GetParam().codec(), values, 0, {}); });
  for (std::thread& t : threads) t.join();
  for (const auto& code : codes) EXPECT_EQ(code, expected);
}

TEST_P(Conformance, EveryTruncationIsRefusedOrHarmless) {
  const Floats values = normal(1300, 7);
  const auto code = encode(*codec_, values, 0, {});
  ASSERT_TRUE(code);
  Floats out(values.size());
  for (size_t length = 0; length < code->size(); ++length) {
    const Code cut(code->begin(), code->begin() + static_cast<ptrdiff_t>(length));
    EXPECT_FALSE(codec_->decode(cut, out)) << length << " of " << code->size();
  }
  Code longer = *code;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(codec_->decode(longer, out)) << "a tail";
}

TEST_P(Conformance, DamageIsRefusedOrHarmless) {
  std::mt19937 random(8);
  const Floats values = normal(700, 9);
  const auto code = encode(*codec_, values, 0, {});
  ASSERT_TRUE(code);
  for (int i = 0; i < 3000; ++i) {
    Code damaged = *code;
    for (uint32_t flips = 1 + random() % 4; flips > 0; --flips)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    if (random() % 4 == 0) damaged.resize(random() % (damaged.size() + 1));
    if (random() % 16 == 0)
      for (std::byte& b : damaged) b = static_cast<std::byte>(random());
    const size_t count = random() % 3 == 0 ? random() % 2000 : values.size();
    Floats out(count);
    if (!codec_->decode(damaged, out)) continue;
    for (float x : out) ASSERT_TRUE(std::isfinite(x)) << "try " << i;
  }
}

// The planner's formula is what the code takes.
TEST_P(Conformance, CostsWhatThePlannerSays) {
  if (!GetParam().small.empty()) return;  // it counts no small tensors
  const size_t count = 1 << 20;
  const CodecCost cost = codec_cost(GetParam().options);
  const auto code = encode(*codec_, normal(count, 11), 0, {});
  ASSERT_TRUE(code);
  const double bits = 8.0 * static_cast<double>(code->size()) / count;
  if (cost.exact)
    EXPECT_EQ(bits, cost.bits);
  else
    EXPECT_NEAR(bits, cost.bits,
                (GetParam().options.selection == Selection::chunks ? 0.03 : 0.12) * cost.bits);
}

INSTANTIATE_TEST_SUITE_P(Each, Conformance, testing::ValuesIn(kCodecs),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hybridsync
