#include "hybridsync/math/codec/mixed.h"

#include <gtest/gtest.h>

#include "hybridsync/math/codec/blocks.h"
#include "hybridsync/math/codec/dense.h"
#include "tests/codec/cases.h"

namespace hybridsync {
namespace {

using Floats = std::vector<float>;
using Code = std::vector<std::byte>;

std::unique_ptr<Codec> int4() { return make_blocks(CodecKind::int4); }
std::unique_ptr<Codec> bf16() { return make_dense(CodecKind::bf16); }

// The ranges {3, 2} and {10, 5}, number by number.
const std::vector<IndexRange> kRanges = {{3, 2}, {10, 5}};
bool is_small(size_t i) { return i == 3 || i == 4 || (10 <= i && i < 15); }

Floats part(const Floats& all, bool small) {
  Floats some;
  for (size_t i = 0; i < all.size(); ++i)
    if (is_small(i) == small) some.push_back(all[i]);
  return some;
}

Floats joined(const Floats& small, const Floats& main) {
  Floats all(small.size() + main.size());
  size_t s = 0, m = 0;
  for (size_t i = 0; i < all.size(); ++i) all[i] = is_small(i) ? small[s++] : main[m++];
  return all;
}

// The two parts coded by hand.
Code twin(const Floats& values, float beta, Floats& residual) {
  Floats small_rest = part(residual, true), main_rest = part(residual, false);
  const Code small = *encoded(*bf16(), part(values, true), beta, small_rest);
  const Code main = *encoded(*int4(), part(values, false), beta, main_rest);
  Code code(8);
  code[0] = static_cast<std::byte>(small.size());
  code.insert(code.end(), small.begin(), small.end());
  code.insert(code.end(), main.begin(), main.end());
  if (!residual.empty()) residual = joined(small_rest, main_rest);
  return code;
}

TEST(Mixed, IsItsTwoPartsCodedByHand) {
  for (const size_t count : {size_t{5}, size_t{12}, size_t{100}})
    for (const float beta : {0.0f, 0.5f})
      for (const Case& one : cases(count)) {
        const auto codec = make_mixed(int4(), kRanges);
        Floats expected_rest = cases(count).front().values, rest = expected_rest;
        const Code expected = twin(one.values, beta, expected_rest);
        const Code code = *encoded(*codec, one.values, beta, rest);
        ASSERT_EQ(code, expected) << one.name;
        ASSERT_EQ(rest, expected_rest) << one.name;
        const auto sent = decoded(*codec, code, count);
        ASSERT_TRUE(sent) << one.name;
        Floats none;
        const auto small = *encoded(*bf16(), part(one.values, true), 0, none);
        if (beta == 0) {
          EXPECT_EQ(part(*sent, true), *decoded(*bf16(), small, part(one.values, true).size()));
        }
      }
}

TEST(Mixed, WithoutAResidualTheSameCode) {
  const auto codec = make_mixed(int4(), kRanges);
  for (const Case& one : cases(100)) {
    Floats none, rest(100);
    EXPECT_EQ(*encoded(*codec, one.values, 0, none), *encoded(*codec, one.values, 0, rest));
  }
}

TEST(Mixed, OnePartAloneIsItsOwnCode) {
  const Floats values = cases(200).front().values;
  Floats none;
  const auto whole = *encoded(*bf16(), values, 0, none);
  EXPECT_EQ(*encoded(*make_mixed(int4(), {{0, 50}, {50, 1000}}), values, 0, none), whole);
  EXPECT_EQ(*encoded(*make_mixed(int4(), {{200, 7}}), values, 0, none),
            *encoded(*int4(), values, 0, none));
  auto main = int4();
  const Codec* itself = main.get();
  EXPECT_EQ(make_mixed(std::move(main), {}).get(), itself);
}

TEST(Mixed, RefusesALengthThatIsNotThatOfThePart) {
  const auto codec = make_mixed(int4(), kRanges);
  Floats none;
  const Code code = *encoded(*codec, cases(100).front().values, 0, none);
  for (size_t at = 0; at < 8; ++at)
    for (const int by : {1, 2, 128, 255}) {
      Code wrong = code;
      wrong[at] ^= static_cast<std::byte>(by);
      EXPECT_FALSE(decoded(*codec, wrong, 100)) << "byte " << at << ", by " << by;
    }
}

TEST(Mixed, RefusesAPartThatIsNoCode) {
  const auto codec = make_mixed(int4(), kRanges);
  Floats none;
  const Code code = *encoded(*codec, cases(100).front().values, 0, none);
  Code infinite = code;
  infinite[8] = std::byte{0x80};
  infinite[9] = std::byte{0x7f};
  EXPECT_FALSE(decoded(*codec, infinite, 100));
  Code shorter = code;
  shorter.pop_back();
  EXPECT_FALSE(decoded(*codec, shorter, 100));
}

}  // namespace
}  // namespace hybridsync
