// The numbers that are sent: their positions, ascending, their values, and
// these packed. What packing leaves out replaces the number in u while that
// part of it is still in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hybridsync/math/codec/select_kernels.h"

namespace hybridsync {

// Numbers with their positions.
struct Picks {
  float* values;
  uint32_t* positions;
};
// Keeps those of `count` picks that reach the threshold, in their order, with
// `base` added to each position; how many. `to` has room for all, and may be
// `from`.
size_t keep_reached(Picks from, size_t count, uint32_t threshold, uint32_t base, Picks to);

class PickList {
 public:
  // Empty, with room for so many. `residual` holds u where it has been scanned,
  // or is empty.
  void start(int value_bits, size_t room, std::span<float> residual);

  size_t size() const { return size_; }
  // All of them; new ones are written behind these and then counted by
  // `resize`.
  Picks begin() { return {values_.data(), positions_.data()}; }
  Picks end() { return {values_.data() + size_, positions_.data() + size_}; }
  void resize(size_t size) { size_ = size; }
  // Keeps the first `wanted` of the picks from `first` on, of which so many are
  // too many only because they equal the threshold: the last such go.
  void drop_ties(size_t first, size_t wanted, uint32_t threshold);

  void pack_groups();  // those groups that are full
  void pack_rest();    // and the last one
  void take_back();    // u is whole again, nothing is packed

  std::span<const uint32_t> positions() const { return {positions_.data(), size_}; }
  std::span<const float> values() const { return {values_.data(), size_}; }
  std::span<const std::byte> packed() const;

 private:
  void pack(size_t count);

  int value_bits_ = 0;
  size_t size_ = 0, packed_ = 0;
  std::span<float> residual_;
  std::vector<uint32_t> positions_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

}  // namespace hybridsync
