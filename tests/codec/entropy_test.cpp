// Symbols and positions come back, near their entropy, and damaged codes are refused or harmless.
#include "hybridsync/math/codec/entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "hybridsync/math/hash.h"

namespace hybridsync {
namespace {

using Rng = std::mt19937_64;
using Bytes = std::vector<std::byte>;
using Symbols = std::vector<uint8_t>;
using Positions = std::vector<uint32_t>;

double uniform(Rng& rng) { return static_cast<double>(rng() >> 11) * 0x1p-53; }

Bytes encoded(const Symbols& symbols, int alphabet) {
  Bytes code(symbols_bound(symbols.size(), alphabet), std::byte{0xa5});
  code.resize(encode_symbols(symbols, alphabet, code));
  code.shrink_to_fit();  // whatever is read beyond it is beyond an allocation
  return code;
}

Bytes encoded(const Positions& positions, uint64_t limit) {
  Bytes code(positions_bound(positions.size(), limit), std::byte{0xa5});
  code.resize(encode_positions(positions, limit, code));
  code.shrink_to_fit();
  return code;
}

// The length of the code.
size_t expect_round_trip(const Symbols& symbols, int alphabet) {
  const Bytes code = encoded(symbols, alphabet);
  Symbols back(symbols.size(), 0xee);
  EXPECT_EQ(decode_symbols(code, alphabet, back), code.size());
  EXPECT_EQ(back, symbols);
  return code.size();
}

size_t expect_round_trip(const Positions& positions, uint64_t limit) {
  const Bytes code = encoded(positions, limit);
  Positions back(positions.size(), 0xeeee);
  EXPECT_EQ(decode_positions(code, limit, back), code.size());
  EXPECT_EQ(back, positions);
  return code.size();
}

Symbols drawn(size_t count, const std::function<double(Rng&)>& draw, uint64_t seed = 1) {
  Rng rng(seed);
  Symbols symbols(count);
  for (uint8_t& s : symbols) s = static_cast<uint8_t>(draw(rng));
  return symbols;
}

double geometric(Rng& rng, double mean, int alphabet) {
  return std::min<double>(alphabet - 1, std::floor(-std::log(1 - uniform(rng)) * mean));
}

double entropy_bytes(const Symbols& symbols) {
  std::array<double, 256> counts{};
  for (const uint8_t s : symbols) ++counts[s];
  double bits = 0;
  for (const double n : counts)
    if (n > 0) bits -= n * std::log2(n / static_cast<double>(symbols.size()));
  return bits / 8;
}

TEST(Symbols, ComeBackInEveryNumberAndAlphabet) {
  for (const size_t count : {0, 1, 2, 3, 7, 8, 9, 63, 257, 1023, 1024, 4095, 4101, 16383, 16391})
    for (const int alphabet : {2, 3, 5, 7, 8, 49, 100, 124, 125, 128, 129, 243, 255, 256}) {
      SCOPED_TRACE(std::to_string(count) + " of " + std::to_string(alphabet));
      const auto a = static_cast<uint64_t>(alphabet);
      expect_round_trip(drawn(count, [=](Rng& r) { return double(r() % a); }), alphabet);
      expect_round_trip(drawn(count, [=](Rng& r) { return geometric(r, .3, alphabet); }), alphabet);
      expect_round_trip(drawn(count, [=](Rng& r) { return geometric(r, 9, alphabet); }), alphabet);
      expect_round_trip(Symbols(count, static_cast<uint8_t>(alphabet - 1)), alphabet);
    }
}

TEST(Symbols, ComeBackInEveryAlphabet) {
  for (int alphabet = 2; alphabet <= 256; ++alphabet) {
    SCOPED_TRACE(alphabet);
    expect_round_trip(drawn(700, [=](Rng& r) { return geometric(r, alphabet / 9., alphabet); }),
                      alphabet);
  }
}

TEST(Symbols, ComeBackWhereOneIsRare) {
  for (const size_t count : {2, 20, 2000, 200000})
    for (const size_t place : {size_t{0}, count / 2, count - 1}) {
      Symbols symbols(count, 7);
      symbols[place] = 255;
      EXPECT_LE(expect_round_trip(symbols, 256), count < 16384 ? 24u : 60u);
    }
}

// Two symbols of frequency 1/2 double a state each time: it meets 2^31, its limit, exactly.
TEST(Symbols, ComeBackWhereAStateMeetsItsLimit) {
  for (const size_t half : {20, 600, 3000, 9000}) {
    Symbols symbols(2 * half, 0);
    std::fill_n(symbols.begin(), half, uint8_t{1});
    EXPECT_LT(expect_round_trip(symbols, 256), 2 * half);
  }
}

TEST(Symbols, OfOneKindTakeTwoBytes) {
  EXPECT_EQ(encoded(Symbols(1000000, 17), 243).size(), 2u);
  EXPECT_EQ(encoded(Symbols(1, 17), 243).size(), 2u);
  EXPECT_EQ(encoded(Symbols{}, 243).size(), 0u);
}

TEST(Symbols, FewOfThemPayForNoLargeModel) {
  const Symbols few = drawn(64, [](Rng& r) { return 100 + geometric(r, 1, 9); });
  EXPECT_LT(static_cast<double>(expect_round_trip(few, 256)), entropy_bytes(few) + 16);
  const Symbols more = drawn(1000, [](Rng& r) { return geometric(r, 6, 256); });
  EXPECT_LT(static_cast<double>(expect_round_trip(more, 256)), entropy_bytes(more) + 32);
}

TEST(Symbols, ThatCannotBeShortenedCostAByte) {
  const Symbols noise = drawn(100000, [](Rng& r) { return double(r() % 256); });
  EXPECT_EQ(expect_round_trip(noise, 256), noise.size() + 1);
  const Symbols bits = drawn(8001, [](Rng& r) { return double(r() % 2); });
  EXPECT_EQ(expect_round_trip(bits, 2), 1u + 1001);
}

double packed_digits(Rng& rng, int base, int digits, double zero) {
  int symbol = 0;
  for (int i = 0; i < digits; ++i)
    symbol = symbol * base +
             (uniform(rng) < zero ? 0 : 1 + static_cast<int>(rng() % uint64_t(base - 1)));
  return symbol;
}

TEST(Symbols, AreWithinOnePercentOfTheirEntropy) {
  constexpr size_t kCount = 1000000;
  const std::vector<std::pair<int, std::function<double(Rng&)>>> draws = {
      {243, [](Rng& r) { return packed_digits(r, 3, 5, .85); }},
      {243, [](Rng& r) { return packed_digits(r, 3, 5, .6); }},
      {125, [](Rng& r) { return packed_digits(r, 5, 3, .5); }},
      {49, [](Rng& r) { return packed_digits(r, 7, 2, .4); }},
      {256, [](Rng& r) { return geometric(r, 6, 256); }},
      {256, [](Rng& r) { return geometric(r, 40, 256); }},
      {256, [](Rng& r) { return 255 - geometric(r, .2, 256); }},
      {200, [](Rng& r) { return double(r() % 200); }},
      {2, [](Rng& r) { return uniform(r) < .01 ? 1. : 0.; }}};
  for (const auto& [alphabet, draw] : draws) {
    const Symbols symbols = drawn(kCount, draw);
    const auto size = static_cast<double>(expect_round_trip(symbols, alphabet));
    EXPECT_LT(size, 1.01 * entropy_bytes(symbols)) << alphabet;
    EXPECT_GE(size, entropy_bytes(symbols)) << alphabet;
  }
}

TEST(Symbols, TakeTheSameBytesOnEveryMachine) {
  const auto digest = [](const Symbols& s, int alphabet) { return hash_of(encoded(s, alphabet)); };
  const Symbols few = drawn(900, [](Rng& r) { return double(r() % 16 * (r() % 15)); });
  const Symbols many = drawn(70001, [](Rng& r) { return double(r() % 16 * (r() % 15)); });
  EXPECT_EQ(digest(few, 243), 16232596315192276309u);
  EXPECT_EQ(digest(many, 243), 13290528513555959172u);
}

// Reads what a damaged code says, of memory that is exactly as long. True: it was accepted.
bool read_symbols(const Bytes& code, size_t count, int alphabet) {
  Symbols out(count, 0xee);
  const Bytes exact(code.begin(), code.end());
  const auto length = decode_symbols(exact, alphabet, out);
  if (!length) return false;
  EXPECT_LE(*length, code.size());
  EXPECT_TRUE(std::all_of(out.begin(), out.end(), [=](uint8_t s) { return s < alphabet; }));
  return true;
}

bool read_positions(const Bytes& code, size_t count, uint64_t limit) {
  Positions out(count);
  const Bytes exact(code.begin(), code.end());
  const auto length = decode_positions(exact, limit, out);
  if (!length) return false;
  EXPECT_LE(*length, code.size());
  EXPECT_TRUE(out.empty() || out.back() < limit);
  EXPECT_TRUE(std::adjacent_find(out.begin(), out.end(), std::greater_equal<>()) == out.end());
  return true;
}

Bytes flipped(Bytes code, Rng& rng) {
  for (uint64_t n = 1 + rng() % 3; n > 0; --n)
    code[rng() % code.size()] ^= static_cast<std::byte>(1 + rng() % 255);
  return code;
}

Bytes noise(size_t length, Rng& rng) {
  Bytes bytes(length);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng());
  return bytes;
}

const std::vector<std::pair<size_t, int>> kDamaged = {{40, 5},     {300, 200},  {900, 243},
                                                      {2000, 256}, {6000, 124}, {20000, 49}};

TEST(DamagedSymbols, CutShortAreRefused) {
  for (const auto& [count, alphabet] : kDamaged) {
    const int a = alphabet;
    const Bytes code = encoded(drawn(count, [=](Rng& r) { return geometric(r, a / 20., a); }), a);
    for (size_t n = 0; n < code.size(); ++n)
      EXPECT_FALSE(read_symbols({code.begin(), code.begin() + ptrdiff_t(n)}, count, a)) << n;
  }
  const Bytes raw = encoded(drawn(999, [](Rng& r) { return double(r() % 200); }), 200);
  for (size_t n = 0; n < raw.size(); ++n)
    EXPECT_FALSE(read_symbols({raw.begin(), raw.begin() + ptrdiff_t(n)}, 999, 200));
}

TEST(DamagedSymbols, AreHarmless) {
  Rng rng(5);
  size_t refused = 0;
  for (const auto& [count, alphabet] : kDamaged) {
    const int a = alphabet;
    const Bytes code = encoded(drawn(count, [=](Rng& r) { return geometric(r, a / 20., a); }), a);
    for (int i = 0; i < 1000; ++i) refused += !read_symbols(flipped(code, rng), count, a);
  }
  EXPECT_GT(refused, 5900u);  // the states must end where they began
}

TEST(DamagedSymbols, NoiseIsHarmless) {
  Rng rng(6);
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = noise(1 + rng() % 400, rng);
    if (i % 2 == 0) bytes[0] &= std::byte{0x7e};  // mostly a model and states
    read_symbols(bytes, rng() % 3000, i % 3 == 0 ? 256 : 2 + static_cast<int>(rng() % 255));
  }
}

TEST(DamagedSymbols, BeyondTheAlphabetAreRefused) {
  Symbols out(8);
  const Bytes raw(9, std::byte{0x01});
  EXPECT_TRUE(decode_symbols(raw, 200, out).has_value());
  Bytes high = raw;
  high[8] = std::byte{200};
  EXPECT_FALSE(decode_symbols(high, 200, out).has_value());
  EXPECT_FALSE(decode_symbols(Bytes{std::byte{0}, std::byte{200}}, 200, out).has_value());
  EXPECT_FALSE(decode_symbols(Bytes{std::byte{3}, std::byte{1}}, 200, out).has_value());
  const Bytes modelled = encoded(drawn(500, [](Rng& r) { return 255 - geometric(r, 3, 99); }), 256);
  EXPECT_TRUE(read_symbols(modelled, 500, 256));
  EXPECT_FALSE(read_symbols(modelled, 500, 255));
}

TEST(Symbols, AreReadFromTheFrontOfMore) {
  for (const size_t count : {50, 5000, 50000}) {
    const Symbols symbols = drawn(count, [](Rng& r) { return geometric(r, 3, 100); });
    Bytes code = encoded(symbols, 100);
    const size_t length = code.size();
    code.insert(code.end(), 100, std::byte{0xff});
    Symbols back(count);
    EXPECT_EQ(decode_symbols(code, 100, back), length);
    EXPECT_EQ(back, symbols);
  }
}

// Distances that are drawn independently; `limit` is behind the last.
Positions independent(size_t count, double density, uint64_t& limit, uint64_t seed = 3) {
  Rng rng(seed);
  Positions positions;
  for (limit = 0; positions.size() < count; ++limit) {
    limit += static_cast<uint64_t>(std::floor(std::log(1 - uniform(rng)) / std::log1p(-density)));
    if (limit >= uint64_t{1} << 32) break;
    positions.push_back(static_cast<uint32_t>(limit));
  }
  limit = std::min(limit, uint64_t{1} << 32);
  return positions;
}

double positions_entropy_bytes(size_t count, uint64_t limit) {
  const double d = static_cast<double>(count) / static_cast<double>(limit);
  return -(d * std::log2(d) + (1 - d) * std::log2(1 - d)) / d * static_cast<double>(count) / 8;
}

TEST(Positions, AreNearTheirEntropy) {
  for (const double density : {.5, 1 / 16., 1 / 64., .01, .001, .0001}) {
    uint64_t limit = 0;
    const Positions positions = independent(150000, density, limit);
    const auto size = static_cast<double>(expect_round_trip(positions, limit));
    const double least = positions_entropy_bytes(positions.size(), limit);
    EXPECT_GE(positions.size(), 100000u);
    EXPECT_LT(size, 1.003 * least) << density;  // 2 % are allowed, 0.2 % measured
    EXPECT_GT(size, .999 * least) << density;
  }
}

TEST(Positions, ComeBackFromTheEnds) {
  constexpr uint64_t kAll = uint64_t{1} << 32;
  constexpr uint32_t kLast = 0xffffffff;
  for (const Positions& p : {Positions{},
                             {0},
                             {kLast},
                             {0, kLast},
                             {0, 1, kLast - 1, kLast},
                             {kLast - 1},
                             {0x80000000},
                             {7, 8, 16, 25, 34, 1u << 20}})
    expect_round_trip(p, kAll);
  expect_round_trip(Positions{}, 0);
  expect_round_trip(Positions{0}, 1);
  expect_round_trip(Positions{0, 1}, 2);
}

TEST(Positions, ThatAreAllTakeTwoBytes) {
  Positions all(100000);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i);
  EXPECT_EQ(expect_round_trip(all, all.size()), 2u);
}

TEST(Positions, InClustersTakeLittle) {
  Positions clusters;
  for (uint32_t c = 0; c < 1000; ++c)
    for (uint32_t i = 0; i < 100; ++i) clusters.push_back(c * 1000003 + c * c + i);
  EXPECT_LT(expect_round_trip(clusters, uint64_t{1} << 32), 4500u);  // 100,000 of them
}

TEST(Positions, KeepTheBoundWhateverTheyAre) {
  Rng rng(8);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t limit = 1 + (rng() % (uint64_t{1} << 32) >> rng() % 32);
    Positions positions;
    const uint64_t step = 1 + limit / (1 + rng() % 300);
    for (uint64_t at = rng() % step; at < limit && positions.size() < 3000;
         at += 1 + (i % 2 == 0 ? rng() % step : step - 1))
      positions.push_back(static_cast<uint32_t>(at));
    ASSERT_LE(expect_round_trip(positions, limit), positions_bound(positions.size(), limit));
  }
}

TEST(DamagedPositions, CutShortAreRefused) {
  for (const size_t count : {30, 1500}) {
    uint64_t limit = 0;
    const Positions positions = independent(count, .01, limit);
    const Bytes code = encoded(positions, limit);
    for (size_t n = 0; n < code.size(); ++n)
      EXPECT_FALSE(read_positions({code.begin(), code.begin() + ptrdiff_t(n)}, count, limit)) << n;
  }
}

TEST(DamagedPositions, AreHarmless) {
  Rng rng(9);
  for (const size_t count : {30, 500, 5000}) {
    uint64_t limit = 0;
    const Positions positions = independent(count, .01, limit);
    const Bytes code = encoded(positions, limit);
    for (int i = 0; i < 2000; ++i) read_positions(flipped(code, rng), count, limit);
  }
  for (int i = 0; i < 10000; ++i)
    read_positions(noise(rng() % 200, rng), rng() % 100, rng() % (uint64_t{1} << 32));
}

TEST(DamagedPositions, BeyondTheLimitAreRefused) {
  const Bytes code = encoded(Positions{3, 5, 1000}, 1001);
  EXPECT_TRUE(read_positions(code, 3, 1001));
  EXPECT_FALSE(read_positions(code, 3, 1000));
  EXPECT_FALSE(read_positions(code, 3, 2));
  const Bytes all = encoded(Positions{0, 1, 2}, 3);  // one symbol: any number can be read from it
  EXPECT_TRUE(read_positions(all, 1000, 1000));
  EXPECT_FALSE(read_positions(all, 1001, 1000));
}

}  // namespace
}  // namespace hybridsync
