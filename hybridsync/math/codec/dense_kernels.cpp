#include "hybridsync/math/codec/dense_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hybridsync/math/codec/dense_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "hybridsync/math/codec/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hybridsync {
namespace HWY_NAMESPACE {
namespace {

bool encode_fp32(const Block& block, float* u, uint8_t* code) {
  fetch_target(code, kBlock * sizeof(float));
  if (combine(block, u) >= kInfinity) return false;
  for (size_t i = 0; i < kBlock; i += 16) {
    fetch(block.values + kBlock + i), fetch(u + kBlock + i);
    std::memcpy(code + 4 * i, u + i, 64);
    std::fill_n(u + i, 16, 0.0F);
  }
  return true;
}

bool decode_fp32(const uint8_t* code, float* out) {
  auto largest = hn::Zero(kInts);
  for (size_t i = 0; i < kBlock; i += 16) std::memcpy(out + i, code + 4 * i, 64);
  for (size_t i = 0; i < kBlock; i += hn::Lanes(kFloats))
    largest = hn::Max(largest, magnitude_bits(hn::LoadU(kFloats, out + i)));
  return hn::GetLane(hn::MaxOfLanes(kInts, largest)) < kInfinity;
}

// The formats of 16 bits: `magnitude` gives the bits of a positive number, `number` the way back,
// both without the sign; kEnd are the bits of infinity.

struct Bf16 {
  static constexpr int32_t kEnd = 0x7f80;

  static HWY_INLINE hn::Vec<Ints> magnitude(hn::Vec<Ints> v) {
    v = hn::Min(v, hn::Set(kInts, 0x7f7f0000));
    const auto odd = hn::And(hn::ShiftRight<16>(v), hn::Set(kInts, 1));
    return hn::ShiftRight<16>(hn::Add(hn::Add(v, hn::Set(kInts, 0x7fff)), odd));
  }

  static HWY_INLINE hn::Vec<Ints> number(hn::Vec<Ints> bits) { return hn::ShiftLeft<16>(bits); }
};

// Subnormal halves are steps of 2^-24, as floats from 0.5 to 1 are: adding 0.5 rounds to them.
struct Fp16 {
  static constexpr int32_t kEnd = 0x7c00;
  static constexpr int32_t kHalf = 0x3f000000, kRebias = 112 << 23;

  static HWY_INLINE hn::Vec<Ints> magnitude(hn::Vec<Ints> v) {
    v = hn::Min(v, hn::Set(kInts, 0x477fe000));
    const auto odd = hn::And(hn::ShiftRight<13>(v), hn::Set(kInts, 1));
    const auto rounding = hn::Add(odd, hn::Set(kInts, 0xfff - kRebias));
    const auto normal = hn::ShiftRight<13>(hn::Add(v, rounding));
    const auto shifted = hn::Add(hn::BitCast(kFloats, v), hn::Set(kFloats, 0.5F));
    const auto tiny = hn::Sub(hn::BitCast(kInts, shifted), hn::Set(kInts, kHalf));
    return hn::IfThenElse(hn::Lt(v, hn::Set(kInts, kRebias + (1 << 23))), tiny, normal);
  }

  static HWY_INLINE hn::Vec<Ints> number(hn::Vec<Ints> bits) {
    const auto normal = hn::Add(hn::ShiftLeft<13>(bits), hn::Set(kInts, kRebias));
    const auto shifted = hn::BitCast(kFloats, hn::Or(bits, hn::Set(kInts, kHalf)));
    const auto tiny = hn::BitCast(kInts, hn::Sub(shifted, hn::Set(kFloats, 0.5F)));
    return hn::IfThenElse(hn::Lt(bits, hn::Set(kInts, 0x400)), tiny, normal);
  }
};

template <class Format>
bool encode_16(const Block& block, float* u, uint8_t* code) {
  HWY_ALIGN uint16_t halves[kBlock];
  fetch_target(code, sizeof(halves));
  if (combine(block, u) >= kInfinity) return false;
  for (size_t i = 0; i < kBlock; i += hn::Lanes(kFloats)) {
    fetch(block.values + kBlock + i), fetch(u + kBlock + i);
    const auto v = hn::LoadU(kFloats, u + i);
    const auto magnitude = Format::magnitude(magnitude_bits(v));
    const auto sign = hn::AndNot(hn::Set(kWords, 0x7fffffff), hn::BitCast(kWords, v));
    const auto sent = hn::Or(hn::BitCast(kWords, Format::number(magnitude)), sign);
    hn::StoreU(hn::Sub(v, hn::BitCast(kFloats, sent)), kFloats, u + i);
    const auto bits = hn::Or(hn::BitCast(kWords, magnitude), hn::ShiftRight<16>(sign));
    hn::Store(hn::TruncateTo(kHalves, bits), kHalves, halves + i);
  }
  std::memcpy(code, halves, sizeof(halves));
  return true;
}

template <class Format>
bool decode_16(const uint8_t* code, float* out) {
  HWY_ALIGN uint16_t halves[kBlock];
  std::memcpy(halves, code, sizeof(halves));
  auto largest = hn::Zero(kInts);
  for (size_t i = 0; i < kBlock; i += hn::Lanes(kFloats)) {
    const auto bits = hn::PromoteTo(kWords, hn::Load(kHalves, halves + i));
    const auto magnitude = hn::BitCast(kInts, hn::And(bits, hn::Set(kWords, 0x7fff)));
    largest = hn::Max(largest, magnitude);
    const auto sign = hn::ShiftLeft<16>(hn::AndNot(hn::Set(kWords, 0x7fff), bits));
    const auto number = hn::Or(hn::BitCast(kWords, Format::number(magnitude)), sign);
    hn::StoreU(hn::BitCast(kFloats, number), kFloats, out + i);
  }
  return hn::GetLane(hn::MaxOfLanes(kInts, largest)) < Format::kEnd;
}

}  // namespace

BlockFunctions dense_functions(CodecKind kind) {
  switch (kind) {
    case CodecKind::fp32:
      return {encode_fp32, decode_fp32};
    case CodecKind::bf16:
      return {encode_16<Bf16>, decode_16<Bf16>};
    default:
      return {encode_16<Fp16>, decode_16<Fp16>};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hybridsync
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridsync {

HWY_EXPORT(dense_functions);

BlockFunctions dense_kernels(CodecKind kind) { return HWY_DYNAMIC_DISPATCH(dense_functions)(kind); }

}  // namespace hybridsync
#endif
