// The top-k codec: what is picked against a slow twin, that nothing is lost, and that damaged codes
// do no harm.
#include "hybridsync/math/codec/top_k.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "hybridsync/math/codec/chunk_selection.h"
#include "hybridsync/math/codec/packed_values.h"
#include "hybridsync/math/codec/pick_list.h"
#include "hybridsync/math/codec/threshold.h"
#include "hybridsync/math/codec/threshold_selection.h"
#include "top_k_twin.h"

namespace hybridsync {
namespace {

using Floats = std::vector<float>;
using Code = std::vector<std::byte>;

Floats normals(size_t n, int seed, int power = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  Floats v(n);
  for (float& x : v) x = std::pow(normal(rng), float(power));
  return v;
}

CodecOptions settings(double density, int value_bits = 8, Selection selection = Selection::chunks) {
  CodecOptions options;
  options.kind = CodecKind::top_k;
  options.density = density;
  options.value_bits = value_bits;
  options.selection = selection;
  return options;
}

std::optional<Code> encoded(Codec& codec, const Floats& values, float beta,
                            std::span<float> residual) {
  Code code(codec.bound(values.size()) + 8, std::byte{0xa5});
  const auto size = codec.encode(values, beta, residual, std::span(code).first(code.size() - 8));
  for (size_t i = code.size() - 8; i < code.size(); ++i) EXPECT_EQ(code[i], std::byte{0xa5});
  if (!size) return std::nullopt;
  EXPECT_LE(*size, codec.bound(values.size()));
  code.resize(*size);
  return code;
}

Floats decoded(Codec& codec, const Code& code, size_t count) {
  Floats out(count, NAN);
  EXPECT_TRUE(codec.decode(code, out));
  return out;
}

template <class Selector>
std::vector<uint32_t> picked(const Floats& u, double density) {
  Selector selector(density);
  PickList list;
  list.start(16, selector.room(u.size()), {});
  EXPECT_TRUE(selector.pick({u, 0, {}}, list));
  return {list.positions().begin(), list.positions().end()};
}

uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Once for every width of vectors that this processor has.
template <class F>
void for_every_target(F f) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

std::vector<std::pair<std::string, Floats>> hard_vectors(size_t n) {
  std::vector<std::pair<std::string, Floats>> all{{"normal", normals(n, 1)},
                                                  {"cubed", normals(n, 2, 3)},
                                                  {"zero", Floats(n)},
                                                  {"equal", Floats(n, -2.5f)}};
  Floats ties = normals(n, 3), tiny = normals(n, 4), huge = normals(n, 5), scales = normals(n, 6);
  Floats one(n), minus(n, -0.0f), few(n);
  for (size_t i = 0; i < n; ++i) {
    ties[i] = std::round(2 * ties[i]);
    tiny[i] *= FLT_TRUE_MIN * 9;
    huge[i] = i % 3 ? std::copysign(FLT_MAX, huge[i]) : huge[i];
    scales[i] *= std::exp2(float(i / 4096 * 37 % 100) - 50);
    if (i % 1000 == 7) few[i] = float(i);
  }
  if (n > 0) one[n / 2] = 1e30f;
  all.insert(all.end(), {{"ties", ties},
                         {"denormal", tiny},
                         {"huge", huge},
                         {"scales", scales},
                         {"one", one},
                         {"minus", minus},
                         {"few", few}});
  return all;
}

TEST(TopK, PicksByChunksWhatTheTwinPicks) {
  for_every_target([] {
    for (size_t n : {0, 1, 2, 4'095, 4'096, 4'097, 100'003})
      for (double density : {1e-9, 1.0 / 64, 0.3, 1.0})
        for (const auto& [name, u] : hard_vectors(n))
          EXPECT_EQ(picked<ChunkSelection>(u, density), top_k_twin(u, density))
              << name << " " << n << " " << density;
  });
}

TEST(TopK, WhatWasPickedBeforeHasNoInfluence) {
  ChunkSelection used(0.02);
  for (const auto& [name, u] : hard_vectors(20'000)) {
    PickList list;
    list.start(16, used.room(u.size()), {});
    ASSERT_TRUE(used.pick({u, 0, {}}, list));
    const auto twin = top_k_twin(u, 0.02);
    EXPECT_TRUE(
        std::equal(twin.begin(), twin.end(), list.positions().begin(), list.positions().end()))
        << name;
  }
}

size_t nonzeros(const Floats& u) {
  return u.size() - static_cast<size_t>(std::count(u.begin(), u.end(), 0.0f));
}

TEST(TopK, AThresholdPicksWithinItsLimits) {
  for (size_t n : {0, 1, 2, 1'000, 100'003, 1'000'003})
    for (double density : {1e-9, 1e-3, 1.0 / 64, 0.3, 1.0})
      for (const auto& [name, u] : hard_vectors(n)) {
        const size_t wanted = wanted_of(density, n);
        const auto positions = picked<ThresholdSelection>(u, density);
        EXPECT_LE(positions.size(), std::min(n, 2 * wanted)) << name << n;
        EXPECT_GE(2 * positions.size(), std::min(wanted, 2 * nonzeros(u))) << name << n;
        EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
        EXPECT_EQ(std::adjacent_find(positions.begin(), positions.end()), positions.end());
      }
}

// With one hit in the sample its threshold is often wrong, too high as well as too low.
TEST(TopK, AThresholdPicksWithinItsLimitsWhereTheSampleSaysLittle) {
  for (int seed = 0; seed < 30; ++seed) {
    const auto positions = picked<ThresholdSelection>(normals(100'003, seed), 1e-4);
    EXPECT_GE(positions.size(), 5u) << seed;
    EXPECT_LE(positions.size(), 20u) << seed;
  }
}

TEST(TopK, AThresholdIsNearTheCountWantedAndPicksTheLargest) {
  for (int power : {1, 3}) {
    const Floats u = normals(2'000'000, 8, power);
    const auto positions = picked<ThresholdSelection>(u, 1.0 / 64);
    EXPECT_NEAR(double(positions.size()), 31'250, 31'250 * 0.05);
    const auto twin = top_k_twin(u, double(positions.size()) / double(u.size()), u.size());
    EXPECT_EQ(positions, twin);
  }
}

// Where the sample says nothing of the whole, a second pass picks exactly.
TEST(TopK, AThresholdThatTheSampleMissesIsCorrected) {
  const double density = 0.01;
  for (size_t n : {150'000, 400'001}) {
    Floats rising(n), equal(n, 1.0f), spikes(n, 1e-3f);
    for (size_t i = 0; i < n; ++i) rising[i] = float(i + 1);
    for (size_t i = 0; i < n / 150; ++i) spikes[i] = 1.0f + float(i);
    for (size_t i = n / 2; i < n / 2 + 500; ++i) equal[i] = 2;
    for (const Floats* u : {&equal, &spikes})
      EXPECT_EQ(picked<ThresholdSelection>(*u, density), top_k_twin(*u, density, n));
    EXPECT_NEAR(double(picked<ThresholdSelection>(rising, density).size()), double(n) * density,
                double(n) * density * 0.1);
  }
}

class EveryForm : public testing::TestWithParam<std::tuple<int, Selection>> {
 protected:
  static CodecOptions of(double density) {
    return settings(density, std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};

TEST_P(EveryForm, EveryTargetGivesTheSameBytes) {
  const auto codec = make_top_k(of(0.02));
  for (const auto& [name, u] : hard_vectors(150'001)) {
    std::optional<Code> first;
    Floats first_residual;
    for_every_target([&, &u = u, &name = name] {
      Floats residual(u.size());
      for (size_t i = 0; i < u.size(); ++i) residual[i] = -0.3f * u[i];
      const auto code = encoded(*codec, u, 0.7f, residual);
      ASSERT_TRUE(code) << name;
      if (!first) first = code, first_residual = residual;
      EXPECT_EQ(*code, *first) << name;
      EXPECT_EQ(0, std::memcmp(residual.data(), first_residual.data(), 4 * u.size())) << name;
    });
  }
}

TEST_P(EveryForm, NothingIsLost) {
  for (double density : {1e-6, 0.02, 1.0})
    for (size_t n : {1, 2, 3, 300, 4'097, 150'001}) {
      const auto codec = make_top_k(of(density));
      for (const auto& [name, u] : hard_vectors(n)) {
        Floats residual(n, 0.25f);
        const auto code = encoded(*codec, u, 0, residual);
        ASSERT_TRUE(code);
        const Floats sent = decoded(*codec, *code, n);
        double squares = 0, left = 0;
        for (size_t i = 0; i < n; ++i) {
          ASSERT_TRUE(std::isfinite(sent[i]) && std::isfinite(residual[i]));
          ASSERT_EQ(bits_of(residual[i]) << 1, bits_of(u[i] - sent[i]) << 1) << name << i;
          squares += double(u[i]) * u[i], left += double(residual[i]) * residual[i];
        }
        EXPECT_LE(left, squares * 1.0001) << name << n;
      }
    }
}

TEST_P(EveryForm, WithoutResidualTheSameIsSent) {
  const auto codec = make_top_k(of(0.02));
  for (const auto& [name, u] : hard_vectors(10'000)) {
    Floats residual(u.size());
    EXPECT_EQ(encoded(*codec, u, 1, residual), encoded(*codec, u, 1, {})) << name;
  }
}

TEST_P(EveryForm, WithBetaZeroTheResidualIsNotRead) {
  const auto codec = make_top_k(of(0.02));
  const Floats u = normals(10'000, 1);
  Floats residual(u.size(), NAN), zero(u.size());
  EXPECT_EQ(encoded(*codec, u, 0, residual), encoded(*codec, u, 1, zero));
  EXPECT_EQ(residual, zero);
}

TEST_P(EveryForm, OverAThousandRoundsTheSumIsWhatWasPutIn) {
  const size_t n = 5'000;
  const auto codec = make_top_k(of(0.05));
  Floats residual(n);
  std::vector<double> put(n), sent(n);
  for (int round = 0; round < 1'000; ++round) {
    const Floats v = normals(n, round, 1 + round % 2 * 2);
    const auto code = encoded(*codec, v, 1, residual);
    ASSERT_TRUE(code);
    ASSERT_FALSE(is_dense_fallback(*code));
    const Floats out = decoded(*codec, *code, n);
    for (size_t i = 0; i < n; ++i) put[i] += v[i], sent[i] += out[i];
  }
  for (size_t i = 0; i < n; ++i) EXPECT_NEAR(sent[i] + residual[i], put[i], 2e-3);
}

TEST_P(EveryForm, WhatIsSentFollowsAConstantGradient) {
  const size_t n = 1'000;
  const auto codec = make_top_k(of(0.1));
  Floats gradient(n), residual(n);
  for (size_t i = 0; i < n; ++i) gradient[i] = float(1 + i % 10) / 10;
  std::vector<double> sent(n);
  for (int step = 0; step < 1'000; ++step) {
    const auto code = encoded(*codec, gradient, 1, residual);
    ASSERT_TRUE(code);
    ASSERT_FALSE(is_dense_fallback(*code));
    const Floats out = decoded(*codec, *code, n);
    for (size_t i = 0; i < n; ++i) sent[i] += out[i];
  }
  // Each number waits for no longer than the largest takes to be sent by turns.
  for (size_t i = 0; i < n; ++i) EXPECT_NEAR(sent[i], 1'000.0 * gradient[i], 25) << i;
}

TEST_P(EveryForm, WhatIsNotFiniteIsRefused) {
  const auto codec = make_top_k(of(0.02));
  for (float bad : {NAN, -NAN, INFINITY, -INFINITY})
    for (size_t at : {0, 17, 4'095, 4'096, 150'000}) {
      Floats u = normals(150'001, 1), residual(u.size());
      u[at] = bad;
      EXPECT_FALSE(encoded(*codec, u, 1, residual));
      EXPECT_FALSE(encoded(*codec, u, 0, residual));
      EXPECT_FALSE(encoded(*codec, u, 0, {}));
      u[at] = FLT_MAX, residual.assign(u.size(), 0), residual[at] = FLT_MAX;
      EXPECT_FALSE(encoded(*codec, u, 1, residual));
      EXPECT_TRUE(encoded(*codec, u, 0, residual));
    }
}

TEST_P(EveryForm, NothingAndZerosAreSmall) {
  const auto codec = make_top_k(of(0.02));
  EXPECT_EQ(encoded(*codec, {}, 1, {})->size(), 1u);
  EXPECT_EQ(decoded(*codec, *encoded(*codec, {}, 1, {}), 0), Floats{});
  for (float zero : {0.0f, -0.0f}) {
    const auto code = encoded(*codec, Floats(10'000, zero), 1, {});
    EXPECT_EQ(code->size(), 5u);
    EXPECT_EQ(decoded(*codec, *code, 10'000), Floats(10'000));
  }
}

TEST_P(EveryForm, AWrongCountOrLengthIsRefused) {
  const auto codec = make_top_k(of(0.02));
  const auto code = *encoded(*codec, normals(5'000, 1), 1, {});
  Floats few(50), out(5'000);
  EXPECT_FALSE(codec->decode(code, few));
  Code longer = code;
  longer.push_back({});
  EXPECT_FALSE(codec->decode(longer, out));
  for (size_t n = 0; n < code.size(); ++n) {
    const Code shorter(code.begin(), code.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_FALSE(codec->decode(shorter, out)) << n;
  }
}

// On the heap and exactly as long as it is, so that a sanitizer sees what is read beyond.
TEST_P(EveryForm, DamagedCodesGiveFiniteNumbersOrAreRefused) {
  std::mt19937 rng(7);
  const auto codec = make_top_k(of(0.02));
  for (size_t n : {20, 5'000}) {
    const Code code = *encoded(*codec, normals(n, 1), 1, {});
    Floats out(n);
    for (int round = 0; round < 5'000; ++round) {
      Code damaged = code;
      for (int i = 0, times = 1 + int(rng() % 4); i < times; ++i)
        damaged[rng() % (round % 2 ? damaged.size() : std::min<size_t>(damaged.size(), 12))] =
            std::byte(rng());
      if (round % 3 == 0) damaged.resize(rng() % (damaged.size() + 1));
      damaged.shrink_to_fit();
      if (!codec->decode(damaged, out)) continue;
      EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](float x) { return std::isfinite(x); }));
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<int, Selection>>& info) {
  return std::to_string(std::get<0>(info.param)) +
         (std::get<1>(info.param) == Selection::chunks ? "_by_chunks" : "_by_threshold");
}
INSTANTIATE_TEST_SUITE_P(TopK, EveryForm,
                         testing::Combine(testing::Values(16, 8, 4, 2, 1),
                                          testing::Values(Selection::chunks, Selection::threshold)),
                         name_of);

TEST(TopK, AllIsSentDenselyWhereThatIsSmaller) {
  for (const auto selection : {Selection::chunks, Selection::threshold}) {
    const auto codec = make_top_k(settings(1, 16, selection));
    const Floats u = normals(10'000, 1);
    Floats residual(u.size());
    const auto code = encoded(*codec, u, 1, residual);
    EXPECT_TRUE(is_dense_fallback(*code));
    EXPECT_EQ(code->size(), 20'001u);
    EXPECT_EQ(code->size(), codec->bound(u.size()));
    const Floats sent = decoded(*codec, *code, u.size());
    for (size_t i = 0; i < u.size(); ++i) {
      EXPECT_EQ(sent[i] + residual[i], u[i]);
      EXPECT_LE(std::fabs(residual[i]), std::fabs(u[i]) / 256);
    }
  }
  EXPECT_FALSE(is_dense_fallback(*encoded(*make_top_k(settings(0.01)), normals(10'000, 1), 1, {})));
}

TEST(TopK, ADamagedDenseCodeIsRefused) {
  const auto codec = make_top_k(settings(1, 16));
  Code code = *encoded(*codec, normals(100, 1), 1, {});
  ASSERT_TRUE(is_dense_fallback(code));
  Floats out(100);
  code.push_back({});
  EXPECT_FALSE(codec->decode(code, out));
  code.resize(code.size() - 2);
  EXPECT_FALSE(codec->decode(code, out));
  code.push_back(std::byte{0x7f});
  code[code.size() - 2] = std::byte{0x80};
  EXPECT_FALSE(codec->decode(code, out));
}

double error_of(const Floats& u, int bits) {
  Code code(packed_size(u.size(), bits));
  Floats left(u.size());
  pack_group(u, bits, code.data(), left.data());
  double squares = 0, all = 0;
  for (size_t i = 0; i < u.size(); ++i) squares += double(left[i]) * left[i], all += u[i] * u[i];
  return std::sqrt(squares / all);
}

TEST(PackedValues, TheErrorIsWhatTheBitsAllow) {
  Floats tail;
  for (float x : normals(20'000, 9))
    if (std::fabs(x) > 2.4f && tail.size() < 128) tail.push_back(x);
  ASSERT_EQ(tail.size(), 128u);
  EXPECT_LT(error_of(tail, 16), 0.003);
  EXPECT_LT(error_of(tail, 8), 0.003);
  EXPECT_LT(error_of(tail, 4), 0.03);
  EXPECT_LT(error_of(tail, 2), 0.09);
  EXPECT_LT(error_of(tail, 1), 0.15);
}

TEST(PackedValues, BfloatsAreRoundedToTheNearestEvenAndNeverToInfinity) {
  const Floats u{1.0f, 1.00390625f, 1.01171875f, FLT_MAX, -FLT_MAX, -0.0f, 1.00390637f};
  const Floats expected{1.0f, 1.0f, 1.015625f, 0x1.fep127f, -0x1.fep127f, -0.0f, 1.0078125f};
  Code code(packed_size(u.size(), 16));
  Floats left(u.size()), out(u.size());
  pack_group(u, 16, code.data(), left.data());
  ASSERT_TRUE(unpack(code, 16, out));
  EXPECT_EQ(out, expected);
}

TEST(PackedValues, TwoMagnitudesInTwoBitsAreExact) {
  const Floats u{1, 3, -3, 1, 3, -1, 3, 3, 3, -3};
  Code code(packed_size(u.size(), 2));
  Floats left(u.size()), out(u.size());
  pack_group(u, 2, code.data(), left.data());
  ASSERT_TRUE(unpack(code, 2, out));
  EXPECT_EQ(out, u);
}

TEST(PackedValues, ABookThatIsNotFiniteIsRefused) {
  for (int bits : {16, 8, 4, 2, 1})
    for (size_t byte : {1, 3}) {
      const Floats u = normals(100, 1);
      Code code(packed_size(u.size(), bits));
      Floats left(u.size()), out(u.size());
      pack_group(u, bits, code.data(), left.data());
      if (bits == 1 && byte == 3) continue;
      code[byte] = std::byte{0x7f};
      code[byte - 1] = std::byte{0x80};
      EXPECT_FALSE(unpack(code, bits, out)) << bits;
    }
}

TEST(TopK, SettingsThatItDoesNotHaveAreRefused) {
  for (double density : {0.0, -1.0, 1.001, double(NAN)})
    EXPECT_THROW(make_top_k(settings(density)), std::invalid_argument);
  for (int bits : {0, 3, 32}) EXPECT_THROW(make_top_k(settings(0.1, bits)), std::invalid_argument);
}

}  // namespace
}  // namespace hybridsync
