#include "hybridsync/math/codec/levels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "hybridsync/math/codec/bits.h"
#include "hybridsync/math/codec/entropy.h"

namespace hybridsync {
namespace {

constexpr size_t kBlock = 64;
constexpr size_t kDigits = 15 * kBlock;  // digits at a time: whole blocks, and whole symbols
constexpr size_t kSums = 16;
constexpr uint32_t kInfinity = 0x7f800000;

using Block = std::array<float, kBlock>;

constexpr float kLeast = 0x1p-120f;  // no denormals in what decides, since a machine may flush them

enum class StepForm : unsigned { window, halves };

template <int Levels>
struct Packing {
  static constexpr int kHighest = Levels / 2;
  static constexpr size_t kPerSymbol = Levels == 3 ? 5 : Levels == 5 ? 3 : 2;
  static constexpr int kAlphabet = Levels == 3 ? 243 : Levels == 5 ? 125 : 49;
  // Codes of steps are the upper bits of a float; 0 is a block of zeros.
  static constexpr int kFraction = 3;
  static constexpr int kCut = 23 - kFraction;
  static constexpr uint32_t kLeastCode = 1u << kFraction;  // the least normal float
  static constexpr uint32_t kMostCode =                    // all its multiples are finite
      std::bit_cast<uint32_t>(std::numeric_limits<float>::max() / kHighest) >> kCut;

  // The product with eight digits, one a byte, has the number of the first ones in byte
  // kPerSymbol - 1: no sum of a lower byte reaches 256.
  static constexpr uint64_t kFactor = [] {
    uint64_t factor = 0;
    for (size_t i = 0, power = 1; i < kPerSymbol; ++i, power *= Levels)
      factor |= uint64_t{power} << 8 * (kPerSymbol - 1 - i);
    return factor;
  }();

  // Of each symbol the levels, one a byte. The digits 0, 1, 2, 3, ... are the levels 0, 1, -1, 2.
  static constexpr auto kLevels = [] {
    std::array<uint64_t, kAlphabet> all{};
    for (size_t s = 0; s < all.size(); ++s) {
      size_t rest = s;
      for (size_t i = 0; i < kPerSymbol; ++i, rest /= Levels) {
        const int digit = static_cast<int>(rest % Levels);
        const int level = digit % 2 == 1 ? (digit + 1) / 2 : -digit / 2;
        all[s] |= uint64_t{static_cast<uint8_t>(level)} << 8 * i;
      }
    }
    return all;
  }();
};

uint32_t largest_bits(const Block& u) {
  std::array<int32_t, kSums> largest{};
  for (size_t i = 0; i < kBlock; i += kSums)
    for (size_t j = 0; j < kSums; ++j) {
      const int32_t bits = std::bit_cast<int32_t>(u[i + j]) & 0x7fffffff;
      largest[j] = bits > largest[j] ? bits : largest[j];
    }
  return static_cast<uint32_t>(*std::max_element(largest.begin(), largest.end()));
}

template <int Levels>
void choose_levels(const Block& u, float largest, std::array<int32_t, kBlock>& q) {
  constexpr int m = Levels / 2;
  std::array<float, m> threshold;
  for (int k = 0; k < m; ++k)
    threshold[static_cast<size_t>(k)] = largest * (static_cast<float>(2 * k + 1) / (2 * m));
  for (size_t i = 0; i < kBlock; ++i) {
    const float magnitude = std::fabs(u[i]);
    int32_t level = 0;
#pragma GCC unroll 3
    for (const float t : threshold) level += magnitude >= t ? 1 : 0;
    q[i] = u[i] < 0 ? -level : level;
  }
}

template <int Levels>
uint32_t nearest_code(float step) {
  using P = Packing<Levels>;
  const uint32_t code = (std::bit_cast<uint32_t>(step) + (1u << (P::kCut - 1))) >> P::kCut;
  return std::min(code, P::kMostCode);
}

template <int Levels>
float step_of(uint32_t code) {
  return std::bit_cast<float>(code << Packing<Levels>::kCut);
}

// Subtracts from u what decoding gives. The code of the step; with 0 there are no digits.
template <int Levels>
uint32_t quantise(Block& u, float largest, uint8_t* digits) {
  if (largest < kLeast) return 0;
  std::array<int32_t, kBlock> q;
  choose_levels<Levels>(u, largest, q);
  const uint32_t code = nearest_code<Levels>(largest / (Levels / 2));
  const float step = step_of<Levels>(code);
  for (size_t i = 0; i < kBlock; ++i) u[i] -= static_cast<float>(q[i]) * step;
  for (size_t i = 0; i < kBlock; ++i)
    digits[i] = static_cast<uint8_t>(q[i] > 0 ? 2 * q[i] - 1 : -2 * q[i]);
  return code;
}

class Steps {
 public:
  static size_t bound(size_t blocks) {
    return 3 + symbols_bound(blocks, 256) + symbols_bound(blocks, 8);
  }

  // In a window below the largest code a step takes one symbol, otherwise two.
  size_t encode(std::span<const uint16_t> codes, std::span<std::byte> out) {
    unsigned largest = 0, least = 0xffff;
    for (const uint16_t code : codes) {
      largest = std::max<unsigned>(largest, code);
      if (code != 0) least = std::min<unsigned>(least, code);
    }
    const unsigned base = largest > 255 ? largest - 255 : 0;
    const bool window = least > base;
    out[0] = static_cast<std::byte>(window ? StepForm::window : StepForm::halves);
    symbols_.resize(codes.size());
    if (window) {
      store_little(&out[1], static_cast<uint16_t>(base));
      return 3 + put(codes, out.subspan(3), 256, [=](unsigned c) { return c ? c - base : 0; });
    }
    const size_t low = put(codes, out.subspan(1), 256, [](unsigned c) { return c & 255; });
    return 1 + low + put(codes, out.subspan(1 + low), 8, [](unsigned c) { return c >> 8; });
  }

  std::optional<size_t> decode(std::span<const std::byte> code, uint32_t least, uint32_t most,
                               std::span<uint16_t> codes) {
    if (code.size() < 3) return std::nullopt;
    symbols_.resize(codes.size());
    const bool window = code[0] == static_cast<std::byte>(StepForm::window);
    if (!window && code[0] != static_cast<std::byte>(StepForm::halves)) return std::nullopt;
    const size_t head = window ? 3 : 1;
    const unsigned base = window ? load_little<uint16_t>(&code[1]) : 0;
    const auto first = decode_symbols(code.subspan(head), 256, symbols_);
    if (!first || base > most) return std::nullopt;
    for (size_t i = 0; i < codes.size(); ++i)
      codes[i] = static_cast<uint16_t>(symbols_[i] == 0 ? 0 : symbols_[i] + base);
    std::optional<size_t> second = 0;
    if (!window) {
      second = decode_symbols(code.subspan(head + *first), 8, symbols_);
      if (!second) return std::nullopt;
      for (size_t i = 0; i < codes.size(); ++i)
        codes[i] = static_cast<uint16_t>(codes[i] | symbols_[i] << 8);
    }
    for (const uint16_t c : codes)
      if (c != 0 && (c < least || c > most)) return std::nullopt;
    return head + *first + *second;
  }

 private:
  template <class F>
  size_t put(std::span<const uint16_t> codes, std::span<std::byte> out, int alphabet, F symbol) {
    for (size_t i = 0; i < codes.size(); ++i) symbols_[i] = static_cast<uint8_t>(symbol(codes[i]));
    return encode_symbols(symbols_, alphabet, out);
  }

  std::vector<uint8_t> symbols_;
};

template <int Levels>
class LevelsCodec final : public Codec {
  using P = Packing<Levels>;

 public:
  size_t bound(size_t count) const override {
    if (count == 0) return 0;
    return Steps::bound(blocks(count)) + symbols_bound(symbols(count), P::kAlphabet);
  }

  std::optional<size_t> encode(std::span<const float> values, float beta, std::span<float> residual,
                               std::span<std::byte> out) override {
    assert(out.size() >= bound(values.size()));
    assert(residual.empty() || residual.size() == values.size());
    codes_.resize(blocks(values.size()));
    symbols_.resize(symbols(values.size()));
    count_ = held_ = 0;
    for (size_t b = 0; b < codes_.size(); ++b) {
      const size_t begin = b * kBlock, length = std::min(kBlock, values.size() - begin);
      const auto left = residual.empty() ? residual : residual.subspan(begin, length);
      if (!encode_block(values.subspan(begin, length), beta, left, codes_[b])) return std::nullopt;
    }
    pack();
    if (values.empty()) return 0;
    const size_t head = steps_.encode(codes_, out);
    return head +
           encode_symbols(std::span(symbols_).first(count_), P::kAlphabet, out.subspan(head));
  }

  bool decode(std::span<const std::byte> code, std::span<float> out) override {
    if (out.empty()) return code.empty();
    codes_.resize(blocks(out.size()));
    const auto head = steps_.decode(code, P::kLeastCode, P::kMostCode, codes_);
    if (!head) return false;
    size_t numbers = 0;
    for (size_t b = 0; b < codes_.size(); ++b)
      if (codes_[b] != 0) numbers += std::min(kBlock, out.size() - b * kBlock);
    symbols_.resize(symbols(numbers));
    const auto length = decode_symbols(code.subspan(*head), P::kAlphabet, symbols_);
    if (!length || *head + *length != code.size()) return false;
    count_ = held_ = 0;
    for (size_t b = 0; b < codes_.size(); ++b) {
      const size_t begin = b * kBlock;
      decode_block(codes_[b], out.subspan(begin, std::min(kBlock, out.size() - begin)));
    }
    return true;
  }

 private:
  static size_t blocks(size_t count) { return (count + kBlock - 1) / kBlock; }
  static size_t symbols(size_t count) { return (count + P::kPerSymbol - 1) / P::kPerSymbol; }

  bool encode_block(std::span<const float> values, float beta, std::span<float> residual,
                    uint16_t& code) {
    Block u;
    if (values.size() < kBlock) u.fill(0);
    std::copy(values.begin(), values.end(), u.begin());
    if (beta != 0)
      for (size_t i = 0; i < residual.size(); ++i) u[i] += beta * residual[i];
    const uint32_t largest = largest_bits(u);
    if (largest >= kInfinity) return false;
    code = static_cast<uint16_t>(
        quantise<Levels>(u, std::bit_cast<float>(largest), digits_.data() + held_));
    std::copy_n(u.begin(), residual.size(), residual.begin());
    if (code == 0) return true;
    held_ += values.size();
    if (held_ == kDigits) pack();
    return true;
  }

  // All digits that are held, into symbols.
  void pack() {
    std::fill_n(digits_.begin() + static_cast<ptrdiff_t>(held_), P::kPerSymbol, uint8_t{0});
    const auto* bytes = reinterpret_cast<const std::byte*>(digits_.data());
    for (size_t i = 0; i < held_; i += P::kPerSymbol)
      symbols_[count_++] = static_cast<uint8_t>(load_little<uint64_t>(bytes + i) * P::kFactor >>
                                                8 * (P::kPerSymbol - 1));
    held_ = 0;
  }

  void decode_block(uint32_t code, std::span<float> out) {
    if (code == 0) return std::fill(out.begin(), out.end(), 0.0f);
    if (held_ == 0) unpack();
    const auto* levels = reinterpret_cast<const int8_t*>(digits_.data()) + kDigits - held_;
    const float step = step_of<Levels>(code);
    if (out.size() == kBlock) {
      for (size_t i = 0; i < kBlock; ++i) out[i] = static_cast<float>(levels[i]) * step;
    } else {
      for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(levels[i]) * step;
    }
    held_ -= kBlock;
  }

  // The levels of the next symbols; the last time those behind the end are void.
  void unpack() {
    auto* bytes = reinterpret_cast<std::byte*>(digits_.data());
    const size_t end = std::min(symbols_.size(), count_ + kDigits / P::kPerSymbol);
    for (; count_ < end; ++count_, bytes += P::kPerSymbol)
      store_little(bytes, P::kLevels[symbols_[count_]]);
    held_ = kDigits;
  }

  Steps steps_;
  std::vector<uint16_t> codes_;
  std::vector<uint8_t> symbols_;
  size_t count_ = 0;                           // of symbols that are done
  size_t held_ = 0;                            // digits that are not
  std::array<uint8_t, kDigits + 8> digits_{};  // one digit or level a byte
};

}  // namespace

std::unique_ptr<Codec> make_levels(int levels) {
  switch (levels) {
    case 3:
      return std::make_unique<LevelsCodec<3>>();
    case 5:
      return std::make_unique<LevelsCodec<5>>();
    case 7:
      return std::make_unique<LevelsCodec<7>>();
    default:
      throw std::invalid_argument("levels: 3, 5 or 7, not " + std::to_string(levels));
  }
}

}  // namespace hybridsync
