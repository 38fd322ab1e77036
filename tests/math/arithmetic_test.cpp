// Arithmetic on spans against serial twins, in both types.
#include "hybridsync/math/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "hybridsync/math/hash.h"
#include "hybridsync/math/outer.h"

namespace hybridsync {
namespace {

template <class T>
std::vector<T> noise(size_t n, int seed) {
  std::mt19937 rng(seed);
  std::vector<T> v(n);
  for (T& x : v) x = static_cast<T>(static_cast<int>(rng() % 2001) - 1000) / T(128);
  return v;
}

template <class T>
ConstValues view(const std::vector<T>& v) {
  return std::span<const T>(v);
}

template <class T>
class Arithmetic : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Arithmetic, Types);

TYPED_TEST(Arithmetic, WeightedMeanEqualsItsTwin) {
  for (size_t n : {0, 1, 7, 1000}) {
    const auto a = noise<TypeParam>(n, 1), b = noise<TypeParam>(n, 2), c = noise<TypeParam>(n, 3);
    const std::vector<ConstValues> x{view(a), view(b), view(c)};
    const std::vector<double> w{3, 5, 100};
    std::vector<TypeParam> out(n);
    weighted_mean(x, w, std::span(out));
    for (size_t i = 0; i < n; ++i) {
      TypeParam twin = TypeParam(3 / 108.0) * a[i];
      twin += TypeParam(5 / 108.0) * b[i];
      twin += TypeParam(100 / 108.0) * c[i];
      EXPECT_EQ(out[i], twin);
    }
  }
}

TYPED_TEST(Arithmetic, AWeightOfZeroIsNotRead) {
  const std::vector<TypeParam> nan(3, std::numeric_limits<TypeParam>::quiet_NaN());
  const auto a = noise<TypeParam>(3, 1);
  const std::vector<ConstValues> x{view(nan), view(a)};
  const std::vector<double> w{0, 17};
  std::vector<TypeParam> out(3);
  weighted_mean(x, w, std::span(out));
  EXPECT_EQ(out, a);
}

TYPED_TEST(Arithmetic, SquaredNormSeesWhatIsNotFinite) {
  auto a = noise<TypeParam>(1001, 1);
  double twin = 0;
  for (TypeParam x : a) twin += double(x) * double(x);
  EXPECT_NEAR(squared_norm(view(a)), twin, 1e-12 * twin);
  for (TypeParam bad :
       {std::numeric_limits<TypeParam>::infinity(), -std::numeric_limits<TypeParam>::infinity(),
        std::numeric_limits<TypeParam>::quiet_NaN()}) {
    a[1000] = bad;
    EXPECT_FALSE(std::isfinite(squared_norm(view(a))));
  }
}

TYPED_TEST(Arithmetic, PlainAveragingOfOneMemberGivesItsParameters) {
  const auto anchor = noise<TypeParam>(999, 1), theta = noise<TypeParam>(999, 2);
  auto delta = theta;
  subtract(view(anchor), view(theta), std::span(delta));
  auto moved = anchor;
  outer_step({1.0, 0.0, false}, view(delta), std::span(moved), std::span<TypeParam>());
  for (size_t i = 0; i < theta.size(); ++i) {
    const TypeParam largest = std::max(std::abs(anchor[i]), std::abs(theta[i]));
    const TypeParam ulp = std::nextafter(largest, TypeParam(1e9)) - largest;
    EXPECT_NEAR(moved[i], theta[i], ulp);
  }
}

TYPED_TEST(Arithmetic, OuterRateZeroKeepsTheAnchor) {
  const auto anchor = noise<TypeParam>(99, 1), delta = noise<TypeParam>(99, 2);
  auto moved = anchor;
  std::vector<TypeParam> buffer(99);
  outer_step({0.0, 0.9, true}, view(delta), std::span(moved), std::span(buffer));
  EXPECT_EQ(moved, anchor);
}

TYPED_TEST(Arithmetic, OuterMomentumEqualsItsTwin) {
  for (bool nesterov : {false, true}) {
    std::vector<TypeParam> anchor(50, 1), buffer(50, 0), twin(50, 1), b(50, 0);
    const TypeParam lr = TypeParam(0.7), mu = TypeParam(0.9);
    for (int round = 0; round < 5; ++round) {
      const auto delta = noise<TypeParam>(50, round);
      outer_step({0.7, 0.9, nesterov}, view(delta), std::span(anchor), std::span(buffer));
      for (size_t i = 0; i < twin.size(); ++i) {
        b[i] = mu * b[i] + delta[i];
        twin[i] -= lr * (nesterov ? delta[i] + mu * b[i] : b[i]);
      }
    }
    EXPECT_EQ(anchor, twin);
    EXPECT_EQ(buffer, b);
  }
}

TEST(Hash, SeesOneBit) {
  std::vector<float> a(1000, 1.0f), b = a;
  EXPECT_EQ(hash_of(view(a)), hash_of(view(b)));
  b[999] = std::nextafter(1.0f, 2.0f);
  EXPECT_NE(hash_of(view(a)), hash_of(view(b)));
  EXPECT_NE(combine(combine(0, 1), 2), combine(combine(0, 2), 1));
}

}  // namespace
}  // namespace hybridsync
