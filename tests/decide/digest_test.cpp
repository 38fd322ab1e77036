// One number per value: its parts, their order and their limits count.
#include "hybridsync/decide/digest.h"

#include <gtest/gtest.h>

namespace hybridsync {
namespace {

struct Pair {
  int a = 0;
  std::vector<int> b;
  static void visit(auto& s, auto&& f) { f(s.a, s.b); }
};

template <class... T>
uint64_t digest(const T&... values) {
  return Digest().add(values...).value();
}

TEST(Digest, EqualValuesEqualDigests) {
  EXPECT_EQ(digest(Pair{1, {2, 3}}), digest(Pair{1, {2, 3}}));
  EXPECT_EQ(digest(1, 2), Digest().add(1).add(2).value());
  EXPECT_EQ(digest(Pair{1, {2}}), digest(1, std::vector<int>{2})) << "a struct is its parts";
}

TEST(Digest, OrderCounts) {
  EXPECT_NE(digest(1, 2), digest(2, 1));
  EXPECT_NE(digest(std::vector<int>{1, 2}), digest(std::vector<int>{2, 1}));
}

TEST(Digest, WhereAVectorEndsCounts) {
  using V = std::vector<int>;
  EXPECT_NE(digest(V{1}, V{2, 3}), digest(V{1, 2}, V{3}));
  EXPECT_NE(digest(V{}, V{1}), digest(V{1}, V{}));
}

TEST(Digest, NothingIsNotZero) {
  EXPECT_NE(digest(std::optional<int>{}), digest(std::optional<int>{0}));
}

TEST(Digest, TheAlternativeCounts) {
  using One = std::variant<int, unsigned>;
  EXPECT_NE(digest(One{1}), digest(One{1u}));
}

TEST(Digest, MapsCountKeysAndValues) {
  using M = std::map<int, int>;
  EXPECT_EQ(digest(M{{1, 2}, {3, 4}}), digest(M{{3, 4}, {1, 2}}));
  EXPECT_NE(digest(M{{1, 2}}), digest(M{{2, 1}}));
}

TEST(Digest, ClearForgets) {
  Digest d;
  d.add(1);
  d.clear();
  EXPECT_EQ(d.add(2).value(), digest(2));
}

TEST(Digest, WideToldFromNarrow) {
  const XXH128_hash_t one = Digest().add(1).wide(), two = Digest().add(2).wide();
  EXPECT_FALSE(one.low64 == two.low64 && one.high64 == two.high64);
}

}  // namespace
}  // namespace hybridsync
