#include "hybridsync/math/codec/pick_list.h"

#include <array>
#include <bit>
#include <cassert>

#include "hybridsync/math/codec/packed_values.h"

namespace hybridsync {
namespace {

uint32_t magnitude(float x) { return std::bit_cast<uint32_t>(x) & kMagnitudeMask; }

}  // namespace

// Without a branch: which are kept cannot be foreseen.
size_t keep_reached(Picks from, size_t count, uint32_t threshold, uint32_t base, Picks to) {
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    const float value = from.values[i];
    to.positions[kept] = from.positions[i] + base;
    to.values[kept] = value;
    kept += magnitude(value) >= threshold;
  }
  return kept;
}

void PickList::start(int value_bits, size_t room, std::span<float> residual) {
  value_bits_ = value_bits;
  size_ = packed_ = 0;
  residual_ = residual;
  if (values_.size() < room) {
    values_.resize(room);
    positions_.resize(room);
  }
  const size_t bytes = packed_size(room, value_bits);
  if (bytes_.size() < bytes) bytes_.resize(bytes);
}

void PickList::drop_ties(size_t first, size_t wanted, uint32_t threshold) {
  size_t left = wanted;
  for (size_t i = first; i < size_; ++i) left -= magnitude(values_[i]) > threshold;
  size_t kept = first;
  for (size_t i = first; i < size_; ++i) {
    const bool tie = magnitude(values_[i]) == threshold;
    if (tie && left == 0) continue;
    left -= tie;
    values_[kept] = values_[i];
    positions_[kept++] = positions_[i];
  }
  size_ = kept;
}

void PickList::pack_groups() {
  const size_t group = group_size(value_bits_);
  while (size_ - packed_ >= group) pack(group);
}

void PickList::pack_rest() {
  pack_groups();
  if (packed_ < size_) pack(size_ - packed_);
}

void PickList::pack(size_t count) {
  std::array<float, kLargestGroup> left_out;
  pack_group({values_.data() + packed_, count}, value_bits_,
             bytes_.data() + packed_size(packed_, value_bits_), left_out.data());
  if (!residual_.empty())
    for (size_t i = 0; i < count; ++i) residual_[positions_[packed_ + i]] = left_out[i];
  packed_ += count;
}

void PickList::take_back() {
  if (!residual_.empty())
    for (size_t i = 0; i < packed_; ++i) residual_[positions_[i]] = values_[i];
  packed_ = 0;
}

std::span<const std::byte> PickList::packed() const {
  return {bytes_.data(), packed_size(packed_, value_bits_)};
}

}  // namespace hybridsync
