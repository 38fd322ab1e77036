// bfloat16: the upper half of a float's bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace hybridsync {

inline constexpr uint16_t kLargestBf16 = 0x7f7f;  // the largest finite one

constexpr float from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Of a magnitude: the one not above it, and the one not below it.
constexpr uint16_t bf16_down(float magnitude) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(magnitude) >> 16);
}
constexpr uint16_t bf16_up(float magnitude) {
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(magnitude) + 0xffff) >> 16);
}

// Of a finite number: the nearest finite one, ties to even.
constexpr uint16_t bf16_nearest(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits & 0x80000000,
                 magnitude = bits ^ sign;
  const uint32_t rounded = (magnitude + 0x7fff + (magnitude >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(std::min<uint32_t>(rounded, kLargestBf16) | sign >> 16);
}

}  // namespace hybridsync
