// The passes of the top-k codec over its numbers, for the widest vectors that
// the processor has. Every width gives the same bits. Magnitudes are compared
// as the bits of a float without its sign, which are ordered like the
// magnitudes themselves. A threshold is at least 1: zero never reaches it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hybridsync {

inline constexpr uint32_t kMagnitudeMask = 0x7fffffff;
inline constexpr uint32_t kNotFinite = 0x7f800000;  // the smallest magnitude that is not finite
inline constexpr uint32_t kUnreached = 0x7fffffff;  // a threshold that no number reaches
inline constexpr size_t kScanPart = 4096;           // the most numbers that are scanned at once
inline constexpr size_t kHitRoom = 4;  // what a list of hits has room for beyond the hits

struct Scan {
  size_t hits = 0;       // how many numbers reach the threshold
  uint32_t largest = 0;  // the largest magnitude
};

// Writes the indices of the magnitudes from `threshold` on, ascending, to
// `hits` (room for all numbers and kHitRoom).
Scan scan(std::span<const float> u, uint32_t threshold, uint32_t* hits);
// The same of u = values + beta residual, which replaces `residual` (as long as
// `values`).
Scan scan_sum(std::span<const float> values, float beta, std::span<float> residual,
              uint32_t threshold, uint32_t* hits);

size_t count_reached(std::span<const float> u, uint32_t threshold);

struct Wanted {
  size_t least, most;
};
// A threshold in [low, high) that so many magnitudes of u reach; more than
// `most` do only where they are equal to it. At least `least` must reach `low`,
// and fewer `high`. It is found by halving and counting, without sorting.
uint32_t threshold_of(std::span<const float> u, Wanted wanted, uint32_t low, uint32_t high);

}  // namespace hybridsync
