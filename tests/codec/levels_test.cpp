// The levels codec against a scalar twin, with nothing lost over many rounds, at the ends of the
// floats' range, and on damaged codes.
#include "hybridsync/math/codec/levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "hybridsync/math/hash.h"

namespace hybridsync {
namespace {

using Rng = std::mt19937_64;
using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;

constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Bell-shaped, by sums that are the same on every machine.
Floats noise(size_t count, uint64_t seed, float scale = 1) {
  Rng rng(seed);
  Floats v(count);
  for (float& x : v) {
    int sum = 0;
    for (int i = 0; i < 6; ++i) sum += static_cast<int>(rng() % 2001) - 1000;
    x = static_cast<float>(sum) * (scale / 1024);
  }
  return v;
}

// Of any magnitude.
Floats wild(size_t count, uint64_t seed) {
  Rng rng(seed);
  Floats v(count);
  for (float& x : v) {
    x = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    if (!std::isfinite(x)) x = 0;
  }
  return v;
}

Bytes encoded(Codec& codec, const Floats& values, float beta, std::span<float> residual) {
  Bytes code(codec.bound(values.size()), std::byte{0xa5});
  const auto length = codec.encode(values, beta, residual, code);
  EXPECT_TRUE(length.has_value());
  code.resize(length.value_or(0));
  code.shrink_to_fit();  // whatever is read beyond it is beyond an allocation
  return code;
}

Floats decoded(Codec& codec, const Bytes& code, size_t count) {
  Floats out(count, kNan);
  EXPECT_TRUE(codec.decode(code, out));
  return out;
}

// Equal to the bit.
void expect_same(const Floats& a, const Floats& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << i << " " << a[i];
}

// What decoding a block gives, in place.
void twin_block(std::span<float> u, int m) {
  float largest = 0;
  for (const float x : u) largest = std::max(largest, std::fabs(x));
  const auto level = [=](float x) {
    int q = 0;
    while (q < m && std::fabs(x) >= largest * (static_cast<float>(2 * q + 1) / (2 * m))) ++q;
    return static_cast<float>(x < 0 ? -q : q);
  };
  const float step = largest / static_cast<float>(m);
  const uint32_t unit = 1u << 20, most = std::bit_cast<uint32_t>(kMax / m) & ~(unit - 1);
  const uint32_t bits = (std::bit_cast<uint32_t>(step) + unit / 2) & ~(unit - 1);
  const float coded = std::bit_cast<float>(std::min(bits, most));
  for (float& x : u) x = largest < 0x1p-120f ? 0 : level(x) * coded;
}

Floats twin(Floats u, int levels) {
  for (size_t i = 0; i < u.size(); i += 64)
    twin_block(std::span(u).subspan(i, std::min<size_t>(64, u.size() - i)), levels / 2);
  return u;
}

class Levels : public testing::TestWithParam<int> {
 protected:
  void expect_as_twin(const Floats& values, float beta, Floats residual) {
    Floats u = values;
    for (size_t i = 0; i < u.size(); ++i)
      if (beta != 0) u[i] = values[i] + beta * residual[i];
    const Bytes code = encoded(*codec_, values, beta, residual);
    const Floats out = decoded(*codec_, code, values.size());
    expect_same(out, twin(u, GetParam()));
    for (size_t i = 0; i < u.size(); ++i) u[i] -= out[i];
    expect_same(residual, u);
    EXPECT_LE(code.size(), codec_->bound(values.size()));
  }

  std::unique_ptr<Codec> codec_ = make_levels(GetParam());
};

TEST_P(Levels, AreThoseOfTheTwin) {
  for (const size_t count : {1, 2, 3, 63, 64, 65, 127, 128, 640, 959, 960, 961, 1025, 5000, 100001})
    for (const float beta : {0.f, .5f, 1.f}) {
      SCOPED_TRACE(std::to_string(count) + " numbers, beta " + std::to_string(beta));
      expect_as_twin(noise(count, 1), beta, noise(count, 2, .3f));
      expect_as_twin(wild(count, 3), 0, Floats(count));
    }
}

TEST_P(Levels, OfBlocksOfAllMagnitudesAreThoseOfTheTwin) {
  Floats values = noise(64 * 300, 4);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::ldexp(values[i], static_cast<int>(i / 64 * 7919 % 240) - 122);
  expect_as_twin(values, 1, Floats(values.size()));
}

TEST_P(Levels, OfZerosAreThoseOfTheTwin) {
  Floats values = noise(64 * 301 + 5, 5);
  for (size_t i = 0; i < values.size(); ++i)
    if (i / 64 % 5 != 2 || i % 7 == 3) values[i] = i % 2 == 0 ? 0.f : -0.f;
  expect_as_twin(values, 0, Floats(values.size()));
}

TEST_P(Levels, HalvesGoAwayFromZero) {
  const int m = GetParam() / 2;
  Floats values(64, 0);
  values[0] = static_cast<float>(m);
  for (int k = 0; k < m; ++k) {
    const float half = static_cast<float>(k) + .5f;
    values[static_cast<size_t>(2 * k + 1)] = half * 1.0001f;
    values[static_cast<size_t>(2 * k + 2)] = half * -.9999f;
  }
  const Floats out = decoded(*codec_, encoded(*codec_, values, 0, {}), 64);
  const float step = out[0] / static_cast<float>(m);
  for (int k = 0; k < m; ++k) {
    EXPECT_EQ(out[static_cast<size_t>(2 * k + 1)], step * static_cast<float>(k + 1));
    EXPECT_EQ(out[static_cast<size_t>(2 * k + 2)], step * static_cast<float>(-k));
  }
  values = {2 * static_cast<float>(m), -1, 1};  // exactly half a step
  const Floats halves = decoded(*codec_, encoded(*codec_, values, 0, {}), 3);
  EXPECT_LT(halves[1], 0);
  EXPECT_EQ(halves[2], -halves[1]);
}

TEST_P(Levels, WithoutResidualDropWhatIsLeftOut) {
  const Floats values = noise(1000, 6);
  Floats residual(1000, kNan);  // with beta 0 it is not read
  const Bytes code = encoded(*codec_, values, 0, residual);
  EXPECT_EQ(encoded(*codec_, values, 0, {}), code);
  EXPECT_EQ(encoded(*codec_, values, 1, {}), code);
  EXPECT_TRUE(std::all_of(residual.begin(), residual.end(), [](float x) { return x == x; }));
}

TEST_P(Levels, DoNotDependOnEarlierCalls) {
  for (const size_t count : {1, 63, 64, 128, 960, 1024, 1999}) {
    const Bytes fresh = encoded(*make_levels(GetParam()), noise(count, 18), 0, {});
    encoded(*codec_, Floats(5000, -1), 0, {});
    EXPECT_EQ(encoded(*codec_, noise(count, 18), 0, {}), fresh);
    expect_same(decoded(*codec_, fresh, count), twin(noise(count, 18), GetParam()));
  }
}

TEST_P(Levels, LoseNothingOverManyRounds) {
  constexpr size_t kCount = 1000;
  const Floats bias = noise(kCount, 7, .2f);
  Floats residual(kCount, 0);
  std::vector<double> put(kCount), got(kCount);
  for (uint64_t round = 0; round < 1000; ++round) {
    Floats values = noise(kCount, 100 + round);
    for (size_t i = 0; i < kCount; ++i) put[i] += values[i] += bias[i];
    const Floats out = decoded(*codec_, encoded(*codec_, values, 1, residual), kCount);
    for (size_t i = 0; i < kCount; ++i) got[i] += out[i];
  }
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_NEAR(got[i] + residual[i], put[i], 1e-3);
    EXPECT_LT(std::fabs(residual[i]), 60);
  }
}

TEST_P(Levels, KeepTheEndsOfTheRange) {
  expect_as_twin(Floats(130, kMax), 0, Floats(130));
  expect_as_twin(Floats(130, -kMax), 0, Floats(130));
  expect_as_twin({kMax, -kMax, kMax / 2, 0, 1}, 0, Floats(5));
  expect_as_twin({0x1p-120f, -0x1p-121f, 0x1p-149f, 0x1p-126f, -0.f}, 0, Floats(5));
  Floats residual(3);
  const Bytes code = encoded(*codec_, {0x1p-121f, 0x1p-149f, -0x1p-130f}, 1, residual);
  expect_same(decoded(*codec_, code, 3), {0, 0, 0});
  expect_same(residual, {0x1p-121f, 0x1p-149f, -0x1p-130f});
}

TEST_P(Levels, RefuseWhatIsNotFinite) {
  for (const float bad : {kInf, -kInf, kNan, -kNan})
    for (const size_t place : {0, 63, 64, 700, 999}) {
      Floats values = noise(1000, 8), residual(1000);
      Bytes code(codec_->bound(1000));
      values[place] = bad;
      EXPECT_FALSE(codec_->encode(values, 0, {}, code).has_value());
      EXPECT_FALSE(codec_->encode(values, 1, residual, code).has_value());
      values[place] = 1;
      residual.assign(1000, 0);
      residual[place] = bad;
      EXPECT_FALSE(codec_->encode(values, 1, residual, code).has_value());
      expect_as_twin(noise(1000, 8), 0, Floats(1000));  // and are none the worse for it
    }
  Floats residual{kMax};
  Bytes code(codec_->bound(1));
  EXPECT_FALSE(codec_->encode(Floats{kMax}, 1, residual, code).has_value());
}

TEST_P(Levels, OfNothingTakeNothing) {
  EXPECT_EQ(codec_->bound(0), 0u);
  EXPECT_EQ(codec_->encode({}, 1, {}, {}), 0u);
  EXPECT_TRUE(codec_->decode({}, {}));
  EXPECT_FALSE(codec_->decode(Bytes(1), {}));
}

TEST_P(Levels, OfZeroBlocksTakeLittle) {
  EXPECT_LE(encoded(*codec_, Floats(100000), 0, {}).size(), 5u);
  Floats values = noise(64 * 2000, 9);
  const size_t all = encoded(*codec_, values, 0, {}).size();
  for (size_t i = 0; i < values.size(); ++i)
    if (i / 64 % 10 != 0) values[i] = 0;
  EXPECT_LT(encoded(*codec_, values, 0, {}).size(), all / 7);
}

TEST_P(Levels, LeaveTheErrorThatTheHeaderNames) {
  const Floats values = noise(200000, 10);
  Floats residual(values.size());
  const Bytes code = encoded(*codec_, values, 0, residual);
  double all = 0, left = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    all += double(values[i]) * values[i];
    left += double(residual[i]) * residual[i];
  }
  EXPECT_LT(left / all, GetParam() == 3 ? .54 : GetParam() == 5 ? .15 : .07);
  const double bits = 8. * static_cast<double>(code.size()) / static_cast<double>(values.size());
  EXPECT_LT(bits, GetParam() == 3 ? 1.14 : GetParam() == 5 ? 1.92 : 2.45);
}

TEST_P(Levels, TakeTheSameBytesOnEveryMachine) {
  Floats residual = noise(10007, 12, .1f);
  const uint64_t digest = hash_of(encoded(*codec_, noise(10007, 11), .75f, residual));
  EXPECT_EQ(digest, GetParam() == 3   ? 1896620074136792057u
                    : GetParam() == 5 ? 11026342994067939546u
                                      : 5173132883750702804u);
}

// Decodes from memory that is exactly as long. False: it was refused.
bool read(Codec& codec, const Bytes& code, size_t count) {
  Floats out(count, kNan);
  const Bytes exact(code.begin(), code.end());
  if (!codec.decode(exact, out)) return false;
  EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](float x) { return std::isfinite(x); }));
  return true;
}

TEST_P(Levels, RefuseCodesOfAnotherLength) {
  for (const size_t count : {1, 70, 1000, 3000})
    for (const Floats& values : {noise(count, 13), wild(count, 14)}) {
      Bytes code = encoded(*codec_, values, 0, {});
      for (size_t n = 0; n < code.size(); ++n)
        EXPECT_FALSE(read(*codec_, {code.begin(), code.begin() + ptrdiff_t(n)}, count));
      EXPECT_TRUE(read(*codec_, code, count));
      code.push_back(std::byte{0});
      EXPECT_FALSE(read(*codec_, code, count));
    }
}

TEST_P(Levels, AreHarmlessWhenDamaged) {
  Rng rng(15);
  for (const size_t count : {1, 70, 1000, 8000})
    for (const Floats& values : {noise(count, 16), wild(count, 17)}) {
      const Bytes code = encoded(*codec_, values, 0, {});
      for (int i = 0; i < 700; ++i) {
        Bytes damaged = code;
        for (uint64_t n = 1 + rng() % 3; n > 0; --n)
          damaged[rng() % std::min<size_t>(code.size(), i % 2 == 0 ? 40 : code.size())] ^=
              static_cast<std::byte>(1 + rng() % 255);
        read(*codec_, damaged, count);
      }
    }
  for (int i = 0; i < 5000; ++i) {
    Bytes bytes(rng() % 100);
    for (std::byte& b : bytes) b = static_cast<std::byte>(rng() % (i % 2 == 0 ? 256 : 4));
    read(*codec_, bytes, rng() % 300);
  }
}

TEST_P(Levels, OfInfiniteStepsAreRefused) {
  Bytes code = encoded(*codec_, Floats(64, kMax), 0, {});  // form, base, one symbol
  ASSERT_TRUE(read(*codec_, code, 64));
  for (const int above : {1, 2, 3, 8, 255}) {
    Bytes high = code;
    high[1] = static_cast<std::byte>(static_cast<int>(code[1]) + above);
    if (high[1] > code[1]) {
      EXPECT_FALSE(read(*codec_, high, 64)) << above;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Levels, testing::Values(3, 5, 7),
                         [](const auto& info) { return std::to_string(info.param); });

TEST(MakeLevels, RefusesOtherNumbersOfLevels) {
  for (const int levels : {-1, 0, 1, 2, 4, 6, 8, 9})
    EXPECT_THROW(make_levels(levels), std::invalid_argument);
}

}  // namespace
}  // namespace hybridsync
