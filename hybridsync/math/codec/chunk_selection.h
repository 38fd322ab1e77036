// The largest magnitudes of every 4,096 numbers: density * 4,096 of them, rounded, at least one;
// among equals those at lower positions, and never zeros.
#pragma once

#include <array>
#include <cstdint>

#include "hybridsync/math/codec/error_fed.h"
#include "hybridsync/math/codec/pick_list.h"

namespace hybridsync {

class ChunkSelection {
 public:
  static constexpr size_t kChunk = kScanPart;

  explicit ChunkSelection(double density) : density_(density) {}

  // How many numbers the list must have room for.
  size_t room(size_t count) const;
  // Picks from u in one pass, which makes it. False: a number is not finite.
  [[nodiscard]] bool pick(const ErrorFed& u, PickList& list);

 private:
  static constexpr size_t kPadding = 16;

  bool pick_chunk(const ErrorFed& u, size_t first, size_t count, PickList& list);
  uint32_t keep_largest(Scan seen, size_t wanted, size_t first, PickList& list);
  void aim(size_t hits, size_t wanted);

  double density_;
  // The threshold that is tried first, which a little more than those wanted should reach. It
  // follows the chunks before and has no influence on what is picked.
  uint32_t guess_ = 1;
  std::array<uint32_t, kChunk + kHitRoom> hits_;
  std::array<float, kChunk + kPadding> values_;  // with zeros behind them
};

}  // namespace hybridsync
