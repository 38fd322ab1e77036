// What the kernels share, compiled once for each instruction set. Lanes: at most 16, so that each
// group of 16 numbers is a whole number of vectors.
#if defined(HYBRIDSYNC_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDSYNC_LANES_INL_H
#undef HYBRIDSYNC_LANES_INL_H
#else
#define HYBRIDSYNC_LANES_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "hybridsync/math/codec/block.h"

HWY_BEFORE_NAMESPACE();
namespace hybridsync {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Words = hn::RebindToUnsigned<Floats>;
using Halves = hn::Rebind<uint16_t, Floats>;
using Bytes = hn::Rebind<uint8_t, Floats>;

constexpr Floats kFloats;
constexpr Ints kInts;
constexpr Words kWords;
constexpr Halves kHalves;
constexpr Bytes kBytes;

constexpr int32_t kInfinity = 0x7f800000;  // the bits of a magnitude that is not finite: from here

// Asks for memory that is read a block later, so that the memory works while this block is
// computed: `next` is the same place in the next block. Where there is none, nothing happens.
HWY_INLINE void fetch(const float* next) { hwy::Prefetch(next); }

// The same for the memory of so many bytes that this block's code is going to overwrite.
HWY_INLINE void fetch_target(const uint8_t* code, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64) hwy::Prefetch(code + i);
}

HWY_INLINE hn::Vec<Ints> magnitude_bits(hn::Vec<Floats> v) {
  return hn::And(hn::BitCast(kInts, v), hn::Set(kInts, 0x7fffffff));
}

// u = values + beta residual. Gives the largest magnitude's bits, at least kInfinity if any number
// is not finite: as integers, magnitudes and NaN are in order.
HWY_INLINE int32_t combine(const Block& block, float* u) {
  const float* values = block.values;
  const float* residual = block.residual;
  const auto beta = hn::Set(kFloats, block.beta);
  auto largest = hn::Zero(kInts);
  for (size_t i = 0; i < kBlock; i += hn::Lanes(kFloats)) {
    auto v = hn::LoadU(kFloats, values + i);
    if (residual) v = hn::Add(v, hn::Mul(beta, hn::LoadU(kFloats, residual + i)));
    largest = hn::Max(largest, magnitude_bits(v));
    hn::StoreU(v, kFloats, u + i);
  }
  return hn::GetLane(hn::MaxOfLanes(kInts, largest));
}

}  // namespace HWY_NAMESPACE
}  // namespace hybridsync
HWY_AFTER_NAMESPACE();

#endif
