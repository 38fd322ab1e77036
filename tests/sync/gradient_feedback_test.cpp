// What a node keeps of its gradients, against Deep Gradient Compression written down once more.
#include "hybridsync/sync/gradient_feedback.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "hybridsync/math/arithmetic.h"

namespace hybridsync {
namespace {

using F = std::vector<float>;

CodecOptions top_k(double density, int bits = 16, double error_feedback = 1) {
  CodecOptions codec;
  codec.kind = CodecKind::top_k;
  codec.density = density;
  codec.value_bits = bits;
  codec.error_feedback = error_feedback;
  return codec;
}

std::shared_ptr<Coder> coder(const CodecOptions& codec, std::vector<IndexRange> small = {}) {
  return std::make_shared<Coder>(codec, std::move(small));
}

F numbers(const Bytes& bytes, size_t count, const CodecOptions& codec,
          std::vector<IndexRange> small = {}) {
  F out(count);
  EXPECT_TRUE(Coder(codec, std::move(small)).decode(bytes, std::span<float>(out)));
  return out;
}

F random(size_t count, std::mt19937& engine) {
  std::normal_distribution<float> normal;
  F all(count);
  for (float& x : all) x = normal(engine);
  return all;
}

double squared(const F& x) { return squared_norm(std::span<const float>(x)); }

F as_vector(std::span<const float> x) { return {x.begin(), x.end()}; }

// The paper's algorithm, for one node and without small tensors.
struct Twin {
  CodecOptions codec;
  float m, beta;
  bool nesterov;
  F u, v;
  F send(const F& g) {
    F d(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      u[i] = m * u[i] + g[i];
      d[i] = nesterov ? g[i] + m * u[i] : u[i];
      v[i] = beta * v[i] + d[i];
    }
    const F sent = numbers(*Coder(codec).encode(v, 0, {}), g.size(), codec);
    for (size_t i = 0; i < g.size(); ++i) {
      v[i] -= sent[i];
      if (sent[i] != 0) u[i] = 0;
    }
    return sent;
  }
};

class Twins : public testing::TestWithParam<std::tuple<float, bool, double, int>> {};

TEST_P(Twins, AreEqualBitForBit) {
  constexpr size_t kCount = 5000;
  const auto [m, nesterov, beta, bits] = GetParam();
  const CodecOptions codec = top_k(0.02, bits, beta);
  GradientFeedback feedback(coder(codec), kCount, {m, nesterov});
  Twin twin{codec, m, static_cast<float>(beta), nesterov, F(kCount), F(kCount)};
  std::mt19937 engine(7);
  for (int step = 0; step < 20; ++step) {
    const F g = random(kCount, engine);
    EXPECT_EQ(numbers(feedback.encode(g), kCount, codec), twin.send(g)) << step;
    if (m != 0) {
      ASSERT_EQ(as_vector(feedback.momentum()), twin.u) << step;
    }
    ASSERT_EQ(as_vector(feedback.residual()), twin.v) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Twins,
                         testing::Values(std::tuple(0.9f, false, 1.0, 16),
                                         std::tuple(0.9f, true, 1.0, 16),
                                         std::tuple(0.5f, false, 0.9, 4),
                                         std::tuple(0.0f, false, 1.0, 1)));

// --- one by one, in numbers without rounding

// One of four numbers, by 16 bits.
const CodecOptions kOneOfFour = top_k(0.25);

TEST(GradientFeedback, SendsTheLargestAndKeepsTheOthers) {
  GradientFeedback f(coder(kOneOfFour), 4, {});
  EXPECT_EQ(numbers(f.encode(F{1, 4, -2, 3}), 4, kOneOfFour), (F{0, 4, 0, 0}));
  EXPECT_EQ(as_vector(f.residual()), (F{1, 0, -2, 3}));
  EXPECT_EQ(numbers(f.encode(F{1, 4, -2, 2}), 4, kOneOfFour), (F{0, 0, 0, 5}));
  EXPECT_EQ(as_vector(f.residual()), (F{2, 4, -4, 0}));
  EXPECT_TRUE(f.momentum().empty());
}

TEST(GradientFeedback, ClearsTheMomentumOfWhatIsSent) {
  GradientFeedback f(coder(kOneOfFour), 4, {0.5, false});
  (void)f.encode(F{1, 4, -2, 3});
  EXPECT_EQ(as_vector(f.momentum()), (F{1, 0, -2, 3}));
  EXPECT_EQ(numbers(f.encode(F{0, 0, 0, 0}), 4, kOneOfFour), (F{0, 0, 0, 4.5}));
  EXPECT_EQ(as_vector(f.momentum()), (F{0.5, 0, -1, 0}));
  EXPECT_EQ(as_vector(f.residual()), (F{1.5, 0, -3, 0}));
}

TEST(GradientFeedback, NesterovLooksAhead) {
  GradientFeedback f(coder(kOneOfFour), 4, {0.5, true});
  EXPECT_EQ(numbers(f.encode(F{1, 4, -2, 3}), 4, kOneOfFour), (F{0, 6, 0, 0}));
  EXPECT_EQ(as_vector(f.momentum()), (F{1, 0, -2, 3}));
  EXPECT_EQ(as_vector(f.residual()), (F{1.5, 0, -3, 4.5}));
}

// SGD's own momentum, to the bit.
TEST(GradientFeedback, PlainRoundsSendTheMomentumAndKeepIt) {
  for (const bool nesterov : {false, true}) {
    GradientFeedback f(coder(kOneOfFour), 4, {0.5, nesterov});
    F buffer(4);
    std::mt19937 engine(3);
    for (int step = 0; step < 10; ++step) {
      const F g = random(4, engine);
      F expected(4);
      for (size_t i = 0; i < 4; ++i) {
        buffer[i] = 0.5f * buffer[i] + g[i];
        expected[i] = nesterov ? g[i] + 0.5f * buffer[i] : buffer[i];
      }
      EXPECT_EQ(numbers(f.plain(g), 4, kOneOfFour), expected);
    }
    EXPECT_EQ(as_vector(f.momentum()), buffer);
    EXPECT_EQ(as_vector(f.residual()), F(4));
  }
}

TEST(GradientFeedback, WhatIsSentInEveryRoundKeepsItsMomentum) {
  const std::vector<IndexRange> small{{1, 2}};
  const CodecOptions codec = top_k(1e-4);  // one of all
  GradientFeedback f(coder(codec, small), 64, {0.5, false});
  F g(64, 1);
  for (int i = 0; i < 2; ++i) {
    const F sent = numbers(f.encode(g), 64, codec, small);
    EXPECT_EQ(sent[1], i == 0 ? 1 : 1.5f);
    EXPECT_EQ(sent[2], sent[1]);
  }
  EXPECT_EQ(f.momentum()[1], 1.5f);
  EXPECT_EQ(f.momentum()[0], 0.5f * 0 + 1) << "sent in the first round";
  GradientFeedback all(coder(top_k(1)), 4, {0.5, false});
  (void)all.encode(F{1, 2, 3, 4});
  EXPECT_EQ(as_vector(all.momentum()), (F{1, 2, 3, 4}));
}

// --- nothing is lost

// Everything decoded and what is left are everything that was put in.
void expect_balance(bool constant) {
  constexpr size_t kCount = 10;
  constexpr int kRounds = 1000;
  const CodecOptions codec = top_k(0.1);
  GradientFeedback f(coder(codec), kCount, {});
  std::mt19937 engine(5);
  std::vector<double> in(kCount), out(kCount);
  F g = random(kCount, engine);
  for (int round = 0; round < kRounds; ++round) {
    if (!constant) g = random(kCount, engine);
    const F sent = numbers(f.encode(g), kCount, codec);
    EXPECT_EQ(std::count_if(sent.begin(), sent.end(), [](float x) { return x != 0; }), 1);
    for (size_t i = 0; i < kCount; ++i) {
      in[i] += g[i];
      out[i] += sent[i];
    }
  }
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_NEAR(out[i] + f.residual()[i], in[i], 1e-3) << i;
    if (!constant) continue;
    // Its turn comes when it is the largest, so it is never far behind.
    double all = 0;
    for (float x : g) all += std::abs(x);
    EXPECT_LT(std::abs(f.residual()[i]), 2 * all) << i;
    EXPECT_NEAR(out[i] / kRounds, g[i], 0.02 * all) << i;
  }
}

TEST(GradientFeedback, OverAThousandRoundsNothingIsLost) { expect_balance(false); }
TEST(GradientFeedback, AConstantGradientIsFollowed) { expect_balance(true); }

TEST(GradientFeedback, WhatIsForgottenOnPurposeIsCounted) {
  GradientFeedback half(coder(top_k(0.25, 16, 0.5)), 4, {});
  (void)half.encode(F{1, 4, -2, 3});
  EXPECT_EQ(half.take_forgotten(), 0);
  (void)half.encode(F{0, 0, 0, 0});
  EXPECT_EQ(half.take_forgotten(), 0.25 * (1 + 4 + 9));
  half.end();
  EXPECT_EQ(half.take_forgotten(), 0.25 * (1 + 4));
  half.end();
  EXPECT_EQ(half.take_forgotten(), 0) << "once";
  GradientFeedback none(coder(top_k(0.25, 16, 0)), 4, {});
  (void)none.encode(F{1, 4, -2, 3});
  EXPECT_EQ(numbers(none.encode(F{0, 0, 1, 0}), 4, top_k(0.25)), (F{0, 0, 1, 0}));
  EXPECT_EQ(none.take_forgotten(), 1 + 4 + 9);
}

TEST(GradientFeedback, WhatGrowsBeyondAllNumbersIsDropped) {
  const float huge = std::numeric_limits<float>::max();
  for (const bool plainly : {false, true}) {
    GradientFeedback f(coder(kOneOfFour), 4, {0.9, false});
    const auto send = [&](const F& g) {
      return numbers(plainly ? f.plain(g) : f.encode(g), 4, kOneOfFour);
    };
    (void)send(F{huge, huge, huge, huge});
    EXPECT_FALSE(f.overflowed());
    const F sent = send(F{huge, huge, huge, huge});
    EXPECT_TRUE(f.overflowed());
    EXPECT_TRUE(std::isfinite(squared(sent)));
    EXPECT_TRUE(std::isfinite(squared(as_vector(f.residual()))));
    (void)send(F{1, 1, 1, 1});
    EXPECT_EQ(f.overflowed(), false);
  }
}

}  // namespace
}  // namespace hybridsync
