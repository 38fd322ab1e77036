// The largest magnitudes of all numbers: about density * count, by one threshold that is estimated
// from a sample of u, the same for the same u: nothing is carried from call to call.
//
// For a million numbers and more the count is within a few per cent, for fewer, or for very low
// densities, within some ten. Below half of those wanted or above twice that it is refused, and a
// second pass, over u alone, picks exactly those wanted. Fewer are picked only where all others are
// zero.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hybridsync/math/codec/error_fed.h"
#include "hybridsync/math/codec/pick_list.h"

namespace hybridsync {

class ThresholdSelection {
 public:
  explicit ThresholdSelection(double density) : density_(density) {}

  size_t room(size_t count) const;
  [[nodiscard]] bool pick(const ErrorFed& u, PickList& list);

 private:
  enum class Outcome { picked, not_finite, too_many };
  Outcome pick_reached(const ErrorFed& u, uint32_t threshold, size_t most, PickList& list);
  void pick_largest(std::span<const float> u, size_t wanted, uint32_t threshold, PickList& list);
  void add(std::span<const float> u, size_t first, size_t hits, PickList& list);

  double density_;
  std::array<uint32_t, kScanPart + kHitRoom> hits_;
  std::vector<float> sample_;
};

}  // namespace hybridsync
