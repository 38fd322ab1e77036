#include "hybridsync/math/codec/block_kernels.h"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hybridsync/math/codec/block_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "hybridsync/math/codec/bf16.h"
#include "hybridsync/math/codec/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hybridsync {
namespace HWY_NAMESPACE {
namespace {

constexpr float kNormal = 0x1p-126F;
constexpr float kRounder = 0x1.8p23F;  // x + this - this is x, rounded to nearest even

uint16_t load16(const uint8_t* from) { return static_cast<uint16_t>(from[0] | from[1] << 8); }
void store16(uint16_t bits, uint8_t* to) {
  to[0] = static_cast<uint8_t>(bits);
  to[1] = static_cast<uint8_t>(bits >> 8);
}

// Groups of 16 bytes. `code_of` gives the kBits of each number of the vector at a pointer.
template <int kBits, class CodeOf, class... Next>
HWY_INLINE void pack(float* u, uint8_t* code, CodeOf code_of, Next... next) {
  constexpr size_t kGroup = 128 / kBits;
  for (size_t i = 0; i < kBlock; i += kGroup, code += 16) {
    for (size_t j = i; j < i + kGroup; j += 16) (fetch(next + j), ...);
    for (size_t k = 0; k < 16; k += hn::Lanes(kFloats)) {
      auto packed = code_of(u + i + k + kGroup - 16);
      for (size_t j = kGroup - 16; j > 0; j -= 16)
        packed = hn::Or(hn::ShiftLeft<kBits>(packed), code_of(u + i + k + j - 16));
      hn::StoreU(hn::TruncateTo(kBytes, packed), kBytes, code + k);
    }
  }
}

// `number_of` gives the vector of a code that has other bits above its kBits.
template <int kBits, class NumberOf>
HWY_INLINE void unpack(const uint8_t* code, float* out, NumberOf number_of) {
  constexpr size_t kGroup = 128 / kBits;
  for (size_t i = 0; i < kBlock; i += kGroup, code += 16) {
    for (size_t k = 0; k < 16; k += hn::Lanes(kFloats)) {
      auto packed = hn::PromoteTo(kWords, hn::LoadU(kBytes, code + k));
      for (size_t j = 0; j < kGroup; j += 16) {
        hn::StoreU(number_of(packed), kFloats, out + i + k + j);
        packed = hn::ShiftRight<kBits>(packed);
      }
    }
  }
}

// int8 and int4: whole multiples of a step, up to kTop on both sides.

template <int kBits>
constexpr int32_t kTop = (1 << (kBits - 1)) - 1;

// kTop steps must be finite. FLT_MAX is less than half a step above them, so it still has a level.
template <int kBits>
uint16_t largest_step() {
  return bf16_down(std::bit_cast<float>(kInfinity - 1) / kTop<kBits>);
}

template <int kBits>
bool encode_levels(const Block& block, float* u, uint8_t* code) {
  const int32_t largest = combine(block, u);
  if (largest >= kInfinity) return false;
  uint16_t bits =
      std::min(bf16_up(std::bit_cast<float>(largest) / kTop<kBits>), largest_step<kBits>());
  if (from_bf16(bits) < kNormal) bits = 0;
  store16(bits, code);
  const float step = from_bf16(bits), inverse = bits ? 1 / step : 0;
  pack<kBits>(
      u, code + 2,
      [step, inverse](float* at) HWY_ATTR {
        const auto v = hn::LoadU(kFloats, at);
        const auto rounder = hn::Set(kFloats, kRounder);
        const auto shifted = hn::Add(hn::Mul(v, hn::Set(kFloats, inverse)), rounder);
        const auto level = hn::Sub(shifted, rounder);
        hn::StoreU(hn::Sub(v, hn::Mul(level, hn::Set(kFloats, step))), kFloats, at);
        const auto low_bits = hn::Set(kWords, (1U << kBits) - 1);
        return hn::And(hn::BitCast(kWords, shifted), low_bits);
      },
      block.values + kBlock, u + kBlock);
  return true;
}

template <int kBits>
bool decode_levels(const uint8_t* code, float* out) {
  const uint16_t bits = load16(code);
  if (bits > largest_step<kBits>()) return false;
  const float step = from_bf16(bits);
  auto least = hn::Zero(kInts);
  unpack<kBits>(code + 2, out, [step, &least](hn::Vec<Words> packed) HWY_ATTR {
    const auto high = hn::BitCast(kInts, hn::ShiftLeft<32 - kBits>(packed));
    const auto level = hn::ShiftRight<32 - kBits>(high);
    least = hn::Min(least, level);
    return hn::Mul(hn::ConvertTo(kFloats, level), hn::Set(kFloats, step));
  });
  return hn::GetLane(hn::MinOfLanes(kInts, least)) >= -kTop<kBits>;
}

// int2 and sign: means of magnitudes.

// A sum has 32 parts, part k the terms k, k + 32, k + 64 ..., which are added by halves: the first
// time where they are computed, the others here.
HWY_INLINE float total(float* parts) {
  for (size_t half = 8; half > 0; half /= 2)
    for (size_t k = 0; k < half; ++k) parts[k] += parts[k + half];
  return parts[0];
}

// |u| / kBlock: then no sum of a block can overflow.
HWY_INLINE hn::Vec<Floats> share_of(hn::Vec<Floats> v) {
  return hn::Mul(hn::Abs(v), hn::Set(kFloats, 1.0F / kBlock));
}

HWY_INLINE float mean_of(const float* u, size_t count, const float* next) {
  HWY_ALIGN float parts[16];
  for (size_t k = 0; k < 16; k += hn::Lanes(kFloats)) {
    auto a = hn::Zero(kFloats), b = a;
    for (size_t i = k; i < kBlock; i += 32) {
      fetch(next + i), fetch(next + i + 16);
      a = hn::Add(a, share_of(hn::LoadU(kFloats, u + i)));
      b = hn::Add(b, share_of(hn::LoadU(kFloats, u + i + 16)));
    }
    hn::Store(hn::Add(a, b), kFloats, parts + k);
  }
  return total(parts) * (static_cast<float>(kBlock) / static_cast<float>(count));
}

// The sign bit of v, without that of -0.
HWY_INLINE hn::Vec<Words> sign_of(hn::Vec<Floats> v) {
  const auto is_negative = hn::Lt(v, hn::Zero(kFloats));
  return hn::BitCast(kWords, hn::IfThenElseZero(is_negative, hn::Set(kFloats, -0.0F)));
}

bool encode_sign(const Block& block, float* u, uint8_t* code) {
  if (combine(block, u) >= kInfinity) return false;
  const uint16_t bits = bf16_nearest(mean_of(u, block.count, block.values + kBlock));
  store16(bits, code);
  const float mean = from_bf16(bits);
  pack<1>(
      u, code + 2,
      [mean](float* at) HWY_ATTR {
        const auto v = hn::LoadU(kFloats, at);
        const auto sign = sign_of(v);
        const auto sent = hn::Or(hn::Set(kFloats, mean), hn::BitCast(kFloats, sign));
        hn::StoreU(hn::Sub(v, sent), kFloats, at);
        return hn::ShiftRight<31>(sign);
      },
      u + kBlock);
  return true;
}

bool decode_sign(const uint8_t* code, float* out) {
  const uint16_t bits = load16(code);
  if (bits > kLargestBf16) return false;
  const float mean = from_bf16(bits);
  unpack<1>(code + 2, out, [mean](hn::Vec<Words> packed) HWY_ATTR {
    const auto sign = hn::BitCast(kFloats, hn::ShiftLeft<31>(packed));
    return hn::Or(hn::Set(kFloats, mean), sign);
  });
  return true;
}

struct Sums {
  float small, large;  // of shares
  float many;          // how many are large
};

HWY_INLINE Sums sums_of(const float* u, float threshold, const float* next) {
  HWY_ALIGN float small[16], large[16], many[16];
  const auto add = [threshold](const float* at, auto& s, auto& l, auto& m) HWY_ATTR {
    const auto v = hn::Abs(hn::LoadU(kFloats, at));
    const auto is_large = hn::Gt(v, hn::Set(kFloats, threshold));
    s = hn::Add(s, hn::IfThenZeroElse(is_large, share_of(v)));
    l = hn::Add(l, hn::IfThenElseZero(is_large, share_of(v)));
    m = hn::Add(m, hn::IfThenElseZero(is_large, hn::Set(kFloats, 1.0F)));
  };
  for (size_t k = 0; k < 16; k += hn::Lanes(kFloats)) {
    auto s0 = hn::Zero(kFloats), s1 = s0, l0 = s0, l1 = s0, m0 = s0, m1 = s0;
    for (size_t i = k; i < kBlock; i += 32) {
      fetch(next + i), fetch(next + i + 16);
      add(u + i, s0, l0, m0);
      add(u + i + 16, s1, l1, m1);
    }
    hn::Store(hn::Add(s0, s1), kFloats, small + k);
    hn::Store(hn::Add(l0, l1), kFloats, large + k);
    hn::Store(hn::Add(m0, m1), kFloats, many + k);
  }
  return {total(small), total(large), total(many)};
}

HWY_INLINE uint16_t mean_bits(float sum_of_shares, float count) {
  return count > 0 ? bf16_nearest(sum_of_shares / count * static_cast<float>(kBlock)) : 0;
}

bool encode_int2(const Block& block, float* u, uint8_t* code) {
  if (combine(block, u) >= kInfinity) return false;
  const float threshold = 1.5F * mean_of(u, block.count, block.values + kBlock);
  const Sums sums = sums_of(u, threshold, u + kBlock);
  const uint16_t small_bits = mean_bits(sums.small, static_cast<float>(block.count) - sums.many);
  const uint16_t large_bits = mean_bits(sums.large, sums.many);
  store16(small_bits, code);
  store16(large_bits, code + 2);
  const float small = from_bf16(small_bits), large = from_bf16(large_bits);
  pack<2>(u, code + 4, [threshold, small, large](float* at) HWY_ATTR {
    const auto v = hn::LoadU(kFloats, at);
    const auto sign = sign_of(v);
    const auto is_large = hn::Gt(hn::Abs(v), hn::Set(kFloats, threshold));
    const auto magnitude =
        hn::IfThenElse(is_large, hn::Set(kFloats, large), hn::Set(kFloats, small));
    hn::StoreU(hn::Sub(v, hn::Or(magnitude, hn::BitCast(kFloats, sign))), kFloats, at);
    const auto one = hn::BitCast(kFloats, hn::Set(kWords, 1));
    const auto which = hn::BitCast(kWords, hn::IfThenElseZero(is_large, one));
    return hn::Or(hn::ShiftRight<30>(sign), which);
  });
  return true;
}

bool decode_int2(const uint8_t* code, float* out) {
  const uint16_t small_bits = load16(code), large_bits = load16(code + 2);
  if (small_bits > kLargestBf16 || large_bits > kLargestBf16) return false;
  const float small = from_bf16(small_bits), large = from_bf16(large_bits);
  unpack<2>(code + 4, out, [small, large](hn::Vec<Words> packed) HWY_ATTR {
    const auto one = hn::Set(kWords, 1), two = hn::Set(kWords, 2);
    const auto is_large = hn::RebindMask(kFloats, hn::TestBit(packed, one));
    const auto sign = hn::ShiftLeft<30>(hn::And(packed, two));
    const auto magnitude =
        hn::IfThenElse(is_large, hn::Set(kFloats, large), hn::Set(kFloats, small));
    return hn::Or(magnitude, hn::BitCast(kFloats, sign));
  });
  return true;
}

}  // namespace

BlockFunctions block_functions(CodecKind kind) {
  switch (kind) {
    case CodecKind::int8:
      return {encode_levels<8>, decode_levels<8>};
    case CodecKind::int4:
      return {encode_levels<4>, decode_levels<4>};
    case CodecKind::int2:
      return {encode_int2, decode_int2};
    default:
      return {encode_sign, decode_sign};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hybridsync
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridsync {

HWY_EXPORT(block_functions);

BlockFunctions block_kernels(CodecKind kind) { return HWY_DYNAMIC_DISPATCH(block_functions)(kind); }

}  // namespace hybridsync
#endif
