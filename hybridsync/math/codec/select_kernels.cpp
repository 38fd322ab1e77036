#include "hybridsync/math/codec/select_kernels.h"

#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hybridsync/math/codec/select_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hybridsync {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kMostLanes = 16;

using Floats = hn::CappedTag<float, kMostLanes>;
using Words = hn::RebindToSigned<Floats>;
using VF = hn::Vec<Floats>;
using VW = hn::Vec<Words>;

HWY_INLINE VW magnitudes(VF u) {
  return hn::And(hn::BitCast(Words(), u), hn::Set(Words(), int32_t{kMagnitudeMask}));
}

HWY_INLINE hn::Mask<Words> reached(VW magnitude, uint32_t threshold) {
  return hn::Gt(magnitude, hn::Set(Words(), static_cast<int32_t>(threshold - 1)));
}

// One bit per number of a part, in words of 64.
struct Bits {
  alignas(64) uint8_t bytes[kScanPart / 8] = {};
};

// The mask of the vector at i. Vectors come in order.
HWY_INLINE void put_mask(hn::Mask<Words> mask, size_t i, Bits& bits) {
  const Words d;
  if (hn::Lanes(d) >= 8) {
    hn::StoreMaskBits(d, mask, bits.bytes + i / 8);
  } else {
    uint8_t part[8];
    hn::StoreMaskBits(d, mask, part);
    bits.bytes[i / 8] = static_cast<uint8_t>(bits.bytes[i / 8] | part[0] << (i % 8));
  }
}

// Writes where the lowest bit is, 64 without any, and clears it. No branch.
HWY_INLINE uint64_t take_lowest(uint64_t word, size_t first, uint32_t* hit) {
  *hit = static_cast<uint32_t>(first + hwy::PopCount(~word & (word - 1)));
  return word & (word - 1);
}

// Four at a time, whether so many bits are set or not: a processor foresees
// that.
HWY_INLINE size_t list_bits(const Bits& bits, size_t n, uint32_t* hits) {
  size_t count = 0;
  for (size_t first = 0; first < n; first += 64) {
    uint64_t word;
    hwy::CopyBytes<sizeof word>(bits.bytes + first / 8, &word);
    uint32_t* hit = hits + count;
    count += hwy::PopCount(word);
    do {
      word = take_lowest(word, first, hit++);
      word = take_lowest(word, first, hit++);
      word = take_lowest(word, first, hit++);
      word = take_lowest(word, first, hit++);
    } while (word != 0);
  }
  return count;
}

HWY_INLINE uint32_t largest_lane(VW largest) {
  return static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(Words(), largest)));
}

// The last numbers of a list, in a vector that is filled up with zeros.
struct Rest {
  alignas(64) float lanes[kMostLanes] = {};
  Rest(const float* from, size_t count) {
    for (size_t i = 0; i < count; ++i) lanes[i] = from[i];
  }
};

HWY_INLINE void look_at(VF u, size_t i, uint32_t threshold, Bits& bits, VW& largest) {
  const VW magnitude = magnitudes(u);
  largest = hn::Max(largest, magnitude);
  put_mask(reached(magnitude, threshold), i, bits);
}

Scan scan(const float* u, size_t n, uint32_t threshold, uint32_t* hits) {
  const Floats d;
  Bits bits;
  VW largest = hn::Zero(Words());
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    look_at(hn::LoadU(d, u + i), i, threshold, bits, largest);
  }
  if (i < n) look_at(hn::Load(d, Rest(u + i, n - i).lanes), i, threshold, bits, largest);
  return {list_bits(bits, n, hits), largest_lane(largest)};
}

Scan scan_sum(const float* values, float beta, float* residual, size_t n, uint32_t threshold,
              uint32_t* hits) {
  const Floats d;
  const VF factor = hn::Set(d, beta);
  Bits bits;
  VW largest = hn::Zero(Words());
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const VF carried = hn::Mul(factor, hn::LoadU(d, residual + i));
    const VF u = hn::Add(hn::LoadU(d, values + i), carried);
    hn::StoreU(u, d, residual + i);
    look_at(u, i, threshold, bits, largest);
  }
  if (i < n) {
    Rest rest(residual + i, n - i);
    const VF last = hn::Load(d, Rest(values + i, n - i).lanes);
    const VF u = hn::Add(last, hn::Mul(factor, hn::Load(d, rest.lanes)));
    hn::Store(u, d, rest.lanes);
    for (size_t k = 0; i + k < n; ++k) residual[i + k] = rest.lanes[k];
    look_at(u, i, threshold, bits, largest);
  }
  return {list_bits(bits, n, hits), largest_lane(largest)};
}

HWY_INLINE size_t count_in(VF u, uint32_t threshold) {
  return hn::CountTrue(Words(), reached(magnitudes(u), threshold));
}

size_t count_reached(const float* u, size_t n, uint32_t threshold) {
  const Floats d;
  size_t count = 0, i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    count += count_in(hn::LoadU(d, u + i), threshold);
  if (i < n) count += count_in(hn::Load(d, Rest(u + i, n - i).lanes), threshold);
  return count;
}

uint32_t threshold_of(const float* u, size_t n, Wanted wanted, uint32_t low, uint32_t high) {
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    const size_t count = count_reached(u, n, middle);
    if (count < wanted.least) {
      high = middle;
    } else {
      low = middle;
      if (count <= wanted.most) break;
    }
  }
  return low;
}

}  // namespace HWY_NAMESPACE
}  // namespace hybridsync
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridsync {

HWY_EXPORT(scan);
HWY_EXPORT(scan_sum);
HWY_EXPORT(count_reached);
HWY_EXPORT(threshold_of);

Scan scan(std::span<const float> u, uint32_t threshold, uint32_t* hits) {
  assert(threshold > 0 && u.size() <= kScanPart);
  return HWY_DYNAMIC_DISPATCH(scan)(u.data(), u.size(), threshold, hits);
}

Scan scan_sum(std::span<const float> values, float beta, std::span<float> residual,
              uint32_t threshold, uint32_t* hits) {
  assert(threshold > 0 && values.size() <= kScanPart && values.size() == residual.size());
  return HWY_DYNAMIC_DISPATCH(scan_sum)(values.data(), beta, residual.data(), values.size(),
                                        threshold, hits);
}

size_t count_reached(std::span<const float> u, uint32_t threshold) {
  assert(threshold > 0);
  return HWY_DYNAMIC_DISPATCH(count_reached)(u.data(), u.size(), threshold);
}

uint32_t threshold_of(std::span<const float> u, Wanted wanted, uint32_t low, uint32_t high) {
  assert(low > 0 && low < high);
  return HWY_DYNAMIC_DISPATCH(threshold_of)(u.data(), u.size(), wanted, low, high);
}

}  // namespace hybridsync
#endif
