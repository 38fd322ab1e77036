#include "hybridsync/math/codec/packed_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <numeric>

#include "hybridsync/math/codec/bf16.h"
#include "hybridsync/math/codec/bits.h"
#include "hybridsync/math/codec/pack_kernels.h"

namespace hybridsync {
namespace {

constexpr uint32_t kSign = 0x80000000;
constexpr uint16_t kSmallestNormalBf16 = 0x0080;

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

struct Book {
  uint16_t low = 0, step = 0;
};

size_t book_size(int bits) { return bits == 16 ? 0 : bits == 1 ? 2 : 4; }
uint32_t levels_of(int bits) { return (1u << (bits - 1)) - 1; }

// Never so small that its inverse is infinite.
uint16_t usable_step(uint16_t step) {
  return step == 0 ? step : std::max(step, kSmallestNormalBf16);
}

// Filled up to whole vectors with the last number.
using Group = std::array<float, kLargestGroup>;

size_t whole_vectors(size_t n) { return (n + kPackStep - 1) / kPackStep * kPackStep; }

// low is rounded down and step is rounded up: they reach every magnitude.
Book even_book(MagnitudeRange range, uint32_t levels) {
  Book book;
  book.low = bf16_down(range.least);
  const float step = (range.largest - from_bf16(book.low)) / static_cast<float>(levels);
  book.step = usable_step(bf16_up(step));
  return book;
}

struct Tally {
  double sum = 0;
  size_t count = 0;
  double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

// Of the magnitudes below `edge`, over eight interleaved sums. No branch.
Tally tally_below(const Group& u, size_t n, float edge) {
  std::array<double, 8> sums{};
  Tally tally;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t magnitude = bits_of(u[i]) & ~kSign;
    const uint32_t below = magnitude < bits_of(edge);
    sums[i % 8] += double{std::bit_cast<float>(magnitude & -below)};
    tally.count += below;
  }
  tally.sum = std::accumulate(sums.begin(), sums.end(), 0.0);
  return tally;
}

// Split at half again the mean's distance from the least magnitude, which is within 1 % of the best
// for an exponential tail, but not beyond the middle, which is best for even and for two-valued
// magnitudes.
Book two_means_book(const Group& u, size_t n) {
  const MagnitudeRange range = magnitude_range(u.data(), whole_vectors(n));
  const Tally all = tally_below(u, n, INFINITY);
  const double least = range.least, middle = (least + range.largest) / 2;
  const double split = std::min(all.mean() + (all.mean() - least) / 2, middle);
  const Tally lower = tally_below(u, n, static_cast<float>(split));
  const Tally upper{all.sum - lower.sum, n - lower.count};
  if (lower.count == 0 || upper.count == 0)
    return {bf16_nearest(static_cast<float>(all.mean())), 0};
  Book book;
  book.low = bf16_nearest(static_cast<float>(lower.mean()));
  const double step = std::max(0.0, upper.mean() - from_bf16(book.low));
  book.step = usable_step(bf16_nearest(static_cast<float>(step)));
  return book;
}

Book book_of(const Group& u, size_t n, int bits) {
  if (bits > 2) return even_book(magnitude_range(u.data(), whole_vectors(n)), levels_of(bits));
  if (bits == 2) return two_means_book(u, n);
  return {bf16_nearest(static_cast<float>(tally_below(u, n, INFINITY).mean())), 0};
}

Levels levels_in(Book book, int bits) {
  const float step = from_bf16(book.step), inverse = book.step == 0 ? 0.0f : 1.0f / step;
  return {from_bf16(book.low), step, inverse, bits, static_cast<float>(levels_of(bits))};
}

// The magnitude of level j; the largest float instead of infinity.
float level(float low, float step, float j) {
  const float x = low + j * step;
  return x < FLT_MAX ? x : FLT_MAX;
}

using Symbols = std::array<uint8_t, kLargestGroup>;

template <int bits>
void join(const Symbols& symbols, size_t n, std::byte* out) {
  constexpr size_t per_byte = 8 / bits;
  for (size_t i = 0; i < (n + per_byte - 1) / per_byte; ++i) {
    unsigned joined = 0;
    for (size_t k = 0; k < per_byte; ++k) joined |= symbols[i * per_byte + k] << (k * bits);
    out[i] = static_cast<std::byte>(joined);
  }
}

void join(const Symbols& symbols, size_t n, int bits, std::byte* out) {
  switch (bits) {
    case 8:
      std::memcpy(out, symbols.data(), n);
      return;
    case 4:
      return join<4>(symbols, n, out);
    case 2:
      return join<2>(symbols, n, out);
    default:
      return join<1>(symbols, n, out);
  }
}

void pack_shorts(std::span<const float> u, std::byte* out, float* left_out) {
  for (size_t i = 0; i < u.size(); ++i) {
    const uint16_t x = bf16_nearest(u[i]);
    store_little(out + 2 * i, x);
    left_out[i] = u[i] - from_bf16(x);
  }
}

bool unpack_shorts(const std::byte* code, std::span<float> out) {
  uint32_t largest = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const uint16_t x = load_little<uint16_t>(code + 2 * i);
    largest = std::max<uint32_t>(largest, x & 0x7fff);
    out[i] = from_bf16(x);
  }
  return largest <= kLargestBf16;
}

bool unpack_group(const std::byte* code, int bits, std::span<float> out) {
  Book book{load_little<uint16_t>(code), 0};
  if (bits > 1) book.step = load_little<uint16_t>(code + 2);
  if (book.low > kLargestBf16 || book.step > kLargestBf16) return false;
  const float low = from_bf16(book.low), step = from_bf16(book.step);
  const std::byte* packed = code + book_size(bits);
  const uint32_t levels = levels_of(bits);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = i * static_cast<size_t>(bits);
    const uint32_t symbol = static_cast<uint32_t>(packed[at / 8]) >> (at % 8);
    const uint32_t sign = symbol << (32 - bits) & kSign;
    const float magnitude = level(low, step, static_cast<float>(symbol & levels));
    out[i] = std::bit_cast<float>(bits_of(magnitude) | sign);
  }
  return true;
}

}  // namespace

bool is_value_bits(int bits) {
  return bits == 16 || bits == 8 || bits == 4 || bits == 2 || bits == 1;
}

size_t group_size(int bits) { return bits == 4 ? 128 : kLargestGroup; }

size_t packed_size(size_t count, int bits) {
  const auto size = [bits](size_t n) {
    return n == 0 ? 0 : book_size(bits) + (n * static_cast<size_t>(bits) + 7) / 8;
  };
  const size_t group = group_size(bits);
  return count / group * size(group) + size(count % group);
}

void pack_group(std::span<const float> u, int bits, std::byte* out, float* left_out) {
  assert(is_value_bits(bits) && u.size() <= group_size(bits));
  if (bits == 16) return pack_shorts(u, out, left_out);
  if (u.empty()) return;
  const size_t n = u.size(), whole = whole_vectors(n);
  Group group, left;
  std::copy(u.begin(), u.end(), group.begin());
  std::fill(group.data() + n, group.data() + whole, u.back());
  const Book book = book_of(group, n, bits);
  store_little(out, book.low);
  if (bits > 1) store_little(out + 2, book.step);
  Symbols symbols;
  choose_levels(group.data(), whole, levels_in(book, bits), symbols.data(), left.data());
  std::fill(symbols.data() + n, symbols.data() + whole, uint8_t{0});
  join(symbols, n, bits, out + book_size(bits));
  std::copy_n(left.data(), n, left_out);
}

bool unpack(std::span<const std::byte> code, int bits, std::span<float> out) {
  assert(is_value_bits(bits) && code.size() == packed_size(out.size(), bits));
  if (bits == 16) return unpack_shorts(code.data(), out);
  const size_t group = group_size(bits), size = packed_size(group, bits);
  for (size_t i = 0; i * group < out.size(); ++i) {
    const size_t n = std::min(group, out.size() - i * group);
    if (!unpack_group(code.data() + i * size, bits, out.subspan(i * group, n))) return false;
  }
  return true;
}

}  // namespace hybridsync
